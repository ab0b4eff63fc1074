package capture

import (
	"encoding/binary"
	"time"
)

// A block is a block of records on its way to the file: its columns, and what its header will say.
type block struct {
	cols   [columnCount][]byte
	size   int // bytes in cols
	counts [KindGap + 1]int
	digits [columnCount]int // digits in a column of digits, two a byte
	info   BlockInfo
}

func (b *block) reset() {
	for i := range b.cols {
		b.cols[i] = b.cols[i][:0]
	}
	b.size = 0
	clear(b.counts[:])
	clear(b.digits[:])
	b.info = BlockInfo{Earliest: none, LastDone: none, OldestOpen: none}
}

// commands is the number of records that share the columns of statements: statements and begins.
func (b *block) commands() int { return b.counts[KindStatement] + b.counts[KindBegin] }

// put appends a value to a column in which before values stand already. Zeros are not written until something else
// comes, so that a column of nothing else stays empty.
func (b *block) put(id int, value uint64, before int) {
	col := b.cols[id]
	n := len(col)
	if n == 0 {
		if value == 0 {
			return
		}
		col = append(col, make([]byte, before)...)
	}
	if value < 0x80 {
		col = append(col, byte(value))
	} else {
		col = binary.AppendUvarint(col, value)
	}
	b.size += len(col) - n
	b.cols[id] = col
}

// putBytes appends to a column of bytes.
func (b *block) putBytes(id int, p []byte) {
	b.cols[id] = append(b.cols[id], p...)
	b.size += len(p)
}

// putDigits appends a run of digits to the two columns behind col.
func (b *block) putDigits(run []byte, col int) {
	b.cols[col+1] = binary.AppendUvarint(b.cols[col+1], uint64(len(run)))
	digits := b.cols[col+2]
	b.size += 1 + len(run)/2
	n := b.digits[col+2]
	b.digits[col+2] = n + len(run)
	if n&1 == 1 {
		digits[len(digits)-1] |= (run[0] - '0') << 4
		run = run[1:]
	}
	for len(run) >= 2 {
		digits = append(digits, run[0]-'0'|(run[1]-'0')<<4)
		run = run[2:]
	}
	if len(run) == 1 {
		digits = append(digits, run[0]-'0')
	}
	b.cols[col+2] = digits
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

// frame is how much of rest, the end of the payload from some column on, goes into one zstd frame: one large column, or
// small ones up to the next large one.
func (b *block) frame(rest []byte) int {
	n := 0
	for n < len(rest) {
		_, idLen := binary.Uvarint(rest[n:])
		size, sizeLen := binary.Uvarint(rest[n+idLen:])
		next := n + idLen + sizeLen + int(size)
		if size >= frameSize && n > 0 {
			return n
		}
		n = next
		if size >= frameSize {
			return n
		}
	}
	return n
}
