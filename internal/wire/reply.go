package wire

import (
	"errors"
	"fmt"
)

// Prepared is the head of a COM_STMT_PREPARE reply.
type Prepared struct {
	ID              uint32
	Columns, Params uint16
}

// ErrLost means that the bytes cannot be the reply that was expected: whoever follows has lost track.
var ErrLost = errors.New("not the reply that was expected")

type replyState uint8

const (
	replyFirst       replyState = iota // before the first packet of a result
	replyDefinitions                   // column definitions
	replyDefsEOF                       // the EOF behind them
	replyRows
	replyParams // parameter definitions of a PREPARE
	replyParamsEOF
	replyDone
)

// maxKept bounds the bytes kept of a packet that must be read whole (OK, ERR, EOF, counts) but came in pieces. What
// lies beyond (the end of a huge session state block) is dropped.
const maxKept = 64 << 10

// maxMessage bounds what is kept of an ERR's message; servers' own are of 512 bytes at most.
const maxMessage = 4 << 10

// A Reply follows one command's reply, piece by piece, to its last byte, and says what was in it. It serves text and
// binary results, both EOF styles, several results, cursors, prepared statements, and errors anywhere. The state
// machine is that of the protocol manual's "text result set" and "COM_STMT_PREPARE response" pages, with MariaDB's
// metadata caching and progress packets.
type Reply struct {
	Outcome  Outcome
	Prepared Prepared // of a PREPARE, once its first packet came
	Memory   Account  // what packets that came in pieces are gathered in; nil for no limit

	command byte
	caps    Capabilities
	state   replyState
	count   uint64 // definitions to come
	columns uint64 // PREPARE: column definitions to come after the parameters
	infile  bool   // the server waits for a file from the client
	cursor  bool   // a cursor was asked for
	begun   bool   // a byte of the reply proper came
	ending  bool   // the packet at hand is neither row nor definition, though its place is theirs
	asked   bool   // the server asked for a file at some point of this reply
	kept    Buffer // a packet that came in pieces
	message []byte // of the ERR
}

// Begin prepares for the reply to a command sent under caps. cursor says that an execute asked for a cursor.
func (r *Reply) Begin(command byte, caps Capabilities, cursor bool) {
	r.Outcome.Reset()
	r.Prepared = Prepared{}
	r.command, r.caps, r.cursor = command, caps, cursor
	r.state, r.count, r.columns = replyFirst, 0, 0
	r.infile, r.begun, r.asked = false, false, false
	r.message = r.message[:0]
	r.kept.Reset(r.Memory)
	if command == ComStmtFetch {
		r.state = replyRows
	}
	if command == ComFieldList {
		r.state = replyRows // definitions without a count, then a terminator: rows by another name
	}
}

// Release empties the reply, which ends there, and gives back what memory it holds but for small buffers.
func (r *Reply) Release() {
	r.kept.Reset(r.Memory)
	r.state, r.infile = replyDone, false
	r.message = small(r.message)
	state := &r.Outcome.State
	state.Schema, state.GTIDs, state.Transaction = small(state.Schema), small(state.GTIDs), small(state.Transaction)
}

// small is b without its content, or nil if it is more than one keeps for the next use.
func small(b []byte) []byte {
	if cap(b) > smallBuffer/2 {
		return nil
	}
	return b[:0]
}

// WantsFile reports that the server asked for a file (LOCAL INFILE): until the client's empty packet, nothing the
// client sends is a command.
func (r *Reply) WantsFile() bool { return r.infile }

// FileSent tells that the client's empty packet has passed.
func (r *Reply) FileSent() { r.infile = false }

// AskedFile reports whether the server asked for a file at some point of this reply.
func (r *Reply) AskedFile() bool { return r.asked }

// Err is the ERR that came in this reply, nil if none did. Its message may hold literals of the statement.
func (r *Reply) Err() *Error {
	if r.Outcome.Errno == 0 {
		return nil
	}
	e := &Error{Errno: r.Outcome.Errno, Message: string(r.message)}
	if r.Outcome.SQLState[0] != 0 {
		e.SQLState = string(r.Outcome.SQLState[:])
	}
	return e
}

// Begun reports whether a byte of the reply proper (not of a progress report) has been seen.
func (r *Reply) Begun() bool { return r.begun }

// TakesError reports whether clients take an ERR for the next packet of the reply: in the place of a result's first
// packet, and of a row. One in the place of a column definition is legal, but some read it as a definition.
func (r *Reply) TakesError() bool {
	switch r.state {
	case replyFirst:
		return !r.infile
	case replyRows:
		return r.command != ComFieldList
	}
	return false
}

// Done reports whether the reply's last byte has been seen.
func (r *Reply) Done() bool { return r.state == replyDone }

// Feed takes the next piece. It reports whether the reply ended with it; an error wraps ErrLost.
func (r *Reply) Feed(p Piece) (done bool, err error) { return r.FeedPiece(&p) }

// FeedPiece is Feed without a copy of the piece.
func (r *Reply) FeedPiece(p *Piece) (done bool, err error) {
	r.Outcome.ReplyBytes += p.StreamBytes()
	if p.Head {
		if len(p.Data) > 0 && !r.begun {
			r.begun = p.Data[0] != 0xFF || !r.caps.Has(Progress)
		}
	}
	if r.state == replyRows && r.row(p) {
		return false, nil
	}
	if r.state == replyDefinitions || r.state == replyParams {
		if r.definition(p) {
			return r.state == replyDone, nil
		}
	}
	payload, whole := r.whole(p)
	if !whole {
		return false, nil
	}
	err = r.packet(payload, p.Length)
	r.kept.Reset(r.Memory)
	if err != nil {
		return false, fmt.Errorf("%w: %w", ErrLost, err)
	}
	return r.state == replyDone, nil
}

// Skip passes over the packets at the beginning of b that need no reading, which is rows and column definitions, where
// the stream stands between two packets. It returns how many bytes that is, all of whole packets, and the sequence id of
// the last. What it does not pass over is for Feed.
func (r *Reply) Skip(b []byte) (n int, seq byte) {
	for len(b)-n > HeaderLen {
		length := uint24(b[n:])
		end := n + HeaderLen + length
		if length == 0 || length == MaxPayload || end > len(b) || b[n+HeaderLen] >= 0xFE || !r.skip() {
			break
		}
		seq = b[n+3]
		n = end
	}
	r.Outcome.ReplyBytes += uint64(n)
	r.begun = r.begun || n > 0
	return n, seq
}

// skip passes over one packet if its place is a row's or a definition's, but for a definition that may end the reply.
func (r *Reply) skip() bool {
	switch r.state {
	case replyRows:
		if r.command != ComFieldList {
			r.Outcome.Rows++
		}
		return true
	case replyDefinitions, replyParams:
		if r.count == 1 && r.command == ComStmtPrepare {
			return false
		}
		r.count--
		if r.count == 0 {
			r.afterDefinitions()
		}
		return true
	}
	return false
}

// row passes over a piece of a row; it reports false for a piece of a packet that ends the rows.
func (r *Reply) row(p *Piece) bool {
	if p.Head {
		r.ending = len(p.Data) > 0 && r.endsRows(p.Data[0], p.Length)
	}
	if r.ending {
		return false
	}
	if p.Tail && r.command != ComFieldList {
		r.Outcome.Rows++
	}
	return true
}

// endsRows tells a terminator or an ERR from a row by its first byte and the length of its first physical packet: a
// row that begins with FE has a first column of 16 MiB or more and so fills its packet.
func (r *Reply) endsRows(first byte, length int) bool {
	switch first {
	case 0xFF:
		return true
	case 0xFE:
		return length < 9 || r.caps.Has(DeprecateEOF) && length < MaxPayload
	}
	return false
}

// definition passes over a piece of a definition; it reports false for a piece of a packet that stands in its place:
// an ERR, or an EOF, which is a sign of being lost.
func (r *Reply) definition(p *Piece) bool {
	if p.Head {
		r.ending = len(p.Data) > 0 && (p.Data[0] == 0xFF || p.Data[0] == 0xFE && p.Length < 9)
	}
	if r.ending {
		return false
	}
	if p.Tail {
		r.count--
		if r.count == 0 {
			r.afterDefinitions()
		}
	}
	return true
}

func (r *Reply) afterDefinitions() {
	withEOF := !r.caps.Has(DeprecateEOF)
	switch {
	case r.state == replyParams && withEOF:
		r.state = replyParamsEOF
	case r.state == replyParams:
		r.preparedColumns()
	case withEOF:
		r.state = replyDefsEOF
	case r.command == ComStmtPrepare:
		r.state = replyDone
	default:
		r.state = replyRows
	}
}

// preparedColumns goes on from the parameters of a PREPARE to its columns.
func (r *Reply) preparedColumns() {
	r.count = r.columns
	r.state = replyDefinitions
	if r.count == 0 {
		r.state = replyDone
	}
}

// whole gathers a packet that must be read in one go.
func (r *Reply) whole(p *Piece) (payload []byte, ok bool) {
	if p.Head && p.Tail {
		return p.Data, true
	}
	if p.Head {
		r.kept.Reset(r.Memory)
	}
	r.kept.Append(p.Data, maxKept, r.Memory)
	return r.kept.Bytes(), p.Tail
}

// packet acts on a whole packet that is neither a row nor a definition.
func (r *Reply) packet(payload []byte, length int) error {
	if r.command == ComStatistics && !(len(payload) > 9 && payload[0] == 0xFF && payload[3] == '#') {
		r.state = replyDone // one string without a header byte; servers that lack the command say so by an ERR
		r.Outcome.Results = 1
		return nil
	}
	if len(payload) == 0 {
		return errors.New("empty packet")
	}
	if payload[0] == 0xFF {
		return r.error(payload)
	}
	switch r.state {
	case replyFirst:
		return r.first(payload)
	case replyParamsEOF, replyDefsEOF:
		return r.definitionsEOF(payload)
	case replyRows:
		return r.endOfRows(payload, length)
	}
	return fmt.Errorf("packet beginning with %02X behind the end", payload[0])
}

func (r *Reply) error(payload []byte) error {
	if len(payload) < 3 {
		return errShort
	}
	errno := uint16(payload[1]) | uint16(payload[2])<<8
	if errno == 0xFFFF && r.caps.Has(Progress) {
		return nil // a progress report, not an end
	}
	r.begun = true
	r.Outcome.Errno = errno
	r.Outcome.Results++
	if len(payload) >= 9 && payload[3] == '#' {
		copy(r.Outcome.SQLState[:], payload[4:9])
		payload = payload[6:]
	}
	r.message = append(r.message[:0], payload[3:min(len(payload), 3+maxMessage)]...)
	r.state = replyDone
	return nil
}

// first acts on the first packet of a result.
func (r *Reply) first(payload []byte) error {
	r.begun = true
	if r.command == ComStmtPrepare {
		return r.prepareOK(payload)
	}
	switch payload[0] {
	case 0x00:
		ok, err := ParseOK(payload, r.caps)
		if err != nil {
			return err
		}
		r.Outcome.Results++
		r.ok(ok)
		return nil
	case 0xFB:
		if !r.caps.Has(LocalFiles) {
			return errors.New("a file request that was not negotiated")
		}
		r.infile, r.asked = true, true
		return nil
	case 0xFE:
		// COM_SET_OPTION, COM_DEBUG and COM_SHUTDOWN answer with what elsewhere ends rows.
		if r.command == ComQuery || r.command == ComStmtExecute {
			return errors.New("an EOF in front of a result")
		}
		r.Outcome.Results++
		return r.endOfRows(payload, len(payload))
	}
	return r.columnCount(payload)
}

func (r *Reply) prepareOK(payload []byte) error {
	c := NewCursor(payload)
	if c.Byte() != 0 {
		return fmt.Errorf("prepare answered by %02X", payload[0])
	}
	r.Prepared = Prepared{ID: c.Uint32(), Columns: c.Uint16(), Params: c.Uint16()}
	if !c.OK() {
		return errShort
	}
	c.Skip(1)
	if c.Len() >= 2 {
		r.Outcome.Warnings = c.Uint16()
	}
	r.Outcome.Results++
	definitions := true
	if r.caps.Has(OptionalMetadata) && c.Len() > 0 {
		definitions = c.Byte() != 0
	}
	r.count, r.columns = uint64(r.Prepared.Params), uint64(r.Prepared.Columns)
	switch {
	case !definitions:
		r.state = replyDone
	case r.count > 0:
		r.state = replyParams
	default:
		r.preparedColumns()
	}
	return nil
}

func (r *Reply) columnCount(payload []byte) error {
	c := NewCursor(payload)
	r.count = c.Lenenc()
	definitions := true
	if r.caps&(OptionalMetadata|CacheMetadata) != 0 && c.Len() > 0 {
		definitions = c.Byte() != 0
	}
	if !c.OK() || c.Len() > 0 || r.count == 0 {
		return fmt.Errorf("%d bytes beginning with %02X where a column count was due", len(payload), payload[0])
	}
	r.Outcome.Results++
	r.Outcome.ResultSets++
	r.state = replyDefinitions
	if !definitions {
		r.count = 0
		r.afterDefinitions()
	}
	return nil
}

// definitionsEOF acts on the EOF behind definitions. Its status says whether a cursor was opened (then no rows
// follow); more results are never announced by it, whatever it says.
func (r *Reply) definitionsEOF(payload []byte) error {
	if payload[0] != 0xFE || len(payload) >= 9 {
		return fmt.Errorf("packet beginning with %02X where an EOF was due", payload[0])
	}
	if r.state == replyParamsEOF {
		r.preparedColumns()
		return nil
	}
	if r.command == ComStmtPrepare {
		r.state = replyDone
		return nil
	}
	if end := ParseEOF(payload); r.cursor && end.Status&StatusCursorExists != 0 {
		r.ok(OK{Status: end.Status &^ StatusMoreResults, Warnings: end.Warnings})
		return nil
	}
	r.state = replyRows
	return nil
}

// endOfRows acts on the packet that ends rows: five bytes have the EOF's form also where EOF is deprecated.
func (r *Reply) endOfRows(payload []byte, length int) error {
	if length == 5 || !r.caps.Has(DeprecateEOF) {
		r.ok(ParseEOF(payload))
		return nil
	}
	ok, err := ParseOK(payload, r.caps)
	if err != nil {
		return err
	}
	r.ok(ok)
	return nil
}

// ok notes what an OK or a terminator says, and goes on to the next result if there is one.
func (r *Reply) ok(ok OK) {
	o := &r.Outcome
	o.Affected += ok.Affected
	if ok.LastInsertID != 0 {
		o.LastInsertID = ok.LastInsertID
	}
	o.Status, o.HasStatus, o.Warnings = ok.Status, true, ok.Warnings
	if len(ok.Track) > 0 {
		o.State.note(ok.Track)
	}
	r.state = replyDone
	if ok.Status&StatusMoreResults != 0 {
		r.state = replyFirst
	}
}
