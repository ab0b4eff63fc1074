package capture

import "time"

// A model is what writer and reader of a block both know of the records before: values are stored as differences from
// what it expects, which mostly are 0. It is reset with every block, so that blocks can be read alone.
type model struct {
	last     time.Duration // latest time stored: Done or, of a begin, its last known time; At
	id       uint64        // of the session that got its slot last
	sessions []sessionState
	index    []uint32 // by word: which of texts is its, counted from 1; 0 if it is no text
	texts    []textState
}

// sessionState is the model's memory of one session, by slot.
type sessionState struct {
	id       uint64
	number   uint64
	txn      uint64 // the last one that was not 0
	place    uint64
	ended    bool // the transaction ended with the last statement
	schema   uint64
	done     time.Duration
	intended time.Duration
}

// textState is the model's memory of the last statement with one text.
type textState [numberCount]uint64

func (m *model) reset() {
	m.last, m.id = 0, 0
	m.sessions = m.sessions[:0]
	m.index, m.texts = m.index[:0], m.texts[:0]
}

// text is the memory of the text that word is the template of.
func (m *model) text(word uint64) *textState {
	if word < uint64(len(m.index)) && m.index[word] != 0 {
		return &m.texts[m.index[word]-1]
	}
	for uint64(len(m.index)) <= word {
		m.index = append(m.index, 0)
	}
	m.texts = append(m.texts, textState{})
	m.index[word] = uint32(len(m.texts))
	return &m.texts[len(m.texts)-1]
}

// expect turns t, the numbers of the last statement with the same text, into what is expected of the next one. What
// belongs to the session is taken from there, and what is rare is expected to be absent.
func (s *sessionState) expect(t *textState) {
	t[numNumber] = s.number + 1
	t[numTxn], t[numPlace] = s.txn, s.place+1
	if s.ended {
		t[numTxn], t[numPlace] = s.txn+1, 1
	}
	t[numSchema] = s.schema
	t[numTextHash], t[numStalled], t[numErrno], t[numSQLState] = 0, 0, 0, 0
}

// note remembers a statement, whose numbers are t.
func (m *model) note(s *sessionState, t *textState, stmt *Statement) {
	s.number, s.schema = t[numNumber], t[numSchema]
	if t[numTxn] != 0 {
		s.txn, s.place, s.ended = t[numTxn], t[numPlace], t[numTxnEnd] != uint64(TxnOpen)
	}
	if stmt.Intended > 0 {
		s.intended = stmt.Intended
	}
	if stmt.Done > 0 {
		s.done, m.last = stmt.Done, stmt.Done
	}
}

// intendedFrom is what Intended is stored as a distance from.
func (s *sessionState) intendedFrom() time.Duration {
	if s.intended != 0 {
		return s.intended
	}
	return s.done
}

// newSession gives a session the next slot.
func (m *model) newSession(id uint64) {
	m.id = id
	m.sessions = append(m.sessions, sessionState{id: id, done: m.last})
}
