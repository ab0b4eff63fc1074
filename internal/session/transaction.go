package session

import (
	"redrive/capture"
	"redrive/internal/sqltext"
	"redrive/internal/wire"
)

const errDeadlock = 1213

// Verbs that sqltext.Verb gives for statements that begin and end transactions.
const (
	verbBegin    = "begin"
	verbCommit   = "commit"
	verbRollback = "rollback"
)

// Transactions tells which transaction a session's statements belong to: from the status flags of the replies first,
// from the text only where flags cannot show it (BEGIN within a transaction, COMMIT AND CHAIN) or the server's flags
// prove untrue (a BEGIN that leaves no trace in them). The zero value is a session before its first statement.
type Transactions struct {
	number   uint64 // of the latest transaction
	place    uint32 // of its latest statement
	open     bool
	doubtful bool // an error came since the flags were last seen
	byText   bool // the server's flags do not show transactions
}

// Open reports whether a transaction is open.
func (t *Transactions) Open() bool { return t.open }

// Reset notes that the session was reset: what was open is rolled back.
func (t *Transactions) Reset() { t.open, t.doubtful = false, false }

// Doubt notes that what is open may have been rolled back unseen: the next flags tell.
func (t *Transactions) Doubt() { t.doubtful = t.open }

// Assign fills in Txn, Place and TxnEnd of an answered statement that ran SQL. Call it in the order of the replies.
func (t *Transactions) Assign(s *capture.Statement) {
	switch o := &s.Outcome; {
	case o.Errno != 0:
		t.failed(s)
	case t.open:
		t.within(s, t.shows(s))
	default:
		t.outside(s, t.shows(s))
	}
	s.Txn, s.Place = t.number, t.place
}

// shows tells whether a transaction is open after s.
func (t *Transactions) shows(s *capture.Statement) bool {
	flagged := s.Outcome.HasStatus && s.Outcome.Status&wire.StatusInTrans != 0
	if flagged {
		t.byText = false
		return true
	}
	if !t.byText && (t.open || !s.Outcome.HasStatus) {
		return false
	}
	switch verb(s) {
	case verbBegin:
		if s.Outcome.Results > 1 { // of several statements the text shows but the first, the flags what all came to
			break
		}
		t.byText = true
		return true
	case verbCommit, verbRollback:
		return false
	}
	return t.byText && t.open
}

// outside places a statement that found no transaction open.
func (t *Transactions) outside(s *capture.Statement, open bool) {
	t.begin()
	t.open, t.doubtful = open, false
	if !open {
		s.TxnEnd = capture.TxnAuto
	}
}

// within places a statement that found a transaction open.
func (t *Transactions) within(s *capture.Statement, open bool) {
	v := verb(s)
	ends := v == verbCommit || v == verbRollback
	doubtful := t.doubtful
	t.doubtful = false
	switch {
	case open && v == verbBegin: // ended the open one before it began its own; flags cannot show that
		t.begin()
	case open && ends: // AND CHAIN
		t.place++
		s.TxnEnd = endOf(v)
		t.open = false
	case open:
		t.place++
	case doubtful && !ends: // the error before had rolled back
		t.open = false
		t.outside(s, false)
	default:
		t.place++
		s.TxnEnd = endOf(v)
		t.open = false
	}
}

// failed places a statement that ended in an error: its reply has no flags.
func (t *Transactions) failed(s *capture.Statement) {
	if !t.open {
		t.begin()
		s.TxnEnd = capture.TxnAuto
		return
	}
	t.place++
	t.doubtful = true
	if s.Outcome.Errno == errDeadlock {
		s.TxnEnd = capture.TxnError
		t.open = false
	}
}

// Abandon places a statement whose reply did not come whole: with it the session ended, or was no longer followed.
func (t *Transactions) Abandon(s *capture.Statement) {
	if t.open {
		t.place++
	} else {
		t.begin()
	}
	s.Txn, s.Place, s.TxnEnd = t.number, t.place, capture.TxnDisconnect
}

func (t *Transactions) begin() {
	t.number++
	t.place = 1
}

func endOf(verb string) capture.TxnEnd {
	switch verb {
	case verbCommit:
		return capture.TxnCommit
	case verbRollback:
		return capture.TxnRollback
	}
	return capture.TxnImplicit
}

// verb is the statement's, if it may concern transactions; the first letter spares the lexer most of the time.
func verb(s *capture.Statement) string {
	if len(s.Text) == 0 {
		return ""
	}
	switch s.Text[0] {
	case 'S', 's': // START TRANSACTION, but mostly SELECT
		if len(s.Text) < 2 || s.Text[1]|0x20 != 't' {
			return ""
		}
	case 'U', 'u', 'I', 'i', 'D', 'd':
		return ""
	}
	return sqltext.Verb(s.Text)
}
