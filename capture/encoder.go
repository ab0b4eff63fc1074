package capture

import (
	"hash/fnv"
	"time"

	"redrive/internal/wire"
)

// maxStatement bounds the byte strings of one statement in a file; longer ones are stored truncated. At worst (GTIDs in
// which every second byte is a digit) they take 1¾ of their length, which stays below maxRaw.
const maxStatement = 128 << 20

// maxKept is how much of a longer text is kept.
const maxKept = 1 << 20

// An encoder turns records into blocks.
type encoder struct {
	block   *block // being built
	model   model
	words   words
	slots   map[uint64]uint32 // by session
	numbers textState         // scratch
	begun   openSet
	limit   int // maxStatement
}

// Bounds of what an encoder remembers within a block, far beyond what a block of ordinary statements holds.
const (
	maxTexts = 1 << 12
	maxSlots = 1 << 14
)

func newEncoder() *encoder {
	e := &encoder{words: newWords(), slots: map[uint64]uint32{}, begun: openSet{}, limit: maxStatement}
	e.begin(new(block))
	return e
}

// begin goes on with an empty block.
func (e *encoder) begin(b *block) {
	b.reset()
	e.block = b
	e.model.reset()
	e.words.reset()
	clear(e.slots)
}

// full reports whether the block should end here.
func (e *encoder) full() bool {
	return e.block.size >= blockSize || e.block.info.Records >= maxRecords || len(e.words.ends) >= maxWords-64 ||
		len(e.model.texts) >= maxTexts || len(e.model.sessions) >= maxSlots
}

// scaffold is about how many bytes the encoder takes beside its block.
func (e *encoder) scaffold() int {
	const perText, perWord, perSession = 2 * numberCount * 8, 32, 256
	return perText*cap(e.model.texts) + perWord*cap(e.words.ends) + perSession*cap(e.model.sessions)
}

// take ends the block and goes on with next, which is another one.
func (e *encoder) take(next *block) *block {
	b := e.block
	e.begin(next)
	return b
}

// record counts a record and stores its kind.
func (e *encoder) record(kind Kind) {
	b := e.block
	b.put(colKinds, uint64(kind-KindStatement), b.info.Records)
	b.counts[kind]++
	b.info.Records++
}

// session stores which session the next record is of, and returns the model's memory of it.
func (e *encoder) session(id uint64) *sessionState {
	b := e.block
	before := b.info.Records - b.counts[KindGap]
	slot, known := e.slots[id]
	if !known {
		slot = uint32(len(e.model.sessions))
		e.slots[id] = slot
		b.put(colSessions, zigzag(id-e.model.id), int(slot))
		e.model.newSession(id)
	}
	b.put(colSlots, uint64(slot), before)
	return &e.model.sessions[slot]
}

// statement stores a statement; whether it was begun is known from the begins before it.
func (e *encoder) statement(s *Statement) {
	flags := s.Flags &^ Begun
	id := command{s.Session, s.Number}
	place := s.Started()
	if _, begun := e.begun.remove(id); begun {
		e.block.over = append(e.block.over, id)
		flags |= Begun
		place = s.Done
	}
	e.command(KindStatement, s, flags)
	e.block.note(place, s.Done)
}

func (e *encoder) beginStatement(s *Statement) {
	e.command(KindBegin, s, s.Flags&^Begun)
	open := opening{command{s.Session, s.Number}, s.Started()}
	e.begun.add(open)
	e.block.begun = append(e.block.begun, open)
	e.block.note(s.Started(), none)
}

// command stores what statements and begins have in common, which is all but the kind.
func (e *encoder) command(kind Kind, s *Statement, flags Flags) {
	if bytesOf(s) > e.limit {
		s = shorten(s, maxKept)
		flags |= Truncated
	}
	b := e.block
	before := b.commands()
	session := e.session(s.Session)
	text := e.text(s.Text, before)
	b.put(colGTIDs, e.words.text(b, s.Outcome.State.GTIDs, colGTIDs), before)
	e.times(s, session, before)
	b.putBytes(colValueBytes, s.Params.Values)
	b.putBytes(colAttributeBytes, s.Attributes)
	b.put(colLong, e.words.word(b, s.Params.Long, 0), before)
	b.put(colFile, e.words.word(b, s.File, 0), before)
	t := e.model.text(text)
	session.expect(t)
	e.fill(s, flags, t)
	for i, v := range &e.numbers {
		if v != t[i] {
			b.putValue(colNumbers+i, zigzag(v-t[i]), before)
		}
	}
	*t = e.numbers
	e.model.note(session, t, s)
	e.record(kind)
}

// text stores the text, and returns the number of its template: 0 of one that is too large to look for digits in, which
// would hold up the caller. Such a one costs a copy, and compressing, which is done elsewhere, makes up for it.
func (e *encoder) text(p []byte, before int) uint64 {
	if len(p) >= largeBytes {
		e.block.put(colPlain, e.words.word(e.block, p, 0), before)
		return 0
	}
	text := e.words.text(e.block, p, colText)
	e.block.put(colText, text, before)
	return text
}

// times stores each time as its distance from the one before.
func (e *encoder) times(s *Statement, session *sessionState, before int) {
	b := e.block
	b.putTime(colIntended, timeCode(s.Intended, session.intendedFrom()), before)
	p := max(session.done, s.Intended)
	for i, t := range [...]time.Duration{s.Received, s.Complete, s.Sent, s.First, s.Done} {
		b.putTime(colReceived+i, timeCode(t, p), before)
		if t > 0 {
			p = t
		}
	}
}

// fill makes a statement's numbers; expected ones save looking words up.
func (e *encoder) fill(s *Statement, flags Flags, expected *textState) {
	b, o, n := e.block, &s.Outcome, &e.numbers
	n[numNumber], n[numTxn], n[numPlace], n[numTxnEnd] = s.Number, s.Txn, uint64(s.Place), uint64(s.TxnEnd)
	n[numCommand], n[numFlags], n[numStatementID] = uint64(s.Command), uint64(flags), uint64(s.StatementID)
	n[numSchema] = e.words.word(b, s.Schema, expected[numSchema])
	n[numTextLen], n[numTextHash] = s.TextLen, s.TextHash
	n[numNulls] = e.words.word(b, s.Params.Nulls, expected[numNulls])
	n[numTypes] = e.words.word(b, s.Params.Types, expected[numTypes])
	n[numValues], n[numAttributes] = uint64(len(s.Params.Values)), uint64(len(s.Attributes))
	n[numStalled] = uint64(s.Stalled)
	n[numRequest] = s.RequestBytes - inRequest(s)
	n[numResults], n[numResultSets] = uint64(o.Results), uint64(o.ResultSets)
	n[numRows], n[numAffected], n[numLastInsertID] = o.Rows, o.Affected, o.LastInsertID
	n[numWarnings], n[numStatus], n[numBits] = uint64(o.Warnings), uint64(o.Status), bitsOf(o)
	n[numErrno], n[numSQLState] = uint64(o.Errno), 0
	if o.SQLState != [5]byte{} {
		n[numSQLState] = e.words.word(b, o.SQLState[:], 0)
	}
	n[numReply] = o.ReplyBytes
	n[numStateSchema] = e.words.word(b, o.State.Schema, expected[numStateSchema])
	n[numStateTransaction] = e.words.word(b, o.State.Transaction, expected[numStateTransaction])
}

// inRequest is the part of RequestBytes that varies among requests with the same text but for its digits.
func inRequest(s *Statement) uint64 {
	return uint64(len(s.Text) + len(s.Params.Values) + len(s.Attributes))
}

func bitsOf(o *Outcome) (bits uint64) {
	if o.HasStatus {
		bits |= bitHasStatus
	}
	if o.State.SchemaChanged {
		bits |= bitSchemaChanged
	}
	if o.State.Redirect {
		bits |= bitRedirect
	}
	return bits
}

// bytesOf is how many bytes of byte strings a statement has.
func bytesOf(s *Statement) int {
	state := &s.Outcome.State
	return len(s.Schema) + len(s.Text) + len(s.Attributes) + len(s.Params.Nulls) + len(s.Params.Types) +
		len(s.Params.Values) + len(s.Params.Long) + len(s.File) + len(state.Schema) + len(state.GTIDs) + len(state.Transaction)
}

// sizeOfStatement is how many bytes the byte strings of a statement take in a block, at most.
func sizeOfStatement(s *Statement) int {
	n := bytesOf(s)
	if n < largeBytes {
		return n + n - n/4
	}
	if len(s.Text) < largeBytes { // else it is stored as it is
		room := roomOfText(len(s.Text))
		n += room.runs + room.digits
	}
	room := roomOfText(len(s.Outcome.State.GTIDs))
	return n + room.runs + room.digits
}

// shorten is s without its parameters and with a prefix of its text.
func shorten(s *Statement, kept int) *Statement {
	short := *s
	if s.TextLen == 0 {
		hash := fnv.New64a()
		hash.Write(s.Text)
		short.TextLen, short.TextHash = uint64(len(s.Text)), hash.Sum64()
	}
	short.Text = s.Text[:min(len(s.Text), kept)]
	short.Params, short.Attributes, short.File, short.Outcome.State = Params{}, nil, nil, wire.SessionState{}
	short.Flags = short.Flags&^FileKept | Truncated
	return &short
}

func (e *encoder) sessionStart(s *SessionStart) {
	b, before := e.block, e.block.counts[KindSessionStart]
	e.session(s.Session)
	b.put(colStartAt, timeCode(s.At, e.model.last), before)
	b.put(colStartAccepted, timeCode(s.Accepted, max(0, s.At)), before)
	b.put(colStartCollation, uint64(s.Collation), before)
	b.put(colStartCapabilities, uint64(s.Capabilities), before)
	b.put(colStartConnectionID, s.ConnectionID, before)
	b.put(colStartStatus, uint64(s.Status), before)
	b.put(colStartSource, s.Source, before)
	b.put(colStartCopy, uint64(s.Copy), before)
	e.putWord(colStartUser, s.User, before)
	e.putWord(colStartSchema, s.Schema, before)
	e.putWord(colStartVersion, s.ServerVersion, before)
	e.putWord(colStartClient, s.Client, before)
	e.putWord(colStartAttributes, string(appendAttributes(nil, s.Attributes)), before)
	if s.Joined {
		b.put(colStartJoined, 1, before)
	}
	e.putWord(colStartPrepared, string(appendPrepared(nil, s.Prepared)), before)
	e.putWord(colStartUnknown, s.Unknown, before)
	e.over(KindSessionStart, s.At)
}

func (e *encoder) sessionEnd(s *SessionEnd) {
	b, before := e.block, e.block.counts[KindSessionEnd]
	session := e.session(s.Session)
	b.put(colEndAt, timeCode(s.At, e.model.last), before)
	b.put(colEndReason, uint64(s.Reason), before)
	b.put(colEndErrno, uint64(s.Errno), before)
	b.put(colEndCommands, zigzag(s.Commands-session.number), before)
	e.putWord(colEndDetail, s.Detail, before)
	delete(e.begun, s.Session)
	b.ended = append(b.ended, s.Session)
	e.over(KindSessionEnd, s.At)
}

func (e *encoder) gap(g *Gap) {
	b, before := e.block, e.block.counts[KindGap]
	b.put(colGapFrom, timeCode(g.From, e.model.last), before)
	b.put(colGapTo, timeCode(g.To, max(0, g.From)), before)
	b.put(colGapStatements, g.Statements, before)
	b.put(colGapSessions, g.Sessions, before)
	b.put(colGapCut, g.Cut, before)
	e.putWord(colGapReason, g.Reason, before)
	b.gap.add(g)
	e.record(KindGap)
}

// over ends a session record, which stands at t in every order.
func (e *encoder) over(kind Kind, t time.Duration) {
	e.block.note(t, t)
	if t > 0 {
		e.model.last = t
	}
	e.record(kind)
}

func (e *encoder) putWord(col int, s string, before int) {
	e.block.put(col, e.words.word(e.block, []byte(s), 0), before)
}

// appendAttributes appends names and values in turn, each a length-encoded string as in the login packet.
func appendAttributes(dst []byte, attributes []wire.Attribute) []byte {
	for _, a := range attributes {
		dst = wire.AppendLenencBytes(dst, []byte(a.Name))
		dst = wire.AppendLenencBytes(dst, []byte(a.Value))
	}
	return dst
}

// appendPrepared appends prepared statements: id and number of parameters as length-encoded integers, types and text as
// length-encoded strings.
func appendPrepared(dst []byte, statements []Prepared) []byte {
	for _, p := range statements {
		dst = wire.AppendLenenc(wire.AppendLenenc(dst, uint64(p.ID)), uint64(p.Params))
		dst = wire.AppendLenencBytes(wire.AppendLenencBytes(dst, p.Types), p.Text)
	}
	return dst
}
