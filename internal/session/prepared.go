package session

import (
	"encoding/binary"
	"unique"
	"unsafe"

	"redrive/capture"
	"redrive/internal/wire"
)

// A prepared statement, as long as the server keeps it.
type prepared struct {
	handle  unique.Handle[string] // keeps one copy of a text that many sessions prepare
	text    []byte                // the bytes of that copy: never to be written to
	unknown bool                  // there was no memory for the text
	params  int
	types   []byte // of the last execute that had any
	long    []byte // bitmap of the parameters sent as long data for the next execute
}

// largeText is the length from which on a prepared text is taken from the account: few sessions share such a one.
const largeText = 64 << 10

// prepare notes a statement that the server has prepared.
func (f *Follower) prepare(c *command) {
	p := c.reply.Prepared
	c.statement.StatementID = p.ID
	if f.statements == nil {
		f.statements = map[uint32]*prepared{}
	}
	f.unprepare(p.ID) // of a server that gives an id twice
	f.lastID = p.ID
	known := &prepared{params: int(p.Params)}
	f.statements[p.ID] = known
	if n := len(c.statement.Text); n > largeText && !f.account().Take(n) {
		known.unknown = true
		return
	}
	known.handle = unique.Make(string(c.statement.Text))
	text := known.handle.Value()
	known.text = unsafe.Slice(unsafe.StringData(text), len(text))
}

// unprepare forgets a statement that was closed.
func (f *Follower) unprepare(id uint32) {
	if p := f.statements[id]; p != nil && len(p.text) > largeText {
		f.account().Give(len(p.text))
	}
	delete(f.statements, id)
	if id == f.lastID {
		f.lastID = 0
	}
}

// unprepareAll forgets all statements.
func (f *Follower) unprepareAll() {
	for id := range f.statements {
		f.unprepare(id)
	}
	f.lastID = 0
}

// readPrepared reads a command that begins with the id of a prepared statement. Text is the statement's own, but for
// long data, which is data of its own.
func (f *Follower) readPrepared(c *command) {
	s := &c.statement
	payload := c.payload.Bytes()
	cur := wire.NewCursor(payload)
	cur.Skip(1)
	s.StatementID = cur.Uint32()
	if s.StatementID == wire.LastStatementID {
		s.StatementID = f.lastID
	}
	p := f.statements[s.StatementID]
	if p == nil { // not known, and most likely refused
		p = &prepared{unknown: true}
	}
	if p.unknown && wire.RunsSQL(c.code) {
		s.Flags |= capture.TextUnknown
	}
	s.Text = p.text
	switch c.code {
	case wire.ComStmtExecute:
		f.readExecute(c, p, cur)
	case wire.ComStmtBulkExecute:
		f.readBulk(c, p, cur)
	case wire.ComStmtSendLongData:
		s.Text = cur.Rest()
		p.noteLong(s.Text)
	case wire.ComStmtReset:
		clear(p.long)
	case wire.ComStmtFetch:
		s.Params.Values = cur.Rest() // how many rows
	}
}

// noteLong notes for which parameter long data has come; the index stands in front of it.
func (p *prepared) noteLong(data []byte) {
	if len(data) < 2 {
		return
	}
	i := int(binary.LittleEndian.Uint16(data))
	if i >= p.params {
		return // the server will complain of it when the statement is executed
	}
	if p.long == nil {
		p.long = make([]byte, (p.params+7)/8)
	}
	p.long[i/8] |= 1 << (i % 8)
}

// takeLong moves the bitmap of long data to the execute that uses it up. It is nil if there was none.
func (p *prepared) takeLong(c *command) []byte {
	for _, b := range p.long {
		if b != 0 {
			c.long = append(c.long[:0], p.long...)
			clear(p.long)
			return c.long
		}
	}
	return nil
}

// readExecute reads what stands behind the id of an EXECUTE.
func (f *Follower) readExecute(c *command, p *prepared, cur wire.Cursor) {
	s := &c.statement
	if flags := cur; flags.Byte()&wire.CursorReadOnly != 0 { // whatever else is known: the shape of the reply hangs on it
		s.Flags |= capture.Cursor
	}
	if s.Flags.Has(capture.TextUnknown) {
		s.Params.Values = cur.Rest()
		return
	}
	long := p.takeLong(c)
	e, err := wire.ParseExecute(c.payload.Bytes(), p.params, f.caps, long)
	if err != nil {
		s.Flags |= capture.NoTypes
		s.Params.Values = cur.Rest()
		return
	}
	s.Params = capture.Params{Nulls: e.Nulls, Types: p.keepTypes(e.Types), Values: e.Values, Long: long}
	if len(s.Params.Types) < 2*p.params {
		s.Flags |= capture.NoTypes
	}
}

// readBulk reads what stands behind the id of a COM_STMT_BULK_EXECUTE. Values are its flags and its rows, as they are;
// the types, which the flags say may stand between them, are taken out.
func (f *Follower) readBulk(c *command, p *prepared, cur wire.Cursor) {
	s := &c.statement
	payload := c.payload.Bytes()
	s.Params.Values = cur.Rest()
	if s.Flags.Has(capture.TextUnknown) {
		return
	}
	b, err := wire.ParseBulk(payload, p.params)
	if err != nil {
		s.Flags |= capture.NoTypes
		return
	}
	p.keepTypes(b.Types)
	s.Params.Types = p.types
	if len(p.types) < 2*p.params {
		s.Flags |= capture.NoTypes
	}
	s.Params.Values = payload[len(payload)-len(b.Rows)-2:]
	binary.LittleEndian.PutUint16(s.Params.Values, b.Flags&^wire.BulkTypes)
}

// keepTypes gives the types in force for an execute that brings its own, or none, and keeps them for those after it. The
// type NULL only says that this once there is no value: servers go on with the type from before.
func (p *prepared) keepTypes(own []byte) []byte {
	if len(own) == 0 {
		return p.types
	}
	if len(p.types) != len(own) {
		p.types = append(p.types[:0], own...)
		return own
	}
	for i := 0; i < len(own); i += 2 {
		if own[i] != wire.TypeNull {
			copy(p.types[i:i+2], own[i:])
		}
	}
	return own
}
