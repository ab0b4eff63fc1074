package session

import (
	"hash"
	"hash/fnv"
	"time"

	"redrive/capture"
	"redrive/internal/wire"
)

// keptBuffer is the largest command buffer that is kept for the next command.
const keptBuffer = 64 << 10

// A command is one in flight: what the client sent, and how far its reply has come.
type command struct {
	statement capture.Statement
	reply     wire.Reply
	code      byte
	payload   []byte      // as sent, command byte included; no more than MaxStatement
	length    uint64      // of the whole payload
	hash      hash.Hash64 // of a text that is not kept whole, which begins at behind
	behind    int
	fileLost  bool          // the file the client sends is too long to be kept, or not the only one
	newSchema []byte        // of an INIT_DB, USE or CHANGE_USER
	long      []byte        // bitmap of an execute's parameters sent as long data
	cut       bool          // its last byte never came
	read      bool          // interpreted, and reply ready to take pieces
	refused   time.Duration // when an ERR answered it before its last byte was sent; 0 if none did
	parting   time.Duration // when an ERR came that may be no answer but the session's end; 0 if none did
}

// clientPiece takes a piece of what the client sent. A packet's first piece decides what it is for.
func (f *Follower) clientPiece(p wire.Piece, at, sent time.Duration) {
	if p.Head {
		f.sending = f.useOf(p.Seq)
	}
	switch {
	case f.stage == stageGreeting:
		f.lose(at, "the client spoke before the server's greeting")
	case f.sending == useFile:
		f.filePiece(p)
	case f.sending == useSecret:
		f.secretPiece(p)
	case f.sending == useResponse:
		if payload, whole := f.client.gather(p); whole {
			f.response(payload, at)
		}
	default:
		f.commandPiece(p, at, sent)
	}
}

// useOf tells what a packet of the client's with this sequence id is for. A client may send commands ahead of the end
// of an authentication (a QUIT behind its login). They begin at 0, which a round of the authentication can only if
// there were a hundred before it; and then the server has just asked.
func (f *Follower) useOf(seq byte) use {
	switch {
	case f.uploading:
		return useFile
	case f.stage == stageResponse:
		return useResponse
	case (f.stage == stageAuth || f.changing > 0) && (seq != 0 || f.asked):
		return useSecret
	}
	return useCommand
}

// filePiece passes over the file a client sends because the server asked for it, up to the empty packet that ends it:
// also when the server has answered before.
func (f *Follower) filePiece(p wire.Piece) {
	var reading *command
	if len(f.queue) > 0 && f.queue[0].reply.WantsFile() {
		reading = f.queue[0]
		reading.statement.RequestBytes += bytesOf(p)
		if f.KeepFiles {
			reading.keepFile(p, f.maxStatement())
		}
	}
	if p.Head && p.Length == 0 {
		f.uploading = false
		if reading != nil {
			reading.reply.FileSent()
		}
	}
}

// keepFile keeps a piece of a file, unless the whole grows beyond max.
func (c *command) keepFile(p wire.Piece, max int) {
	s := &c.statement
	another := s.Flags.Has(capture.FileKept) // a statement that asks for two is played by neither
	if another || c.fileLost || len(s.File)+len(p.Data) > max {
		s.File, c.fileLost = nil, true
		s.Flags &^= capture.FileKept
		return
	}
	s.File = append(s.File, p.Data...)
	if p.Head && p.Length == 0 {
		s.Flags |= capture.FileKept
	}
}

// secretPiece passes over a packet of an authentication.
func (f *Follower) secretPiece(p wire.Piece) {
	if len(f.queue) > 0 && f.queue[0].code == wire.ComChangeUser {
		f.queue[0].statement.RequestBytes += bytesOf(p)
	}
	if p.Tail {
		f.asked = false
	}
}

// bytesOf is how many bytes of a stream a piece takes; the headers of continuations go uncounted.
func bytesOf(p wire.Piece) uint64 {
	n := uint64(len(p.Data))
	if p.Head {
		n += wire.HeaderLen
	}
	return n
}

// commandPiece gathers a command. Of one longer than MaxStatement the beginning is kept, and a hash over all.
func (f *Follower) commandPiece(p wire.Piece, at, sent time.Duration) {
	if n := len(f.queue); n > 0 && wire.LeavesProtocol(f.queue[n-1].code) {
		f.leave(f.queue[n-1], at)
		return
	}
	if p.Head {
		f.incoming = f.newCommand()
	}
	c := f.incoming
	f.add(c, p.Data)
	if !p.Tail {
		return
	}
	f.incoming = nil
	f.stamp(c, at, sent)
	f.accept(c, at)
}

// add appends a piece of the payload, or to its hash what is not kept.
func (f *Follower) add(c *command, data []byte) {
	c.length += uint64(len(data))
	kept := data[:min(len(data), f.maxStatement()-len(c.payload))]
	c.payload = append(c.payload, kept...)
	if len(c.payload) > 0 { // an empty packet is a command too: servers answer it with an error
		c.code = c.payload[0]
	}
	if len(kept) == len(data) {
		return
	}
	if c.hash == nil {
		f.beginHash(c)
	}
	c.hash.Write(data[len(kept):])
}

// beginHash hashes what is kept of the command's text. What is sent with the text of another command, as the parameters
// of an execute are, is hashed from behind the command byte.
func (f *Follower) beginHash(c *command) {
	c.behind = min(1, len(c.payload))
	switch c.code {
	case wire.ComQuery:
		if text, _, err := wire.QueryText(c.payload, f.caps); err == nil {
			c.behind = len(c.payload) - len(text)
		}
	case wire.ComStmtSendLongData:
		c.behind = min(5, len(c.payload))
	}
	c.hash = fnv.New64a()
	c.hash.Write(c.payload[c.behind:])
}

// truncate notes the length and the hash of the whole; no hash of what proves who somebody is.
func (f *Follower) truncate(c *command) {
	if c.hash == nil { // it broke off
		f.beginHash(c)
	}
	s := &c.statement
	s.Flags |= capture.Truncated
	s.TextLen = c.length - uint64(c.behind)
	if c.code != wire.ComChangeUser {
		s.TextHash = c.hash.Sum64()
	}
}

// stamp notes when a command came, and numbers it.
func (f *Follower) stamp(c *command, at, sent time.Duration) {
	f.number++
	s := &c.statement
	s.Number, s.Command = f.number, c.code
	s.Received, s.Complete, s.Sent = f.arrived, at, sent
	s.RequestBytes = c.length + wire.HeaderLen*(1+c.length/wire.MaxPayload)
}

func (f *Follower) maxStatement() int {
	if f.MaxStatement > 0 {
		return f.MaxStatement
	}
	return DefaultMaxStatement
}

func (f *Follower) newCommand() *command {
	if n := len(f.spare); n > 0 {
		c := f.spare[n-1]
		f.spare = f.spare[:n-1]
		return c
	}
	return new(command)
}

// accept takes a whole command in flight.
func (f *Follower) accept(c *command, at time.Duration) {
	if len(f.queue) >= maxInFlight {
		f.lose(at, "too many commands without a reply")
		return
	}
	f.queue = append(f.queue, c)
	if len(f.queue) == 1 || c.code == wire.ComQuery {
		f.read(c)
	}
	if c.code == wire.ComChangeUser {
		f.changing++
		f.asked = false
	}
	if f.stage == stageCommands {
		f.settle(at)
	}
}

// settle reads the commands that have come to the front, and finishes those that have no reply, or had it before
// their last byte was sent.
func (f *Follower) settle(at time.Duration) {
	for len(f.queue) > 0 {
		c := f.queue[0]
		if !c.read {
			f.read(c)
		}
		switch {
		case c.refused != 0:
			c.statement.Outcome = c.reply.Outcome
			f.answered(c)
			f.finish(c, c.refused)
		case wire.HasReply(c.code):
			c.statement.Schema = append(c.statement.Schema[:0], f.schema...)
			return
		default:
			f.finish(c, max(at, c.statement.Sent))
		}
	}
}

// read interprets a command. It must wait for the replies before it, which tell of statements prepared and closed;
// only a query needs nothing of them but the schema, which its own turn will correct.
func (f *Follower) read(c *command) {
	s := &c.statement
	c.read = true
	s.Schema = append(s.Schema[:0], f.schema...)
	rest := c.payload[min(1, len(c.payload)):]
	switch c.code {
	case wire.ComQuery:
		text, attributes, err := wire.QueryText(c.payload, f.caps)
		if err != nil {
			s.Flags |= capture.TextUnknown
		}
		s.Text, s.Attributes = text, attributes
	case wire.ComStmtExecute, wire.ComStmtBulkExecute, wire.ComStmtClose, wire.ComStmtReset, wire.ComStmtFetch, wire.ComStmtSendLongData:
		f.readPrepared(c)
	case wire.ComChangeUser:
		user := wire.ParseChangeUser(c.payload)
		s.Text, c.newSchema = []byte(user.User), []byte(user.Schema)
	case wire.ComInitDB:
		s.Text, c.newSchema = rest, rest
	case wire.ComQuit:
		f.end.Quit = true
	default:
		s.Text = rest
	}
	if c.cut || c.length > uint64(len(c.payload)) {
		f.truncate(c)
	}
	if c.refused == 0 {
		c.reply.Begin(c.code, f.caps, s.Flags.Has(capture.Cursor))
	}
}

// finish hands the oldest command on and takes it out of flight.
func (f *Follower) finish(c *command, at time.Duration) {
	s := &c.statement
	s.Done = at
	if s.Sent == 0 { // the write had not returned when the reply came
		s.Sent = max(s.Complete, s.First)
	}
	if s.Outcome.HasStatus {
		f.status = s.Outcome.Status
	}
	f.Handler.Done(s)
	if c.code == wire.ComStmtClose {
		f.unprepare(s.StatementID)
	}
	if c.code == wire.ComChangeUser {
		f.changing--
	}
	n := copy(f.queue, f.queue[1:])
	f.queue[n] = nil
	f.queue = f.queue[:n]
	f.recycle(c)
}

func (f *Follower) recycle(c *command) {
	payload := c.payload[:0]
	if cap(payload) > keptBuffer {
		payload = nil
	}
	schema := c.statement.Schema[:0]
	c.statement = capture.Statement{Schema: schema}
	c.code, c.payload, c.length, c.hash, c.newSchema, c.long = 0, payload, 0, nil, nil, c.long[:0]
	c.cut, c.read, c.refused, c.parting = false, false, 0, 0
	if len(f.spare) < 4 {
		f.spare = append(f.spare, c)
	}
}
