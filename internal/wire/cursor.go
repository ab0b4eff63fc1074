package wire

import "encoding/binary"

// A Cursor reads the fields of one packet in order. Its first failure sticks: every later read gives zero, and Err
// says so at the end, so that one check is enough. Slices it returns alias the packet.
type Cursor struct {
	data []byte
	off  int
	bad  bool
}

// NewCursor reads data from its first byte.
func NewCursor(data []byte) Cursor { return Cursor{data: data} }

// OK reports whether every read so far found its bytes.
func (c *Cursor) OK() bool { return !c.bad }

// Len is the number of unread bytes.
func (c *Cursor) Len() int { return len(c.data) - c.off }

// Bytes reads the next n bytes.
func (c *Cursor) Bytes(n int) []byte {
	if c.bad || n < 0 || n > c.Len() {
		c.bad = true
		return nil
	}
	b := c.data[c.off : c.off+n : c.off+n]
	c.off += n
	return b
}

// Skip passes over n bytes.
func (c *Cursor) Skip(n int) { c.Bytes(n) }

// Rest reads all that is left.
func (c *Cursor) Rest() []byte { return c.Bytes(c.Len()) }

// Byte reads one byte.
func (c *Cursor) Byte() byte {
	if c.bad || c.off >= len(c.data) {
		c.bad = true
		return 0
	}
	b := c.data[c.off]
	c.off++
	return b
}

// Uint16 reads two bytes, little-endian.
func (c *Cursor) Uint16() uint16 {
	if b := c.Bytes(2); b != nil {
		return binary.LittleEndian.Uint16(b)
	}
	return 0
}

// Uint32 reads four bytes, little-endian.
func (c *Cursor) Uint32() uint32 {
	if b := c.Bytes(4); b != nil {
		return binary.LittleEndian.Uint32(b)
	}
	return 0
}

// Lenenc reads a length-encoded integer. The bytes FB (NULL) and FF (ERR), which begin none, are failures.
func (c *Cursor) Lenenc() uint64 {
	first := c.Byte()
	switch first {
	case 0xFB, 0xFF:
		c.bad = true
		return 0
	case 0xFC:
		return uint64(c.Uint16())
	case 0xFD:
		b := c.Bytes(3)
		if b == nil {
			return 0
		}
		return uint64(b[0]) | uint64(b[1])<<8 | uint64(b[2])<<16
	case 0xFE:
		if b := c.Bytes(8); b != nil {
			return binary.LittleEndian.Uint64(b)
		}
		return 0
	}
	return uint64(first)
}

// LenencBytes reads a length-encoded string.
func (c *Cursor) LenencBytes() []byte {
	n := c.Lenenc() & 0xFFFFFFFF // no string is longer, and some drivers leave garbage in the upper half
	if n > uint64(c.Len()) {
		c.bad = true
		return nil
	}
	return c.Bytes(int(n))
}

// NulBytes reads up to the next NUL and passes over it. Without a NUL it reads to the end, as real peers leave the
// last one out.
func (c *Cursor) NulBytes() []byte {
	if c.bad {
		return nil
	}
	rest := c.data[c.off:]
	for i, b := range rest {
		if b == 0 {
			c.off += i + 1
			return rest[:i:i]
		}
	}
	c.off = len(c.data)
	return rest
}

// AppendLenenc appends n as a length-encoded integer.
func AppendLenenc(dst []byte, n uint64) []byte {
	switch {
	case n < 0xFB:
		return append(dst, byte(n))
	case n < 1<<16:
		return append(dst, 0xFC, byte(n), byte(n>>8))
	case n < 1<<24:
		return append(dst, 0xFD, byte(n), byte(n>>8), byte(n>>16))
	}
	return binary.LittleEndian.AppendUint64(append(dst, 0xFE), n)
}

// AppendLenencBytes appends b as a length-encoded string.
func AppendLenencBytes(dst, b []byte) []byte {
	return append(AppendLenenc(dst, uint64(len(b))), b...)
}
