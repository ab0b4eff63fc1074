package session

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"redrive/capture"
	"redrive/internal/wire"
)

// freeInFlight is how many commands may be in flight before each takes its size from the account.
const freeInFlight = 8

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

// A use says what a packet of the client's is for, which its first bytes decide.
type use byte

const (
	useCommand use = iota
	useResponse
	useSecret // a round of an authentication
	useFile   // a file that the server asked for
)

// A Follower follows one connection. Bytes are given to it in the order they were read from the sockets, both
// directions taken together. It is not safe for concurrent use.
type Follower struct {
	Handler      Handler
	MaxStatement int  // bytes of a command that are kept; 0 means DefaultMaxStatement
	KeepFiles    bool // keep what the client sends for LOCAL INFILE, up to MaxStatement bytes

	// Memory is the account that what is kept of commands in flight is taken from, and given back to when they are done.
	// What it refuses is not kept: the command is truncated as if MaxStatement were that short. Nil means no limit.
	Memory *capture.Memory

	stage  stage
	client stream
	server stream

	greeting wire.Greeting // of which but little is kept once it is answered
	start    capture.SessionStart
	caps     wire.Capabilities
	schema   []byte
	status   uint16 // flags of the last reply that had any
	end      End

	transactions Transactions
	statements   map[uint32]*prepared
	lastID       uint32 // of the latest statement prepared; 0 if that failed

	oldest    *command      // of those in flight
	youngest  *command      // of the same
	inFlight  int           // how many there are
	spare     *command      // for the next one
	incoming  *command      // the command whose bytes are coming in
	arrived   time.Duration // when its first byte did
	number    uint64        // of the latest command
	sending   use           // what the client's packet at hand is for
	answering *command      // whose reply the server's packet at hand belongs to; nil if nobody asked
	changing  int           // COM_CHANGE_USERs in flight: until its OK or ERR both sides exchange packets that are secrets
	asked     bool          // the server has spoken in an authentication, and the client may answer
	uploading bool          // the client is sending a file

	interrupted bool // we told the client an error in the place of the reply's rest

	held int // bytes taken from Memory
}

// A stream is one direction of the connection.
type stream struct {
	split  wire.Splitter
	frames *wire.Inflater // nil unless compressed
	offset uint64         // bytes taken
	packet wire.Buffer    // one that must be read whole and came in pieces
}

func (s *stream) atBoundary() bool {
	return s.split.AtBoundary() && (s.frames == nil || s.frames.AtBoundary())
}

// End is what the follower knows of how the connection ended.
type End struct {
	LoggedIn bool
	Quit     bool       // the client said COM_QUIT
	Parting  wire.Error // an error the server sent unasked, or refusing the login; Errno 0 if none
	Commands uint64     // number of the last command
	Open     bool       // a transaction was open
}

// FromClient takes bytes read from the client at the given time; sent is when the write that passed them on returned,
// 0 if it has not yet: Passed then says so later.
func (f *Follower) FromClient(b []byte, at, sent time.Duration) { f.take(&f.client, b, at, sent) }

// FromServer takes bytes read from the server at the given time.
func (f *Follower) FromServer(b []byte, at time.Duration) {
	if !f.interrupted {
		f.take(&f.server, b, at, 0)
	}
}

// take follows the bytes of one direction. Of a compressed one each frame is inflated once it is whole: only then its
// packets have been seen.
func (f *Follower) take(s *stream, b []byte, at, sent time.Duration) {
	if f.stage == stageLost {
		return
	}
	defer f.recover()
	for len(b) > 0 && f.stage != stageLost {
		frames := s.frames
		if frames == nil {
			rest := f.piece(s, b, at, sent)
			s.offset += uint64(len(b) - len(rest))
			b = rest
			continue
		}
		content, n, err := frames.Next(b)
		if err != nil {
			f.lose(at, err.Error())
			return
		}
		for len(content) > 0 && f.stage != stageLost {
			content = f.piece(s, content, at, sent)
		}
		frames.Release()
		s.offset += uint64(n)
		b = b[n:]
	}
}

// piece takes the first piece of a packet off b.
func (f *Follower) piece(s *stream, b []byte, at, sent time.Duration) (rest []byte) {
	fromClient := s == &f.client
	if s.split.AtBoundary() {
		if fromClient {
			f.arrived = at
		} else if n := f.skip(b, at); n > 0 {
			return b[n:]
		}
	}
	var p wire.Piece
	rest, ok := s.split.Cut(b, &p)
	switch {
	case !ok:
	case fromClient:
		f.clientPiece(&p, at, sent)
	default:
		f.serverPiece(&p, at)
	}
	if p.Tail && s.packet.Len() > 0 {
		s.packet.Reset(f.account())
	}
	return rest
}

// Passed tells that all bytes given to FromClient so far have been written to the server, the last at this time.
func (f *Follower) Passed(at time.Duration) {
	for c := f.youngest; c != nil && c.statement.Sent == 0; c = c.older {
		c.statement.Sent = at
	}
}

// Stalled tells that passing bytes on to the client took this long: the reply waited for a client that did not read.
func (f *Follower) Stalled(d time.Duration) {
	if f.oldest != nil {
		f.oldest.statement.Stalled += d
	}
}

// EachOpen calls visit for every command in flight, oldest first. A command whose last byte has not come is not among
// them. Session is left to the caller.
func (f *Follower) EachOpen(visit func(s *capture.Statement)) {
	for c := f.oldest; c != nil; c = c.younger {
		visit(&c.statement)
	}
}

// Arriving tells since when the bytes of a command have been coming in that is not yet whole, 0 if there is none.
func (f *Follower) Arriving() time.Duration {
	if f.stage != stageCommands || f.client.atBoundary() {
		return 0
	}
	return f.arrived
}

// Idle reports whether the connection may be closed without harm: between commands, with no transaction open.
func (f *Follower) Idle() bool { return f.Quiet() && !f.transactions.Open() }

// Quiet reports whether the follower stands between two commands of a session that is logged in.
func (f *Follower) Quiet() bool {
	return f.stage == stageCommands && f.inFlight == 0 && !f.uploading && f.client.atBoundary() && f.server.atBoundary()
}

// Uploading reports whether the client is sending a file that the server asked for.
func (f *Follower) Uploading() bool { return f.uploading }

// InFlight is the number of commands sent and not yet answered.
func (f *Follower) InFlight() int { return f.inFlight }

// State describes the session as it is now, for a recording that begins in its midst. Session, At,
// Accepted and Client are left to the caller. The slices are valid until the next bytes are shown.
func (f *Follower) State() capture.SessionStart {
	state := f.start
	state.Joined = true
	state.Schema = string(f.schema)
	state.Status = f.status &^ wire.StatusInTrans
	if f.transactions.Open() {
		state.Status |= wire.StatusInTrans
	}
	for id, p := range f.statements {
		if p.unknown {
			continue
		}
		state.Prepared = append(state.Prepared, capture.Prepared{ID: id, Params: uint16(p.params), Types: p.types, Text: p.text})
	}
	slices.SortFunc(state.Prepared, func(a, b capture.Prepared) int { return cmp.Compare(a.ID, b.ID) })
	state.Unknown = "session and user variables, temporary tables, locks, open cursors, statements prepared by SQL, long data sent for the next execute"
	return state
}

// Close tells that the connection has ended: commands in flight are done without, or within, their reply.
func (f *Follower) Close(at time.Duration) End {
	if f.stage != stageLost {
		f.partial(at)
		f.abandon(at, 0)
		f.stage = stageLost // deaf to what might still come
		f.drop()
	}
	f.end.Commands, f.end.Open = f.number, f.transactions.Open()
	return f.end
}

// abandon reports the commands in flight as ended without a reply, or within it.
func (f *Follower) abandon(at time.Duration, flags capture.Flags) {
	if !f.end.LoggedIn { // sent ahead of a login that failed
		f.number = 0
		for f.oldest != nil {
			f.remove(f.oldest)
		}
	}
	for f.oldest != nil {
		c := f.oldest
		if !c.read {
			f.read(c)
		}
		if c.parting != 0 && flags == 0 {
			f.part(c)
		}
		s := &c.statement
		switch {
		case flags != 0:
			s.Flags |= flags
		case !wire.HasReply(c.code):
		case s.First != 0 || f.interrupted && c.reply.Outcome.Errno != 0:
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
	f.Handler.Lost(reason, f.client.offset, f.server.offset)
	f.drop()
}

// drop gives back all memory once nothing more is to be followed.
func (f *Follower) drop() {
	if f.incoming != nil {
		f.recycle(f.incoming)
	}
	f.unprepareAll()
	f.oldest, f.youngest, f.inFlight, f.spare = nil, nil, 0, nil
	f.incoming, f.answering, f.statements, f.schema = nil, nil, nil, nil
	f.greeting, f.start.Attributes = wire.Greeting{}, nil
	for _, s := range []*stream{&f.client, &f.server} {
		s.packet.Reset(f.account())
		if s.frames != nil {
			s.frames.Drop()
		}
		*s = stream{offset: s.offset}
	}
	f.Memory.Give(f.held) // for the attributes, and what a panic has left lying
	f.held = 0
}

// recover turns a panic of ours into a session that is no longer followed.
func (f *Follower) recover() {
	if cause := recover(); cause != nil {
		// What is at hand may be half changed: it is not touched again.
		f.oldest, f.youngest, f.inFlight, f.incoming, f.statements = nil, nil, 0, nil, nil
		f.client, f.server = stream{offset: f.client.offset}, stream{offset: f.server.offset}
		f.lose(f.arrived, fmt.Sprintf("internal error: %v", cause))
	}
}
