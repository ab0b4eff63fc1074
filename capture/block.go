package capture

import (
	"encoding/binary"
	"time"
)

// A block is a block of records on its way to the file: its columns, and what its header will say.
type block struct {
	cols    [columnCount][]byte
	values  [columnCount]int32 // values in a column of numbers
	digits  [columnCount]int32 // digits in a column of digits, two a byte
	size    int                // bytes in cols
	counts  [KindGap + 1]int
	gap     Gap       // sums of its gap records
	begun   []opening // its begin records
	over    []command // ends of begun statements in it
	ended   []uint64  // sessions whose end is in it
	info    BlockInfo
	first   time.Duration // earliest Done or At of its records; 0 if it has none but begins and gaps
	charged int           // bytes taken from the account for it
}

// blockCost is what an empty block takes: itself, and the first bytes of each column in use.
const blockCost = 6 << 10

// largeBytes is the size from which on byte strings get room of exactly their size: others find it doubled, so that
// columns are seldom copied.
const largeBytes = 64 << 10

func (b *block) reset() {
	for i := range b.cols {
		b.cols[i] = b.cols[i][:0]
	}
	b.size = 0
	b.gap, b.begun, b.over, b.ended = Gap{}, b.begun[:0], b.over[:0], b.ended[:0]
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
	zeros := max(0, before-int(b.values[id]))
	col := withRoom(b.cols[id], zeros+binary.MaxVarintLen64)
	n := len(col)
	col = col[:n+zeros]
	clear(col[n:])
	col = binary.AppendUvarint(col, value)
	b.size += len(col) - n
	b.cols[id] = col
	b.values[id] = int32(before) + 1
}

// putTime appends the code of a time to a column of times and to that of its low bits, which are mostly random: apart,
// the others compress.
func (b *block) putTime(id int, code uint64, before int) {
	b.put(id, code>>16, before)
	if code&0xFFFF == 0 {
		return
	}
	id += colLows - colIntended
	n := len(b.cols[id])
	col := withRoom(b.cols[id], 2*before-n+2)[:2*before]
	clear(col[n:])
	b.cols[id] = append(col, byte(code), byte(code>>8))
	b.size += len(b.cols[id]) - n
}

// putBytes appends to a column of bytes.
func (b *block) putBytes(id int, p []byte) {
	b.cols[id] = append(withRoom(b.cols[id], len(p)), p...)
	b.size += len(p)
}

// withRoom is col with room for n bytes more.
func withRoom(col []byte, n int) []byte {
	if cap(col)-len(col) >= n {
		return col
	}
	return enlarged(col, n)
}

func enlarged(col []byte, n int) []byte {
	size := len(col) + n
	if n < largeBytes {
		size = max(size, 2*cap(col), 64)
	}
	return append(make([]byte, 0, size), col...)
}

// footprint is how many bytes the block takes.
func (b *block) footprint() int {
	size := blockCost
	for _, col := range b.cols {
		size += cap(col)
	}
	return size
}

// trim lets go of columns that are larger than an ordinary block needs them.
func (b *block) trim() {
	for i, col := range b.cols {
		if cap(col) > 2*blockSize {
			b.cols[i] = nil
		}
	}
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
