package session

import (
	"hash"
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
	next      byte          // sequence id of the packet that comes next, from whichever side
	frame     byte          // the same of the compressed frame
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
	c.cut, c.read, c.fileLost, c.refused, c.parting = false, false, false, 0, 0
	if len(f.spare) < 4 {
		f.spare = append(f.spare, c)
	}
}
