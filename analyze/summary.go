package analyze

import (
	"time"

	"redrive/capture"
	"redrive/internal/sqltext"
	"redrive/internal/stats"
	"redrive/internal/wire"
)

// Options say how to summarise. The zero value groups by type and lists every group.
type Options struct {
	ByDigest     bool         // group statements by digest text instead of by type
	Top          int          // list so many groups and transaction types, the others as one; 0 means all
	IgnoreErrors IgnoreErrors // what sysbench was told to ignore; nil means its default
}

// A Summary adds up the records of one run. Its memory grows with the number of groups, transaction types and open
// sessions, not with the number of records. It is not safe for concurrent use.
type Summary struct {
	options  Options
	classes  *classifier
	sessions map[uint64]*session
	shapes   map[string]*shape
	commands map[byte]*command
	errors   map[errorKey]uint64
	states   map[uint16][5]byte // SQLSTATE by error number
	key      []byte             // scratch for looking up shapes

	total    group // all statements; their times are in clocks
	clocks   stats.Clocks
	sysbench sysbenchCounter
	ends     Ends
	lost     losses

	sessionCount uint64
	timed        bool // first and last are set
	first, last  time.Duration
}

// losses are what a reader of the figures must know is missing from them.
type losses struct {
	gaps      []Gap
	shed      uint64 // statements, by all gaps
	shedOther uint64 // session records
	begun     uint64 // statements that began and whose end has not been seen
	late      uint64 // sessions whose start is not in the capture
	rejected  uint64
	opaque    uint64
	dryRun    uint64 // statements that were never sent
	unparsed  uint64
	truncated uint64
}

// A session is what is kept of an open one.
type session struct {
	prevDone time.Duration // Done of its previous command, at first the end of the login
	number   uint64        // of its latest command
	mode     sqltext.Mode
	txn      transaction
}

// A command counts commands that run no SQL.
type command struct{ count, errors uint64 }

type errorKey struct {
	errno uint16
	kind  int // type of statement, or command
}

// NewSummary returns an empty summary.
func NewSummary(o Options) *Summary {
	return &Summary{
		options: o, classes: newClassifier(o.ByDigest),
		sessions: map[uint64]*session{}, shapes: map[string]*shape{}, commands: map[byte]*command{},
		errors: map[errorKey]uint64{}, states: map[uint16][5]byte{},
		sysbench: sysbenchCounter{ignore: o.IgnoreErrors.orDefault()},
	}
}

// Add takes one record, in the order of the capture. It keeps nothing of it.
func (s *Summary) Add(r *capture.Record) {
	switch r.Kind {
	case capture.KindStatement:
		s.add(&r.Statement)
	case capture.KindBegin:
		s.lost.begun++
		s.session(r.Statement.Session, r.Statement.Number, false)
	case capture.KindSessionStart:
		s.start(&r.Start)
	case capture.KindSessionEnd:
		s.end(&r.End)
	case capture.KindGap:
		s.lost.add(&r.Gap)
	}
}

func (s *Summary) start(r *capture.SessionStart) {
	if _, ok := s.sessions[r.Session]; !ok {
		s.sessionCount++
	}
	s.sessions[r.Session] = &session{mode: modeOf(r.Status), prevDone: r.Ready()}
}

func (s *Summary) end(r *capture.SessionEnd) {
	switch r.Reason {
	case capture.EndRejected:
		s.lost.rejected++
	case capture.EndOpaque:
		s.lost.opaque++
	}
	sess, ok := s.sessions[r.Session]
	if !ok {
		return
	}
	if sess.txn.number != 0 {
		s.endTransaction(&sess.txn, s.endAtSessionEnd(r, sess))
	}
	delete(s.sessions, r.Session)
}

// endAtSessionEnd is how a transaction ended that was open when its session was over. Where only the recording stopped
// it may well have gone on.
func (s *Summary) endAtSessionEnd(r *capture.SessionEnd, sess *session) capture.TxnEnd {
	if r.Commands > sess.number {
		sess.txn.incomplete = true
	}
	if r.Reason == capture.EndStopped || r.Reason == capture.EndOpaque {
		return capture.TxnOpen
	}
	return capture.TxnDisconnect
}

// session finds the session of a command. The last command of one that has ended may come after the end; it is not
// counted as a session again.
func (s *Summary) session(id, number uint64, last bool) *session {
	if sess, ok := s.sessions[id]; ok {
		return sess
	}
	sess := &session{number: number - 1}
	if last {
		return sess
	}
	s.sessionCount++
	s.lost.late++
	s.sessions[id] = sess
	return sess
}

func (s *Summary) add(st *capture.Statement) {
	sess := s.session(st.Session, st.Number, st.Flags&(capture.Unanswered|capture.Cut) != 0)
	if st.Flags.Has(capture.Begun) && s.lost.begun > 0 {
		s.lost.begun--
	}
	if st.RunsSQL() {
		s.addStatement(st, sess)
	} else {
		s.addCommand(st)
	}
	sess.prevDone = max(sess.prevDone, st.Done)
	sess.number = max(sess.number, st.Number)
	if st.Outcome.HasStatus {
		sess.mode = modeOf(st.Outcome.Status)
	}
}

func modeOf(status uint16) sqltext.Mode {
	if status&wire.StatusNoBackslashEscapes != 0 {
		return sqltext.NoBackslashEscapes
	}
	return 0
}

func (s *Summary) addCommand(st *capture.Statement) {
	c := s.commands[st.Command]
	if c == nil {
		c = &command{}
		s.commands[st.Command] = c
	}
	c.count++
	if refused(st) != 0 {
		c.errors++
		s.addError(st, s.classes.kind(wire.CommandName(st.Command)))
	}
}

func (s *Summary) addStatement(st *capture.Statement, sess *session) {
	c := s.classes.class(st, sess.mode)
	c.group.add(st, sess.prevDone)
	s.total.tally(st)
	s.sysbench.add(st, c)
	s.addError(st, c.kind)
	s.addMember(st, sess, c)
	s.addClocks(st, sess.prevDone)
	s.lost.see(st)
}

// addError counts an error of a type of statement or, of other commands, under the command's name.
func (s *Summary) addError(st *capture.Statement, kind int) {
	errno := refused(st)
	if errno == 0 {
		return
	}
	s.errors[errorKey{errno, kind}]++
	s.states[errno] = st.Outcome.SQLState
}

// addClocks widens the span of the run, and adds up how long statements took, how late they were and why.
func (s *Summary) addClocks(st *capture.Statement, prevDone time.Duration) {
	if st.Flags.Has(capture.NoOutcome) {
		return
	}
	begin, end := st.Started(), max(st.Started(), st.Done)
	if !s.timed {
		s.timed, s.first = true, begin
	}
	s.first = min(s.first, begin)
	s.last = max(s.last, end)
	if answered(st) {
		s.clocks.Record(st, prevDone)
	}
}

func (l *losses) add(g *capture.Gap) {
	l.shed += g.Statements
	l.shedOther += g.Sessions
	for i := range l.gaps {
		if have := &l.gaps[i]; have.Reason == g.Reason {
			have.From, have.To = min(have.From, g.From), max(have.To, g.To)
			have.Statements += g.Statements
			have.Sessions += g.Sessions
			have.Cut += g.Cut
			have.Gaps++
			return
		}
	}
	l.gaps = append(l.gaps, Gap{g.Reason, 1, g.Statements, g.Sessions, g.Cut, g.From, g.To})
}

func (l *losses) see(st *capture.Statement) {
	if st.Flags.Has(capture.NoOutcome) {
		l.dryRun++
	}
	if st.Flags.Has(capture.Unparsed) {
		l.unparsed++
	}
	if st.Flags.Has(capture.Truncated) {
		l.truncated++
	}
}

// refused is the number of the error by which the server refused the statement; 0 if it did not. That of a reply that was
// cut off is not the server's: it is what the proxy told the client in the place of the rest.
func refused(st *capture.Statement) uint16 {
	if st.Flags.Has(capture.Cut) {
		return 0
	}
	return st.Outcome.Errno
}

// answered reports whether the statement's whole reply was seen, and so its time is known.
func answered(st *capture.Statement) bool {
	return st.Flags&(capture.NoOutcome|capture.Unanswered|capture.Cut|capture.Unparsed) == 0
}
