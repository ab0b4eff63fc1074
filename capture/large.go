package capture

import (
	"encoding/binary"
	"errors"
)

// A block with a large record is written from where it is: compressed through a small window into chunks or, where that
// saves less than half or there is no memory for the chunks, as it is.

// chunkSize is how much of a large block's compressed bytes stands in one piece.
const chunkSize = 256 << 10

// large writes a block that is larger than the scratch buffers should become.
func (o *output) large(h blockHeader, b *block) {
	plain := b.pieces()
	h.raw = total(plain)
	stored := chunks{memory: o.memory, left: h.raw / 2 / chunkSize}
	defer stored.free()
	pieces := plain
	if o.compress(&stored, plain) == nil {
		pieces = stored.pieces
	} else {
		h.codec = codecRaw
	}
	h.stored = total(pieces)
	head := make([]byte, blockHeaderLen)
	h.put(head, pieces...)
	o.writeAll(append([][]byte{head}, pieces...))
}

// pieces are the payload where it stands: each column behind its id and length.
func (b *block) pieces() (pieces [][]byte) {
	for id, col := range b.cols {
		if len(col) > 0 {
			head := binary.AppendUvarint(nil, uint64(id))
			pieces = append(pieces, binary.AppendUvarint(head, uint64(len(col))), col)
		}
	}
	return pieces
}

func total(pieces [][]byte) (n int) {
	for _, p := range pieces {
		n += len(p)
	}
	return n
}

// compress compresses columns, each with its head before it, into frames: one for each column that is not small.
func (o *output) compress(dst *chunks, columns [][]byte) error {
	open := false
	end := func() error {
		if !open {
			return nil
		}
		open = false
		return o.zstd.Close()
	}
	for i := 0; i < len(columns); i += 2 {
		alone := len(columns[i+1]) >= frameSize
		if alone {
			if err := end(); err != nil {
				return err
			}
		}
		if !open {
			o.zstd.Reset(dst)
			open = true
		}
		for _, p := range columns[i : i+2] {
			if _, err := o.zstd.Write(p); err != nil {
				return err
			}
		}
		if alone {
			if err := end(); err != nil {
				return err
			}
		}
	}
	return end()
}

// chunks take bytes as they come, in pieces that are never copied. Each is taken from the account.
type chunks struct {
	memory *Memory
	pieces [][]byte
	left   int // pieces that may be added
	taken  int
}

var errNoChunk = errors.New("no chunk left")

func (c *chunks) Write(p []byte) (n int, err error) {
	for n < len(p) {
		i := len(c.pieces) - 1
		if i < 0 || len(c.pieces[i]) == chunkSize {
			if c.left == 0 || !c.memory.Take(chunkSize) {
				return n, errNoChunk
			}
			c.left--
			c.taken += chunkSize
			c.pieces = append(c.pieces, make([]byte, 0, chunkSize))
			continue
		}
		step := min(len(p)-n, chunkSize-len(c.pieces[i]))
		c.pieces[i] = append(c.pieces[i], p[n:n+step]...)
		n += step
	}
	return n, nil
}

func (c *chunks) free() { c.memory.Give(c.taken) }
