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
	handle unique.Handle[string] // keeps one copy of a text that many sessions prepare
	text   []byte                // the bytes of that copy: never to be written to
	params int
	types  []byte // of the last execute that had any
	long   []byte // bitmap of the parameters sent as long data for the next execute
}

// prepare notes a statement that the server has prepared.
func (f *Follower) prepare(c *command) {
	p := c.reply.Prepared
	c.statement.StatementID, f.lastID = p.ID, p.ID
	if f.statements == nil {
		f.statements = map[uint32]*prepared{}
	}
	handle := unique.Make(string(c.statement.Text))
	text := handle.Value()
	f.statements[p.ID] = &prepared{
		handle: handle, text: unsafe.Slice(unsafe.StringData(text), len(text)), params: int(p.Params),
	}
}

// unprepare forgets a statement that was closed.
func (f *Follower) unprepare(id uint32) {
	delete(f.statements, id)
	if id == f.lastID {
		f.lastID = 0
	}
}

// readPrepared reads a command that begins with the id of a prepared statement. Text is the statement's own, but for
// long data, which is data of its own.
func (f *Follower) readPrepared(c *command) {
	s := &c.statement
	cur := wire.NewCursor(c.payload)
	cur.Skip(1)
	s.StatementID = cur.Uint32()
	if s.StatementID == wire.LastStatementID {
		s.StatementID = f.lastID
	}
	p := f.statements[s.StatementID]
	if p == nil { // not known, and most likely refused
		p = &prepared{}
		if wire.RunsSQL(c.code) {
			s.Flags |= capture.TextUnknown
		}
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
	e, err := wire.ParseExecute(c.payload, p.params, f.caps, long)
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
	s.Params.Values = cur.Rest()
	if s.Flags.Has(capture.TextUnknown) {
		return
	}
	b, err := wire.ParseBulk(c.payload, p.params)
	if err != nil {
		s.Flags |= capture.NoTypes
		return
	}
	p.keepTypes(b.Types)
	s.Params.Types = p.types
	if len(p.types) < 2*p.params {
		s.Flags |= capture.NoTypes
	}
	s.Params.Values = c.payload[len(c.payload)-len(b.Rows)-2:]
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
