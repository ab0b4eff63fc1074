package capture

import (
	"errors"

	"redrive/internal/wire"
)

// OnFull is what a Recorder does when a record finds no room. A record that is larger than the whole account is stored
// truncated in any case.
type OnFull int

const (
	// ShedStatements leaves records out, one by one. What others hang on has room of its own: session records, commands
	// that change a session or its prepared statements, COMMIT and ROLLBACK, begins, and the ends of begun statements.
	ShedStatements OnFull = iota

	// ShedTransactions leaves transactions out, whole: one whose first statement found room has more room for the others
	// than is left to those that have not begun. Should even that not do, its rest is left out and the gap counts it.
	ShedTransactions

	// Block waits for room.
	Block

	// StopRecording ends the recording there.
	StopRecording
)

// ErrFull is why a recording ended that was to end when it is full.
var ErrFull = errors.New("the recording was full and has ended, as it was told to (a larger --memory-limit gives it more room)")

// A cause is why a record is not stored.
type cause byte

const (
	stored  cause = iota // it is
	full                 // there was no room for it
	large                // there can be none
	failed               // the file cannot be written
	stopped              // the recording had ended, for it was full
	causes
)

var reasons = [causes]string{
	full:    "the recording was full: writing the file was slower than what came in (--memory-limit bounds what may wait)",
	large:   "larger than the recording may hold at all: see --memory-limit",
	failed:  "the file could not be written",
	stopped: "the recording was full, and was told to end there",
}

// keeps reports whether later statements hang on a command: what it did to its session.
func keeps(s *Statement) bool {
	switch s.Command {
	case wire.ComStmtPrepare, wire.ComStmtClose, wire.ComStmtReset, wire.ComChangeUser, wire.ComInitDB, wire.ComResetConnection, wire.ComSetOption:
		return true
	}
	return s.TxnEnd == TxnCommit || s.TxnEnd == TxnRollback
}

// A shedding knows which transactions are being left out, by session: of those that are open the last statement was.
type shedding struct {
	txns map[uint64]uint64
	// After an outage it knows of the transactions that began since, too: of all others something was lost.
	since map[uint64]uint64
}

// of reports whether the rest of the transaction a statement belongs to is left out.
func (t *shedding) of(s *Statement) bool {
	if s.Txn == 0 {
		return false
	}
	if len(t.txns) > 0 && t.txns[s.Session] == s.Txn {
		return true
	}
	return t.since != nil && s.Place > 1 && t.since[s.Session] != s.Txn
}

// began reports whether the statement that is open in a session will belong to a transaction that is left out.
func (t *shedding) began(session uint64) bool { return len(t.txns) > 0 && t.txns[session] != 0 }

// shed notes a statement that was left out, and reports whether that cut a transaction.
func (t *shedding) shed(s *Statement) (cut bool) {
	if s.Txn == 0 {
		return false
	}
	cut = s.Place > 1 && t.txns[s.Session] != s.Txn
	t.over(s.Session)
	if s.TxnEnd == TxnOpen {
		t.txns[s.Session] = s.Txn
	}
	return cut
}

// kept notes a statement that was stored.
func (t *shedding) kept(s *Statement) {
	if len(t.txns) == 0 && t.since == nil || s.Txn == 0 {
		return
	}
	t.over(s.Session)
	if t.since != nil && s.TxnEnd == TxnOpen {
		t.since[s.Session] = s.Txn
	}
}

// over forgets what was open in a session.
func (t *shedding) over(session uint64) {
	delete(t.txns, session)
	delete(t.since, session)
}

// outage notes that something was lost of every transaction that is open.
func (t *shedding) outage() { t.since = map[uint64]uint64{} }
