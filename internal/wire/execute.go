package wire

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"strconv"
)

// CursorReadOnly is the flag of an EXECUTE that asks for a cursor.
const CursorReadOnly byte = 0x01

const paramCountAvailable byte = 0x08

// LastStatementID stands in an EXECUTE for the statement the connection prepared last (MariaDB).
const LastStatementID uint32 = 0xFFFFFFFF

// An Execute is a COM_STMT_EXECUTE command, cut into its parts. Slices alias the packet.
type Execute struct {
	ID         uint32
	Flags      byte
	Nulls      []byte // NULL bitmap, ⌈n/8⌉ bytes
	Types      []byte // two bytes a parameter: type and flags; nil when the packet has none and earlier ones apply
	Values     []byte // values of the parameters that are neither NULL nor sent as long data
	Attributes int    // query attributes that stood behind the statement's own parameters; they are left out
}

// ParseExecute reads an EXECUTE payload, command byte included, of a statement with n parameters. long is a bitmap of
// those sent as long data, nil if none was.
func ParseExecute(payload []byte, n int, caps Capabilities, long []byte) (Execute, error) {
	var e Execute
	c := NewCursor(payload)
	c.Skip(1)
	e.ID = c.Uint32()
	e.Flags = c.Byte()
	c.Skip(4)
	if !c.OK() {
		return e, fmt.Errorf("execute: %w", errShort)
	}
	count := n
	if caps.Has(QueryAttributes) && (n > 0 || e.Flags&paramCountAvailable != 0) && c.Len() > 0 {
		all := c.Lenenc()
		if all < uint64(n) || all > math.MaxUint16 {
			return e, fmt.Errorf("execute: %d parameters, prepared with %d", all, n)
		}
		count = int(all)
		e.Attributes = count - n
	}
	if count == 0 || c.Len() == 0 && n == 0 {
		return e, nil // a byte 0 may follow
	}
	e.Nulls = c.Bytes((count + 7) / 8)
	if bound := c.Byte(); bound == 1 {
		e.Types = readTypes(&c, count, caps)
	}
	if !c.OK() {
		return e, fmt.Errorf("execute: %w", errShort)
	}
	e.Values = c.Rest()
	if e.Attributes > 0 && len(e.Types) > 0 {
		e.dropAttributes(n, long)
	}
	return e, nil
}

// dropAttributes leaves the statement's own n parameters, which stand first.
func (e *Execute) dropAttributes(n int, long []byte) {
	c := NewCursor(e.Values)
	for i := range n {
		if !bit(e.Nulls, i) && !bit(long, i) {
			readValue(&c, e.Types[2*i])
		}
	}
	e.Nulls, e.Types, e.Values = e.Nulls[:(n+7)/8], e.Types[:2*n], e.Values[:c.off]
}

// readTypes reads the types of count parameters; with query attributes each is followed by a name, which is left out.
func readTypes(c *Cursor, count int, caps Capabilities) []byte {
	if !caps.Has(QueryAttributes) {
		return c.Bytes(2 * count)
	}
	types := make([]byte, 0, 2*min(count, c.Len()))
	for range count {
		types = append(types, c.Byte(), c.Byte())
		c.LenencBytes()
	}
	return types
}

// bit reports whether bit i of a bitmap is set; bits behind its end are clear.
func bit(bitmap []byte, i int) bool { return i/8 < len(bitmap) && bitmap[i/8]&(1<<(i%8)) != 0 }

// BulkTypes is the flag of a COM_STMT_BULK_EXECUTE (MariaDB) that carries types.
const BulkTypes uint16 = 128

// A Bulk is a COM_STMT_BULK_EXECUTE command, cut into its parts. Slices alias the packet.
type Bulk struct {
	ID    uint32
	Flags uint16
	Types []byte // two bytes a parameter; nil when the packet has none and earlier ones apply
	Rows  []byte // of every row and parameter an indicator (0 value, 1 NULL, 2 DEFAULT, 3 IGNORE), then the value if there is one
}

// ParseBulk reads a COM_STMT_BULK_EXECUTE payload, command byte included, of a statement with n parameters.
func ParseBulk(payload []byte, n int) (Bulk, error) {
	c := NewCursor(payload)
	c.Skip(1)
	b := Bulk{ID: c.Uint32(), Flags: c.Uint16()}
	if b.Flags&BulkTypes != 0 {
		b.Types = c.Bytes(2 * n)
	}
	b.Rows = c.Rest()
	if !c.OK() {
		return b, fmt.Errorf("bulk execute: %w", errShort)
	}
	return b, nil
}

// AppendBulk appends the payload of a COM_STMT_BULK_EXECUTE that carries its own types.
func AppendBulk(dst []byte, b Bulk) []byte {
	flags := b.Flags
	if len(b.Types) > 0 {
		flags |= BulkTypes
	}
	dst = binary.LittleEndian.AppendUint32(append(dst, ComStmtBulkExecute), b.ID)
	dst = binary.LittleEndian.AppendUint16(dst, flags)
	return append(append(dst, b.Types...), b.Rows...)
}

// AppendExecute appends the payload of an EXECUTE that carries its own types, so that it can be decoded by itself.
func AppendExecute(dst []byte, id uint32, flags byte, nulls, types, values []byte) []byte {
	dst = append(dst, ComStmtExecute)
	dst = binary.LittleEndian.AppendUint32(dst, id)
	dst = append(dst, flags, 1, 0, 0, 0)
	if len(types) == 0 {
		return dst
	}
	dst = append(append(dst, nulls...), 1)
	return append(append(dst, types...), values...)
}

// QueryText returns the SQL of a COM_QUERY payload, command byte included, and the query attributes that may stand in
// front of it.
func QueryText(payload []byte, caps Capabilities) (text, attributes []byte, err error) {
	if !caps.Has(QueryAttributes) {
		return payload[1:], nil, nil
	}
	c := NewCursor(payload)
	c.Skip(1)
	start := c.off
	count := c.Lenenc()
	c.Lenenc()
	if count > math.MaxUint16 {
		return nil, nil, fmt.Errorf("query with %d attributes", count)
	}
	if count > 0 {
		nulls := c.Bytes((int(count) + 7) / 8)
		c.Skip(1)
		types := readTypes(&c, int(count), caps)
		if !c.OK() {
			return nil, nil, fmt.Errorf("query attributes: %w", errShort)
		}
		for i := range int(count) {
			if !bit(nulls, i) {
				readValue(&c, types[2*i])
			}
		}
	}
	if !c.OK() {
		return nil, nil, fmt.Errorf("query attributes: %w", errShort)
	}
	if count > 0 {
		attributes = payload[start:c.off]
	}
	return c.Rest(), attributes, nil
}

// AppendQuery appends the payload of a COM_QUERY. attributes are as QueryText gives them, nil for none, and are left
// out where caps have no place for them.
func AppendQuery(dst, text, attributes []byte, caps Capabilities) []byte {
	dst = append(dst, ComQuery)
	switch {
	case !caps.Has(QueryAttributes):
	case attributes == nil:
		dst = append(dst, 0, 1) // no attributes, in one set
	default:
		dst = append(dst, attributes...)
	}
	return append(dst, text...)
}

// TypeNull is the type of a parameter that has no value; a type known from before stays in force for later executes.
const TypeNull byte = 0x06

// Types of binary values, as the protocol manual numbers them.
const (
	typeDecimal    = 0x00
	typeTiny       = 0x01
	typeShort      = 0x02
	typeLong       = 0x03
	typeFloat      = 0x04
	typeDouble     = 0x05
	typeTimestamp  = 0x07
	typeLongLong   = 0x08
	typeInt24      = 0x09
	typeDate       = 0x0A
	typeTime       = 0x0B
	typeDateTime   = 0x0C
	typeYear       = 0x0D
	typeNewDecimal = 0xF6

	unsignedFlag = 0x80
)

func fixedSize(kind byte) int {
	switch kind {
	case typeTiny:
		return 1
	case typeShort, typeYear:
		return 2
	case typeLong, typeInt24, typeFloat:
		return 4
	case typeLongLong, typeDouble:
		return 8
	}
	return 0
}

func readValue(c *Cursor, kind byte) []byte {
	switch kind {
	case TypeNull:
		return nil
	case typeTimestamp, typeDate, typeDateTime, typeTime:
		return c.Bytes(int(c.Byte()))
	}
	if n := fixedSize(kind); n > 0 {
		return c.Bytes(n)
	}
	return c.LenencBytes()
}

// A Param is one parameter of an execute.
type Param struct {
	Type     byte
	Unsigned bool
	Null     bool
	Long     bool   // sent before, as long data: the value is not here
	Raw      []byte // the value's bytes, length prefix excluded
}

// DecodeParams cuts an execute's values into parameters. Parameters sent as long data have a type but no value here;
// long is a bitmap of them, nil if there are none.
func DecodeParams(nulls, types, values, long []byte) ([]Param, error) {
	n := len(types) / 2
	if len(nulls) < (n+7)/8 {
		return nil, errors.New("NULL bitmap shorter than the parameters it is for")
	}
	params := make([]Param, n)
	c := NewCursor(values)
	for i := range params {
		p := &params[i]
		p.Type, p.Unsigned = types[2*i], types[2*i+1]&unsignedFlag != 0
		p.Long = bit(long, i) // a server looks at nothing else of it
		p.Null = !p.Long && (bit(nulls, i) || p.Type == TypeNull)
		if p.Null || p.Long {
			continue
		}
		p.Raw = readValue(&c, p.Type)
		if !c.OK() {
			return nil, fmt.Errorf("parameter %d of type %02X: %w", i+1, p.Type, errShort)
		}
	}
	return params, nil
}

// AppendText appends the parameter as it would stand in SQL text: for people to read, not for a server.
func (p Param) AppendText(dst []byte) []byte {
	if p.Long {
		return append(dst, "<long data>"...)
	}
	if p.Null {
		return append(dst, "NULL"...)
	}
	c := NewCursor(p.Raw)
	switch p.Type {
	case typeTiny, typeShort, typeYear, typeLong, typeInt24, typeLongLong:
		return p.appendInteger(dst)
	case typeFloat:
		return strconv.AppendFloat(dst, float64(math.Float32frombits(c.Uint32())), 'g', -1, 32)
	case typeDouble:
		if len(p.Raw) == 8 {
			return strconv.AppendFloat(dst, math.Float64frombits(binary.LittleEndian.Uint64(p.Raw)), 'g', -1, 64)
		}
	case typeDecimal, typeNewDecimal:
		return append(dst, p.Raw...)
	case typeDate, typeDateTime, typeTimestamp:
		return appendDateTime(dst, &c, p.Type == typeDate)
	case typeTime:
		return appendTime(dst, &c)
	}
	return AppendQuoted(dst, p.Raw)
}

func (p Param) appendInteger(dst []byte) []byte {
	var v uint64
	for i, b := range p.Raw {
		v |= uint64(b) << (8 * i)
	}
	if p.Unsigned {
		return strconv.AppendUint(dst, v, 10)
	}
	shift := 64 - 8*min(len(p.Raw), 8)
	return strconv.AppendInt(dst, int64(v<<shift)>>shift, 10)
}

func appendDateTime(dst []byte, c *Cursor, dateOnly bool) []byte {
	var year uint16
	var f [5]byte
	var micros uint32
	if c.Len() >= 4 {
		year, f[0], f[1] = c.Uint16(), c.Byte(), c.Byte()
	}
	if c.Len() >= 3 {
		f[2], f[3], f[4] = c.Byte(), c.Byte(), c.Byte()
		dateOnly = false
	}
	if c.Len() >= 4 {
		micros = c.Uint32()
	}
	dst = fmt.Appendf(dst, "'%04d-%02d-%02d", year, f[0], f[1])
	if !dateOnly {
		dst = fmt.Appendf(dst, " %02d:%02d:%02d", f[2], f[3], f[4])
	}
	if micros != 0 {
		dst = fmt.Appendf(dst, ".%06d", micros)
	}
	return append(dst, '\'')
}

func appendTime(dst []byte, c *Cursor) []byte {
	sign := ""
	var days, micros uint32
	var h, m, s byte
	if c.Len() >= 8 {
		if c.Byte() != 0 {
			sign = "-"
		}
		days, h, m, s = c.Uint32(), c.Byte(), c.Byte(), c.Byte()
	}
	if c.Len() >= 4 {
		micros = c.Uint32()
	}
	dst = fmt.Appendf(dst, "'%s%02d:%02d:%02d", sign, uint64(days)*24+uint64(h), m, s)
	if micros != 0 {
		dst = fmt.Appendf(dst, ".%06d", micros)
	}
	return append(dst, '\'')
}

// AppendQuoted appends b as a single-quoted SQL string: on one line, bytes that are not printable escaped.
func AppendQuoted(dst, b []byte) []byte {
	dst = append(dst, '\'')
	for _, ch := range b {
		switch {
		case ch == '\'' || ch == '\\':
			dst = append(dst, '\\', ch)
		case ch == '\n':
			dst = append(dst, '\\', 'n')
		case ch == '\r':
			dst = append(dst, '\\', 'r')
		case ch == '\t':
			dst = append(dst, '\\', 't')
		case ch == 0:
			dst = append(dst, '\\', '0')
		case ch < 0x20 || ch == 0x7F:
			dst = fmt.Appendf(dst, "\\x%02x", ch)
		default:
			dst = append(dst, ch)
		}
	}
	return append(dst, '\'')
}
