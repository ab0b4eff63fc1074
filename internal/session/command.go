package session

import (
	"sync"
	"time"
	"unsafe"

	"redrive/capture"
	"redrive/internal/wire"
)

// A command is one in flight: what the client sent, and how far its reply has come.
type command struct {
	statement capture.Statement
	reply     wire.Reply
	code      byte
	payload   wire.Buffer   // as sent, command byte included; no more than MaxStatement
	file      wire.Buffer   // that the client sends for LOCAL INFILE
	length    uint64        // of the whole payload
	hash      textHash      // of a text that is not kept whole
	hashing   bool          // it is not: its end goes into the hash
	behind    int           // where in the payload the text begins that is hashed
	fileLost  bool          // the file the client sends is too long to be kept, or not the only one
	newSchema []byte        // of an INIT_DB, USE or CHANGE_USER
	long      []byte        // bitmap of an execute's parameters sent as long data
	cut       bool          // its last byte never came
	read      bool          // interpreted, and reply ready to take pieces
	refused   time.Duration // when an ERR answered it before its last byte was sent; 0 if none did
	parting   time.Duration // when an ERR came that may be no answer but the session's end; 0 if none did
	next      byte          // sequence id of the packet that comes next, from whichever side
	frame     byte          // the same of the compressed frame
	taken     int           // from the account, for itself

	older, younger *command // in flight
}

func (f *Follower) maxStatement() int {
	if f.MaxStatement > 0 {
		return f.MaxStatement
	}
	return DefaultMaxStatement
}

// commands are shared by all followers, each of which keeps but one of its own.
var commands = sync.Pool{New: func() any { return new(command) }}

// newCommand gives one for the next command, nil if there is no memory for so many.
func (f *Follower) newCommand() *command {
	taken := 0
	if f.inFlight >= freeInFlight {
		taken = int(unsafe.Sizeof(command{}))
		if !f.account().Take(taken) {
			return nil
		}
	}
	c := f.spare
	if c == nil {
		c = commands.Get().(*command)
	}
	f.spare = nil
	c.taken, c.reply.Memory = taken, f.account()
	return c
}

// accept takes a whole command in flight.
func (f *Follower) accept(c *command, at time.Duration) {
	if f.inFlight >= maxInFlight {
		f.recycle(c)
		f.lose(at, "too many commands without a reply")
		return
	}
	f.append(c)
	if f.inFlight == 1 || c.code == wire.ComQuery {
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
	for f.oldest != nil {
		c := f.oldest
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
	payload := c.payload.Bytes()
	rest := payload[min(1, len(payload)):]
	switch c.code {
	case wire.ComQuery:
		text, attributes, err := wire.QueryText(payload, f.caps)
		if err != nil {
			s.Flags |= capture.TextUnknown
		}
		s.Text, s.Attributes = text, attributes
	case wire.ComStmtExecute, wire.ComStmtBulkExecute, wire.ComStmtClose, wire.ComStmtReset, wire.ComStmtFetch, wire.ComStmtSendLongData:
		f.readPrepared(c)
	case wire.ComChangeUser:
		user := wire.ParseChangeUser(payload[:min(len(payload), maxNames)])
		s.Text, c.newSchema = []byte(user.User), []byte(user.Schema)
	case wire.ComInitDB:
		s.Text, c.newSchema = rest, rest
	case wire.ComQuit:
		f.end.Quit = true
	default:
		s.Text = rest
	}
	if c.cut || c.length > uint64(len(payload)) {
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
	f.remove(c)
}

// append puts a command in flight, as the youngest.
func (f *Follower) append(c *command) {
	c.older, c.younger = f.youngest, nil
	if f.youngest != nil {
		f.youngest.younger = c
	} else {
		f.oldest = c
	}
	f.youngest = c
	f.inFlight++
}

// remove takes the oldest command out of flight.
func (f *Follower) remove(c *command) {
	f.oldest = c.younger
	if f.oldest != nil {
		f.oldest.older = nil
	} else {
		f.youngest = nil
	}
	f.inFlight--
	f.recycle(c)
}

// recycle gives back what a command holds, but for small buffers, with which it is kept for the next.
func (f *Follower) recycle(c *command) {
	account := f.account()
	if c.taken > 0 {
		account.Give(c.taken)
	}
	c.payload.Reset(account)
	c.file.Reset(account)
	c.reply.Release()
	c.reply.Memory = nil
	schema := c.statement.Schema[:0]
	c.statement = capture.Statement{}
	c.statement.Schema = schema
	c.older, c.younger = nil, nil
	c.code, c.length, c.hashing, c.newSchema, c.long = 0, 0, false, nil, c.long[:0]
	c.cut, c.read, c.fileLost, c.refused, c.parting = false, false, false, 0, 0
	if f.spare == nil {
		f.spare = c
		return
	}
	commands.Put(c)
}
