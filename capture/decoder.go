package capture

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"redrive/internal/wire"
)

var errColumnEnds = errors.New("a column ends too early")

// A decoder reads the records of one block after the other. Its first failure sticks.
type decoder struct {
	cols   [columnCount]cursor
	digits [columnCount]int // digits read of a column of digits
	ends   []uint32         // by word, in colWordBytes
	model  model
	number []int // which columns of numbers are there
	left   int   // records to come
	text   []byte
	gtids  []byte
	err    error
}

// A cursor reads one column. Behind its end are zeros.
type cursor struct {
	data    []byte
	off     int
	present bool
}

// begin starts on a block's payload, which stays in use until the next begin.
func (d *decoder) begin(payload []byte, records int) error {
	d.cols = [columnCount]cursor{}
	clear(d.digits[:])
	d.model.reset()
	d.left, d.err = records, nil
	if err := d.split(payload); err != nil {
		return err
	}
	d.number = d.number[:0]
	for i := range numberCount {
		if d.cols[colNumbers+i].present {
			d.number = append(d.number, i)
		}
	}
	return d.dictionary()
}

// split finds the columns.
func (d *decoder) split(payload []byte) error {
	for off := 0; off < len(payload); {
		id, n := binary.Uvarint(payload[off:])
		size, m := binary.Uvarint(payload[off+max(n, 0):])
		if n <= 0 || m <= 0 || size > uint64(len(payload)-off-n-m) {
			return fmt.Errorf("column at byte %d of %d exceeds the block", off, len(payload))
		}
		off += n + m
		data := payload[off : off+int(size)]
		off += int(size)
		if id == 0 || id >= columnCount {
			continue // of a later version
		}
		if d.cols[id].present {
			return fmt.Errorf("column %d occurs twice", id)
		}
		d.cols[id] = cursor{data: data, present: true}
	}
	return nil
}

func (d *decoder) dictionary() error {
	d.ends = append(d.ends[:0], 0)
	lengths, total := &d.cols[colWordLengths], uint64(len(d.cols[colWordBytes].data))
	end := uint64(0)
	for lengths.off < len(lengths.data) {
		size := d.get(colWordLengths)
		if size > total-end || len(d.ends) > maxWords || d.err != nil {
			return errors.New("the dictionary exceeds its bounds")
		}
		end += size
		d.ends = append(d.ends, uint32(end))
	}
	if end != total {
		return errors.New("the dictionary has bytes of no word")
	}
	d.cols[colWordBytes].off = int(total)
	return nil
}

// get reads the next value of a column.
func (d *decoder) get(id int) uint64 {
	c := &d.cols[id]
	if c.off >= len(c.data) {
		return 0
	}
	if b := c.data[c.off]; b < 0x80 {
		c.off++
		return uint64(b)
	}
	return d.getLong(c)
}

func (d *decoder) getLong(c *cursor) uint64 {
	v, n := binary.Uvarint(c.data[c.off:])
	if n <= 0 {
		d.fail(errColumnEnds)
		return 0
	}
	c.off += n
	return v
}

// bytes reads the next n bytes of a column of bytes.
func (d *decoder) bytes(id int, n uint64) []byte {
	if n == 0 {
		return nil
	}
	c := &d.cols[id]
	if n > uint64(len(c.data)-c.off) {
		d.fail(errColumnEnds)
		return nil
	}
	c.off += int(n)
	return c.data[c.off-int(n) : c.off : c.off]
}

func (d *decoder) fail(err error) {
	if d.err == nil {
		d.err = err
	}
}

// word is an entry of the dictionary.
func (d *decoder) word(n uint64) []byte {
	if n == 0 {
		return nil
	}
	if n >= uint64(len(d.ends)) {
		d.fail(fmt.Errorf("word %d of %d", n, len(d.ends)-1))
		return nil
	}
	return d.cols[colWordBytes].data[d.ends[n-1]:d.ends[n]:d.ends[n]]
}

func (d *decoder) string(col int) string { return string(d.word(d.get(col))) }

// expand is the text that a template stands for, with the digits from the columns behind col. It appends to dst unless
// the template has no digits, and returns dst for the next time.
func (d *decoder) expand(dst, template []byte, col int) (text, buf []byte) {
	i := bytes.IndexByte(template, '0')
	if i < 0 {
		return template, dst
	}
	dst = dst[:0]
	for ; i >= 0; i = bytes.IndexByte(template, '0') {
		dst = append(dst, template[:i]...)
		dst = d.appendDigits(dst, d.get(col+1), col+2)
		template = template[i+1:]
	}
	dst = append(dst, template...)
	return dst, dst
}

// appendDigits appends the next n digits of a column of digits.
func (d *decoder) appendDigits(dst []byte, n uint64, col int) []byte {
	data, at := d.cols[col].data, d.digits[col]
	if n == 0 || n > uint64(2*len(data)-at) {
		d.fail(errColumnEnds)
		return dst
	}
	end := at + int(n)
	d.digits[col] = end
	d.cols[col].off = (end + 1) / 2
	var over byte // has bit 4 set once a digit is above 9
	digit := func(v byte) byte {
		over |= v + 6
		return '0' + v
	}
	if at%2 == 1 {
		dst = append(dst, digit(data[at/2]>>4))
		at++
	}
	for _, b := range data[at/2 : max(at, end)/2] {
		dst = append(dst, digit(b&15), digit(b>>4))
	}
	if end%2 == 1 && at < end {
		dst = append(dst, digit(data[end/2]&15))
	}
	if over&16 != 0 {
		d.fail(errors.New("a digit above 9"))
	}
	return dst
}

// next reads a record into rec and reports whether there was one. Byte strings in rec are valid until the next call.
func (d *decoder) next(rec *Record) bool {
	for d.left > 0 && d.err == nil {
		d.left--
		kind := KindStatement + Kind(min(d.get(colKinds), 100))
		rec.Kind = kind
		switch kind {
		case KindStatement, KindBegin:
			d.statement(&rec.Statement)
		case KindSessionStart:
			d.sessionStart(&rec.Start)
		case KindSessionEnd:
			d.sessionEnd(&rec.End)
		case KindGap:
			d.gap(&rec.Gap)
		default:
			continue // of a later version: it has nothing in the columns known here
		}
		return d.err == nil
	}
	return false
}

// finish tells whether the block was read as it was written: without a failure, and to the end of every column.
func (d *decoder) finish() error {
	if d.err != nil {
		return d.err
	}
	for id, c := range d.cols {
		if c.off != len(c.data) {
			return fmt.Errorf("column %d has more values than records", id)
		}
	}
	return nil
}

func (d *decoder) session() *sessionState {
	slot := d.get(colSlots)
	if slot == uint64(len(d.model.sessions)) {
		d.model.newSession(d.model.id + unzigzag(d.get(colSessions)))
	}
	if slot >= uint64(len(d.model.sessions)) {
		d.fail(fmt.Errorf("session slot %d of %d", slot, len(d.model.sessions)))
		slot = 0
		d.model.newSession(0)
	}
	return &d.model.sessions[slot]
}

// statementTime reads a time whose low bits are in a column of their own.
func (d *decoder) statementTime(col int, p time.Duration) time.Duration {
	code := d.get(col) << 16
	if c := &d.cols[col+colLows-colIntended]; c.off+1 < len(c.data) {
		code |= uint64(c.data[c.off]) | uint64(c.data[c.off+1])<<8
		c.off += 2
	}
	return d.timeOf(code, p)
}

// time reads a time stored as its distance from p.
func (d *decoder) time(col int, p time.Duration) time.Duration { return d.timeOf(d.get(col), p) }

func (d *decoder) timeOf(code uint64, p time.Duration) time.Duration {
	t := timeOf(code, p)
	if code != 0 && t <= 0 {
		d.fail(errors.New("a time before the capture's start"))
		return 0
	}
	return t
}

func (d *decoder) statement(s *Statement) {
	session := d.session()
	s.Session = session.id
	text, gtids := d.get(colText), d.get(colGTIDs)
	s.Text, d.text = d.expand(d.text, d.word(text), colText)
	if plain := d.get(colPlain); plain != 0 {
		s.Text = d.word(plain)
	}
	s.Outcome.State.GTIDs, d.gtids = d.expand(d.gtids, d.word(gtids), colGTIDs)
	d.times(s, session)
	if d.err != nil {
		return // text may be no word, and have no memory
	}
	t := d.model.text(text)
	session.expect(t)
	for _, i := range d.number {
		t[i] += unzigzag(d.get(colNumbers + i))
	}
	d.assign(s, t)
	s.Params.Long = d.word(d.get(colLong))
	s.File = d.word(d.get(colFile))
	d.model.note(session, t, s)
}

func (d *decoder) times(s *Statement, session *sessionState) {
	s.Intended = d.statementTime(colIntended, session.intendedFrom())
	p := max(session.done, s.Intended)
	for i, t := range [...]*time.Duration{&s.Received, &s.Complete, &s.Sent, &s.First, &s.Done} {
		*t = d.statementTime(colReceived+i, p)
		if *t > 0 {
			p = *t
		}
	}
}

// assign is the inverse of the encoder's fill.
func (d *decoder) assign(s *Statement, n *textState) {
	o := &s.Outcome
	s.Number, s.Txn, s.Place, s.TxnEnd = n[numNumber], n[numTxn], uint32(n[numPlace]), TxnEnd(n[numTxnEnd])
	s.Command, s.Flags, s.StatementID = byte(n[numCommand]), Flags(n[numFlags]), uint32(n[numStatementID])
	s.Schema = d.word(n[numSchema])
	s.TextLen, s.TextHash = n[numTextLen], n[numTextHash]
	s.Params.Nulls, s.Params.Types = d.word(n[numNulls]), d.word(n[numTypes])
	s.Params.Values = d.bytes(colValueBytes, n[numValues])
	s.Attributes = d.bytes(colAttributeBytes, n[numAttributes])
	s.Stalled = time.Duration(n[numStalled])
	s.RequestBytes = n[numRequest] + inRequest(s)
	o.Results, o.ResultSets = uint32(n[numResults]), uint32(n[numResultSets])
	o.Rows, o.Affected, o.LastInsertID = n[numRows], n[numAffected], n[numLastInsertID]
	o.Warnings, o.Status, o.Errno = uint16(n[numWarnings]), uint16(n[numStatus]), uint16(n[numErrno])
	o.HasStatus = n[numBits]&bitHasStatus != 0
	o.State.SchemaChanged = n[numBits]&bitSchemaChanged != 0
	o.State.Redirect = n[numBits]&bitRedirect != 0
	o.SQLState = [5]byte{}
	copy(o.SQLState[:], d.word(n[numSQLState]))
	o.ReplyBytes = n[numReply]
	o.State.Schema, o.State.Transaction = d.word(n[numStateSchema]), d.word(n[numStateTransaction])
}

func (d *decoder) sessionStart(s *SessionStart) {
	*s = SessionStart{Session: d.session().id}
	s.At = d.time(colStartAt, d.model.last)
	s.Accepted = d.time(colStartAccepted, s.At)
	s.Collation = uint16(d.get(colStartCollation))
	s.Capabilities = wire.Capabilities(d.get(colStartCapabilities))
	s.ConnectionID = d.get(colStartConnectionID)
	s.Status = uint16(d.get(colStartStatus))
	s.Source, s.Copy = d.get(colStartSource), uint32(d.get(colStartCopy))
	s.User, s.Schema = d.string(colStartUser), d.string(colStartSchema)
	s.ServerVersion, s.Client = d.string(colStartVersion), d.string(colStartClient)
	s.Attributes = d.attributes(d.word(d.get(colStartAttributes)))
	s.Joined = d.get(colStartJoined) != 0
	s.Prepared = d.prepared(d.word(d.get(colStartPrepared)))
	s.Unknown = d.string(colStartUnknown)
	d.over(s.At)
}

func (d *decoder) attributes(packed []byte) (attributes []wire.Attribute) {
	c := wire.NewCursor(packed)
	for c.Len() > 0 && c.OK() {
		attributes = append(attributes, wire.Attribute{Name: string(c.LenencBytes()), Value: string(c.LenencBytes())})
	}
	if !c.OK() {
		d.fail(errors.New("connection attributes end too early"))
	}
	return attributes
}

func (d *decoder) prepared(packed []byte) (statements []Prepared) {
	c := wire.NewCursor(packed)
	for c.Len() > 0 && c.OK() {
		statements = append(statements, Prepared{
			ID: uint32(c.Lenenc()), Params: uint16(c.Lenenc()), Types: append([]byte(nil), c.LenencBytes()...), Text: append([]byte(nil), c.LenencBytes()...),
		})
	}
	if !c.OK() {
		d.fail(errors.New("prepared statements end too early"))
	}
	return statements
}

func (d *decoder) sessionEnd(s *SessionEnd) {
	session := d.session()
	*s = SessionEnd{Session: session.id}
	s.At = d.time(colEndAt, d.model.last)
	s.Reason, s.Errno = EndReason(d.get(colEndReason)), uint16(d.get(colEndErrno))
	s.Commands = session.number + unzigzag(d.get(colEndCommands))
	s.Detail = d.string(colEndDetail)
	d.over(s.At)
}

func (d *decoder) gap(g *Gap) {
	*g = Gap{From: d.time(colGapFrom, d.model.last)}
	g.To = d.time(colGapTo, g.From)
	g.Statements, g.Sessions = d.get(colGapStatements), d.get(colGapSessions)
	g.Cut = d.get(colGapCut)
	g.Reason = d.string(colGapReason)
}

func (d *decoder) over(t time.Duration) {
	if t > 0 {
		d.model.last = t
	}
}
