package session

import (
	"fmt"
	"time"

	"redrive/capture"
	"redrive/internal/wire"
)

// maxInFlight bounds the commands sent and not yet answered. A client that pipelines more is no longer followed.
const maxInFlight = 4096

// DefaultMaxStatement is how many bytes of one command are kept unless Follower.MaxStatement says otherwise.
const DefaultMaxStatement = 64 << 20

// A Handler hears what a Follower understands. What it is given is valid during the call only.
type Handler interface {
	// LoggedIn is called when the server accepted the login. Session, Accepted and Client are left to the handler.
	LoggedIn(start *capture.SessionStart)
	// Done is called for every command when its reply has ended, in the order of the replies. Session is left to the
	// handler.
	Done(s *capture.Statement)
	// Lost is called once, when the follower gives up. Offsets count the bytes before the ones not understood.
	Lost(reason string, clientOffset, serverOffset uint64)
}

type stage byte

const (
	stageGreeting stage = iota // the server speaks first
	stageResponse              // the client's answer to it
	stageAuth                  // rounds of a plugin
	stageCommands
	stageLost
)

// A Follower follows one connection. Bytes are given to it in the order they were read from the sockets, both
// directions taken together. It is not safe for concurrent use.
type Follower struct {
	Handler      Handler
	MaxStatement int // bytes of a command that are kept; 0 means DefaultMaxStatement

	stage        stage
	client       wire.Splitter
	server       wire.Splitter
	clientBytes  uint64
	serverBytes  uint64
	greeting     wire.Greeting
	start        capture.SessionStart
	caps         wire.Capabilities
	packet       []byte // a login packet that came in pieces
	schema       []byte
	transactions Transactions
	statements   map[uint32]*prepared
	lastID       uint32 // of the latest statement prepared; 0 if that failed
	queue        []*command
	spare        []*command
	incoming     *command      // the command whose bytes are coming in
	arrived      time.Duration // when its first byte did
	number       uint64        // of the latest command
	end          End
}

// End is what the follower knows of how the connection ended.
type End struct {
	LoggedIn bool
	Quit     bool       // the client said COM_QUIT
	Parting  wire.Error // an error the server sent unasked, or refusing the login; Errno 0 if none
	Commands uint64     // number of the last command
	Open     bool       // a transaction was open
}

// A prepared statement, as long as the server keeps it.
type prepared struct {
	text   []byte
	params int
	types  []byte // of the last execute that had any
}

// FromClient takes bytes read from the client at the given time; sent is when the write that passed them on returned,
// 0 if it has not yet: Passed then says so later.
func (f *Follower) FromClient(b []byte, at, sent time.Duration) {
	if f.stage == stageLost {
		return
	}
	defer f.recover()
	for len(b) > 0 {
		if f.client.AtBoundary() {
			f.arrived = at
		}
		p, rest, ok := f.client.Next(b)
		f.clientBytes += uint64(len(b) - len(rest))
		if !ok {
			return
		}
		b = rest
		f.clientPiece(p, at, sent)
		if f.stage == stageLost {
			return
		}
	}
}

// Passed tells that all bytes given to FromClient so far have been written to the server, the last at this time.
func (f *Follower) Passed(at time.Duration) {
	for i := len(f.queue) - 1; i >= 0; i-- {
		s := &f.queue[i].statement
		if s.Sent != 0 {
			return
		}
		s.Sent = at
	}
}

// FromServer takes bytes read from the server at the given time.
func (f *Follower) FromServer(b []byte, at time.Duration) {
	if f.stage == stageLost {
		return
	}
	defer f.recover()
	for len(b) > 0 {
		p, rest, ok := f.server.Next(b)
		f.serverBytes += uint64(len(b) - len(rest))
		if !ok {
			return
		}
		b = rest
		f.serverPiece(p, at)
		if f.stage == stageLost {
			return
		}
	}
}

// Stalled tells that passing bytes on to the client took this long: the reply waited for a client that did not read.
func (f *Follower) Stalled(d time.Duration) {
	if len(f.queue) > 0 {
		f.queue[0].statement.Stalled += d
	}
}

// EachOpen calls visit for every command in flight, oldest first. A command whose last byte has not come is not among
// them. Session is left to the caller.
func (f *Follower) EachOpen(visit func(s *capture.Statement)) {
	for _, c := range f.queue {
		visit(&c.statement)
	}
}

// Arriving tells since when the bytes of a command have been coming in that is not yet whole, 0 if there is none.
func (f *Follower) Arriving() time.Duration {
	if f.stage != stageCommands || f.client.AtBoundary() {
		return 0
	}
	return f.arrived
}

// Idle reports whether the connection may be closed without harm: between commands, with no transaction open.
func (f *Follower) Idle() bool {
	return f.stage == stageCommands && len(f.queue) == 0 && f.client.AtBoundary() && f.server.AtBoundary() &&
		!f.transactions.Open()
}

// Schema is the session's default schema.
func (f *Follower) Schema() []byte { return f.schema }

// Close tells that the connection has ended: commands in flight are done without, or within, their reply.
func (f *Follower) Close(at time.Duration) End {
	if f.stage != stageLost {
		f.abandon(at, 0)
	}
	f.end.Commands, f.end.Open = f.number, f.transactions.Open()
	return f.end
}

// abandon reports the commands in flight as ended without a reply, or within it.
func (f *Follower) abandon(at time.Duration, flags capture.Flags) {
	for len(f.queue) > 0 {
		c := f.queue[0]
		if !c.read {
			f.read(c)
		}
		s := &c.statement
		switch {
		case flags != 0:
			s.Flags |= flags
		case !wire.HasReply(c.code):
		case s.First != 0:
			s.Flags |= capture.Cut
		default:
			s.Flags |= capture.Unanswered
		}
		s.Outcome = c.reply.Outcome
		if s.RunsSQL() {
			f.transactions.Abandon(s)
		}
		f.finish(c, at)
	}
}

// lose gives up: the connection goes on, unseen.
func (f *Follower) lose(at time.Duration, reason string) {
	if f.stage == stageLost {
		return
	}
	f.abandon(at, capture.Unparsed)
	f.stage = stageLost
	f.Handler.Lost(reason, f.clientBytes, f.serverBytes)
	f.incoming, f.statements, f.packet = nil, nil, nil
}

// recover turns a panic of ours into a session that is no longer followed.
func (f *Follower) recover() {
	if cause := recover(); cause != nil {
		f.queue = nil // may be half changed: do not touch it again
		f.lose(f.arrived, fmt.Sprintf("internal error: %v", cause))
	}
}
