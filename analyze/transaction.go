package analyze

import (
	"encoding/binary"
	"strconv"
	"strings"
	"time"

	"redrive/capture"
	"redrive/internal/stats"
)

// maxRuns bounds how much of a transaction's sequence is told apart; what comes after is "…".
const maxRuns = 64

// A run is a statement type and how often it came in a row.
type run struct{ kind, times int }

// A transaction is one that is open: its sequence so far and its figures.
type transaction struct {
	number     uint64 // 0 for none
	place      uint32 // of its latest member
	incomplete bool   // a member is missing
	untimed    bool   // a member's times are not known
	runs       []run
	first      time.Duration
	last       time.Duration
	rows       uint64
	affected   uint64
	errors     uint64
}

// A shape adds up the transactions that are the same sequence of statement types and ended the same way.
type shape struct {
	name       string
	statements uint64 // of each
	count      uint64
	rows       uint64
	affected   uint64
	errors     uint64
	duration   stats.Histogram
}

// addMember puts a statement into its transaction, and counts that when it has ended.
func (s *Summary) addMember(st *capture.Statement, sess *session, c *class) {
	if st.Txn == 0 {
		return
	}
	t := &sess.txn
	if t.number != 0 && t.number != st.Txn {
		// It ended without a word: by the BEGIN of the next one, or by something that was shed.
		t.incomplete = t.incomplete || st.Txn != t.number+1 || st.Number != sess.number+1
		s.endTransaction(t, capture.TxnImplicit)
	}
	if t.number == 0 {
		*t = transaction{number: st.Txn, runs: t.runs[:0], first: st.Started()}
	}
	t.add(st, c.kind)
	if st.TxnEnd != capture.TxnOpen {
		s.endTransaction(t, st.TxnEnd)
	}
}

func (t *transaction) add(st *capture.Statement, kind int) {
	if st.Place != t.place+1 {
		t.incomplete = true
	}
	t.place = st.Place
	t.last = max(t.last, st.Done)
	t.untimed = t.untimed || !answered(st)
	t.rows += st.Outcome.Rows
	t.affected += st.Outcome.Affected
	if refused(st) != 0 {
		t.errors++
	}
	switch n := len(t.runs); {
	case n > 0 && t.runs[n-1].kind == kind:
		t.runs[n-1].times++
	case n <= maxRuns:
		t.runs = append(t.runs, run{kind, 1})
	}
}

// endTransaction counts a transaction; TxnOpen as its end means that the recording ended before it.
func (s *Summary) endTransaction(t *transaction, end capture.TxnEnd) {
	switch {
	case end == capture.TxnOpen:
		s.ends.Open++
	case t.incomplete:
		s.ends.Incomplete++
	default:
		s.ends.add(end)
		s.shape(t, end).add(t)
	}
	t.number = 0
}

func (p *shape) add(t *transaction) {
	p.count++
	p.rows += t.rows
	p.affected += t.affected
	p.errors += t.errors
	if !t.untimed {
		p.duration.Record(t.last - t.first)
	}
}

// shape finds what t is one of. The key is binary, so that only new shapes cost an allocation.
func (s *Summary) shape(t *transaction, end capture.TxnEnd) *shape {
	key := append(s.key[:0], byte(end))
	for _, r := range t.runs {
		key = binary.AppendUvarint(key, uint64(r.kind))
		if len(t.runs) <= maxRuns {
			key = binary.AppendUvarint(key, uint64(r.times))
		}
	}
	s.key = key
	p := s.shapes[string(key)]
	if p == nil {
		p = &shape{name: s.shapeName(t.runs, end), statements: uint64(t.place)}
		s.shapes[string(key)] = p
	}
	return p
}

func (s *Summary) shapeName(runs []run, end capture.TxnEnd) string {
	var parts []string
	for i, r := range runs {
		name := s.classes.kinds[r.kind]
		switch {
		case i == maxRuns:
			name = "…"
		case r.times > 1 && len(runs) <= maxRuns:
			name += " ×" + strconv.Itoa(r.times)
		}
		parts = append(parts, name)
	}
	return strings.Join(parts, ", ") + endNote(end)
}

// endNote says how a transaction ended where its last statement does not.
func endNote(end capture.TxnEnd) string {
	switch end {
	case capture.TxnAuto:
		return " (autocommit)"
	case capture.TxnImplicit:
		return " (implicit commit)"
	case capture.TxnError:
		return " (rolled back by the server)"
	case capture.TxnDisconnect:
		return " (disconnected)"
	}
	return ""
}

// Ends counts transactions by how they ended.
type Ends struct {
	Commit     uint64 `json:"commit"`
	Rollback   uint64 `json:"rollback"`
	Autocommit uint64 `json:"autocommit"`
	Implicit   uint64 `json:"implicit"`   // committed by the statement that followed, or by DDL
	Error      uint64 `json:"error"`      // rolled back by the server
	Disconnect uint64 `json:"disconnect"` // with its session
	Incomplete uint64 `json:"incomplete"` // ended, but a member is missing from the capture
	Open       uint64 `json:"open"`       // when the recording ended; not counted as transactions
}

func (e *Ends) add(end capture.TxnEnd) {
	switch end {
	case capture.TxnCommit:
		e.Commit++
	case capture.TxnRollback:
		e.Rollback++
	case capture.TxnAuto:
		e.Autocommit++
	case capture.TxnImplicit:
		e.Implicit++
	case capture.TxnError:
		e.Error++
	case capture.TxnDisconnect:
		e.Disconnect++
	}
}

// ended is how many transactions ended within the capture.
func (e Ends) ended() uint64 {
	return e.Commit + e.Rollback + e.Autocommit + e.Implicit + e.Error + e.Disconnect + e.Incomplete
}
