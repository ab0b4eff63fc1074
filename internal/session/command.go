package session

import (
	"bytes"
	"encoding/binary"
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
	payload   []byte // as sent, command byte included; no more than MaxStatement
	length    uint64 // of the whole payload
	hash      hash.Hash64
	newSchema []byte // of an INIT_DB, USE or CHANGE_USER
	read      bool   // interpreted, and reply ready to take pieces
}

func (f *Follower) clientPiece(p wire.Piece, at, sent time.Duration) {
	switch {
	case f.stage == stageCommands && f.uploading(p):
	case f.stage == stageCommands && f.changingUser():
		if p.Head {
			f.queue[len(f.queue)-1].statement.RequestBytes += uint64(p.Length) + wire.HeaderLen
		}
	case f.stage == stageCommands:
		f.commandPiece(p, at, sent)
	case f.stage == stageResponse:
		if payload, whole := f.gather(p); whole {
			f.response(payload, at)
		}
	case f.stage == stageGreeting:
		f.lose(at, "the client spoke before the server's greeting")
	}
}

// uploading passes over the file a client sends because the server asked for it, up to the empty packet that ends it.
func (f *Follower) uploading(p wire.Piece) bool {
	if len(f.queue) == 0 || !f.queue[0].reply.WantsFile() {
		return false
	}
	c := f.queue[0]
	c.statement.RequestBytes += uint64(len(p.Data))
	if p.Head {
		c.statement.RequestBytes += wire.HeaderLen
		if p.Length == 0 {
			c.reply.FileSent()
		}
	}
	return true
}

// commandPiece gathers a command. Of one longer than MaxStatement the beginning is kept, and a hash over all.
func (f *Follower) commandPiece(p wire.Piece, at, sent time.Duration) {
	if p.Head {
		f.incoming = f.newCommand()
	}
	c := f.incoming
	if c == nil {
		f.lose(at, "a packet of the authentication goes on behind its end")
		return
	}
	c.length += uint64(len(p.Data))
	room := f.maxStatement() - len(c.payload)
	if len(p.Data) > room && c.hash == nil {
		c.hash = fnv.New64a()
		c.hash.Write(c.payload)
	}
	if c.hash != nil {
		c.hash.Write(p.Data)
	}
	c.payload = append(c.payload, p.Data[:min(len(p.Data), room)]...)
	if !p.Tail {
		return
	}
	f.incoming = nil
	s := &c.statement
	s.Received, s.Complete, s.Sent = f.arrived, at, sent
	s.RequestBytes = c.length + wire.HeaderLen*(1+c.length/wire.MaxPayload)
	f.accept(c, at)
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
	f.number++
	c.statement.Number = f.number
	if len(c.payload) > 0 { // an empty packet is a command too: servers answer it with an error
		c.code = c.payload[0]
	}
	c.statement.Command = c.code
	if wire.LeavesProtocol(c.code) {
		f.queue = append(f.queue, c)
		f.lose(at, wire.CommandName(c.code)+" turns the connection into another protocol")
		return
	}
	if len(f.queue) >= maxInFlight {
		f.lose(at, "too many commands without a reply")
		return
	}
	f.queue = append(f.queue, c)
	if len(f.queue) == 1 || c.code == wire.ComQuery {
		f.read(c)
	}
	f.settle(at)
}

// settle reads the commands that have come to the front, and finishes those that have no reply.
func (f *Follower) settle(at time.Duration) {
	for len(f.queue) > 0 {
		c := f.queue[0]
		if !c.read {
			f.read(c)
		}
		if wire.HasReply(c.code) {
			c.statement.Schema = append(c.statement.Schema[:0], f.schema...)
			return
		}
		f.finish(c, max(at, c.statement.Sent))
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
	case wire.ComStmtExecute:
		f.readExecute(c)
	case wire.ComStmtClose, wire.ComStmtReset, wire.ComStmtFetch, wire.ComStmtSendLongData, wire.ComStmtBulkExecute:
		f.readStatementID(c, rest)
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
	if c.length > uint64(len(c.payload)) {
		s.Flags |= capture.Truncated
		s.TextLen, s.TextHash = c.length-uint64(len(c.payload)-len(s.Text)), c.hash.Sum64()
	}
	c.reply.Begin(c.code, f.caps, s.Flags.Has(capture.Cursor))
}

// readStatementID reads a command that begins with the id of a prepared statement. Text is the statement's own, but
// for commands that carry data of their own.
func (f *Follower) readStatementID(c *command, rest []byte) {
	s := &c.statement
	if len(rest) < 4 {
		s.Text = rest
		return
	}
	s.StatementID = binary.LittleEndian.Uint32(rest)
	if c.code == wire.ComStmtSendLongData || c.code == wire.ComStmtBulkExecute {
		s.Text = rest[4:]
	} else if p := f.statements[s.StatementID]; p != nil {
		s.Text = p.text
	}
	if c.code == wire.ComStmtFetch {
		s.Params.Values = rest[4:] // how many rows
	}
}

func (f *Follower) readExecute(c *command) {
	s := &c.statement
	cur := wire.NewCursor(c.payload)
	cur.Skip(1)
	s.StatementID = cur.Uint32()
	if s.StatementID == wire.LastStatementID {
		s.StatementID = f.lastID
	}
	if after := cur; after.Byte()&wire.CursorReadOnly != 0 { // whatever else is known: the shape of the reply hangs on it
		s.Flags |= capture.Cursor
	}
	p := f.statements[s.StatementID]
	if p == nil {
		s.Flags |= capture.TextUnknown
		s.Params.Values = cur.Rest()
		return
	}
	s.Text = p.text
	e, err := wire.ParseExecute(c.payload, p.params, f.caps)
	if err != nil {
		s.Flags |= capture.NoTypes
		s.Params.Values = cur.Rest()
		return
	}
	if len(e.Types) > 0 {
		p.types = append(p.types[:0], e.Types...)
	}
	s.Params = capture.Params{Nulls: e.Nulls, Types: p.types, Values: e.Values}
	if len(p.types) < 2*p.params {
		s.Flags |= capture.NoTypes
	}
}

func (f *Follower) serverPiece(p wire.Piece, at time.Duration) {
	if f.stage != stageCommands {
		if payload, whole := f.gather(p); whole {
			f.serverLogin(payload, at)
		}
		return
	}
	if len(f.queue) == 0 {
		if payload, whole := f.gather(p); whole {
			f.unexpected(payload, at)
		}
		return
	}
	c := f.queue[0]
	if c.code == wire.ComChangeUser {
		c.noteFirst(at)
		if payload, whole := f.gather(p); whole {
			f.changeUserReply(c, payload, at)
		}
		return
	}
	done, err := c.reply.Feed(p)
	if err != nil {
		f.lose(at, wire.CommandName(c.code)+": "+err.Error())
		return
	}
	if c.reply.Begun() {
		c.noteFirst(at)
	}
	if c.reply.WantsFile() {
		c.statement.Flags |= capture.Infile
	}
	if done {
		c.statement.Outcome = c.reply.Outcome
		f.answered(c)
		f.finish(c, at)
		f.settle(at)
	}
}

func (c *command) noteFirst(at time.Duration) {
	if c.statement.First == 0 {
		c.statement.First = at
	}
}

// answered takes over what a reply says of the session.
func (f *Follower) answered(c *command) {
	s := &c.statement
	if s.RunsSQL() {
		f.transactions.Assign(s)
	}
	if s.Outcome.Errno != 0 {
		if c.code == wire.ComStmtPrepare {
			f.lastID = 0
		}
		return
	}
	switch c.code {
	case wire.ComStmtPrepare:
		f.prepared(c)
	case wire.ComInitDB:
		f.schema = append(f.schema[:0], c.newSchema...)
	case wire.ComResetConnection:
		f.forget()
	case wire.ComQuery:
		f.followSchema(s)
	}
	if s.Outcome.State.SchemaChanged {
		f.schema = append(f.schema[:0], s.Outcome.State.Schema...)
	}
}

// followSchema notices a USE where the server does not report it by session tracking.
func (f *Follower) followSchema(s *capture.Statement) {
	if s.Outcome.Status&wire.StatusDBDropped != 0 {
		f.schema = f.schema[:0]
	}
	if f.caps.Has(wire.SessionTrack) {
		return
	}
	if name, ok := usedSchema(s.Text); ok {
		f.schema = append(f.schema[:0], name...)
	}
}

// usedSchema returns the name in a USE statement.
func usedSchema(text []byte) (name []byte, ok bool) {
	text = bytes.Trim(text, "; \t\r\n")
	if len(text) < 5 || !bytes.EqualFold(text[:3], []byte("use")) || bytes.IndexByte([]byte(" \t\r\n`"), text[3]) < 0 {
		return nil, false
	}
	name = bytes.TrimSpace(text[3:])
	if n := len(name); n > 2 && name[0] == '`' && name[n-1] == '`' {
		return bytes.ReplaceAll(name[1:n-1], []byte("``"), []byte("`")), true
	}
	return name, true
}

func (f *Follower) prepared(c *command) {
	p := c.reply.Prepared
	c.statement.StatementID, f.lastID = p.ID, p.ID
	if f.statements == nil {
		f.statements = map[uint32]*prepared{}
	}
	f.statements[p.ID] = &prepared{text: append([]byte(nil), c.statement.Text...), params: int(p.Params)}
}

// finish hands the oldest command on and takes it out of flight.
func (f *Follower) finish(c *command, at time.Duration) {
	s := &c.statement
	s.Done = at
	if s.Sent == 0 { // the write had not returned when the reply came
		s.Sent = max(s.Complete, s.First)
	}
	f.Handler.Done(s)
	if c.code == wire.ComStmtClose {
		delete(f.statements, s.StatementID)
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
	schema, reply := c.statement.Schema[:0], c.reply
	*c = command{payload: payload, reply: reply}
	c.statement.Schema = schema
	if len(f.spare) < 4 {
		f.spare = append(f.spare, c)
	}
}
