package capture

import (
	"encoding/binary"
	"time"
)

// A block is a block of records on its way to the file: its columns, and what its header will say.
type block struct {
	cols   [columnCount][]byte
	values [columnCount]int // values in a column of numbers
	digits [columnCount]int // digits in a column of digits, two a byte
	size   int              // bytes in cols
	counts [KindGap + 1]int
	info   BlockInfo
}

func (b *block) reset() {
	for i := range b.cols {
		b.cols[i] = b.cols[i][:0]
	}
	b.size = 0
	clear(b.counts[:])
	clear(b.values[:])
	clear(b.digits[:])
	b.info = BlockInfo{Earliest: none, LastDone: none, OldestOpen: none}
}

// commands is the number of records that share the columns of statements: statements and begins.
func (b *block) commands() int { return b.counts[KindStatement] + b.counts[KindBegin] }

// put appends a value to a column to which before values belong already. Zeros are left for later: most values are
// zero, and at the end of a column, or in one that holds nothing else, they need not be written at all.
func (b *block) put(id int, value uint64, before int) {
	if value != 0 {
		b.putValue(id, value, before)
	}
}

func (b *block) putValue(id int, value uint64, before int) {
	col := b.cols[id]
	n := len(col)
	if zeros := before - b.values[id]; zeros > 0 {
		col = append(col, make([]byte, zeros)...)
	}
	col = binary.AppendUvarint(col, value)
	b.size += len(col) - n
	b.cols[id] = col
	b.values[id] = before + 1
}

// putTime appends the code of a time to a column of times and to that of its low bits, which are mostly random: apart,
// the others compress.
func (b *block) putTime(id int, code uint64, before int) {
	b.put(id, code>>16, before)
	if code&0xFFFF == 0 {
		return
	}
	id += colLows - colIntended
	col := b.cols[id]
	n := len(col)
	if zeros := 2*before - n; zeros > 0 {
		col = append(col, make([]byte, zeros)...)
	}
	b.cols[id] = append(col, byte(code), byte(code>>8))
	b.size += len(b.cols[id]) - n
}

// putBytes appends to a column of bytes.
func (b *block) putBytes(id int, p []byte) {
	b.cols[id] = append(b.cols[id], p...)
	b.size += len(p)
}

// note widens the header's times: a record stands at place in start order and was over at done.
func (b *block) note(place, done time.Duration) {
	place = max(0, place)
	if b.info.Earliest == none || place < b.info.Earliest {
		b.info.Earliest = place
	}
	b.info.LastDone = max(b.info.LastDone, done)
}

// appendPayload appends the columns that hold anything, each behind its id and length.
func (b *block) appendPayload(dst []byte) []byte {
	for id, col := range b.cols {
		if len(col) == 0 {
			continue
		}
		dst = binary.AppendUvarint(dst, uint64(id))
		dst = binary.AppendUvarint(dst, uint64(len(col)))
		dst = append(dst, col...)
	}
	return dst
}

// frameSize is the size from which on a column is a zstd frame of its own: then it has its own statistics.
const frameSize = 2 << 10

// frame is how much of rest, the end of the payload from some column on, goes into one zstd frame: one large column, or
// small ones up to the next large one.
func frame(rest []byte) int {
	end := 0
	for end < len(rest) {
		_, n := binary.Uvarint(rest[end:])
		size, m := binary.Uvarint(rest[end+n:])
		large := size >= frameSize
		if large && end > 0 {
			break
		}
		end += n + m + int(size)
		if large {
			break
		}
	}
	return end
}
