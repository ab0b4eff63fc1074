package capture

import (
	"bytes"
	"encoding/binary"
	"hash/maphash"
	"math/bits"
)

// words finds the entries of the dictionary of the block at hand: byte strings stored once, in two of its columns.
// Word 0 is the empty string and is not stored.
type words struct {
	ends   []uint32 // by word, in colWordBytes
	hashes []uint64 // by word
	table  []uint32 // open addressing, a power of two; 0 is free
	seed   maphash.Seed
}

func newWords() words {
	return words{ends: []uint32{0}, hashes: []uint64{0}, table: make([]uint32, 1<<10), seed: maphash.MakeSeed()}
}

func (w *words) reset() {
	w.ends, w.hashes = w.ends[:1], w.hashes[:1]
	clear(w.table)
}

func (w *words) bytes(b *block, word uint64) []byte {
	if word == 0 {
		return nil
	}
	return b.cols[colWordBytes][w.ends[word-1]:w.ends[word]]
}

// word is p's number. expected is the word it probably is.
func (w *words) word(b *block, p []byte, expected uint64) uint64 {
	if len(p) == 0 {
		return 0
	}
	if expected < uint64(len(w.ends)) && bytes.Equal(w.bytes(b, expected), p) {
		return expected
	}
	b.cols[colWordBytes] = append(withRoom(b.cols[colWordBytes], len(p)), p...)
	return w.last(b)
}

// text is the number of p's template: p with every run of digits replaced by one 0. The digits go to the columns
// that follow col: how long each run is, and the digits, two a byte.
func (w *words) text(b *block, p []byte, col int) uint64 {
	if len(p) == 0 {
		return 0
	}
	room := roomOfText(len(p))
	dict, runs, digits := withRoom(b.cols[colWordBytes], room.template), withRoom(b.cols[col+1], room.runs), withRoom(b.cols[col+2], room.digits)
	n, before := int(b.digits[col+2]), len(runs)+len(digits)
	for i := 0; i < len(p); {
		j := i + nonDigits(p[i:])
		dict = append(dict, p[i:j]...)
		for i = j; j < len(p) && p[j]-'0' <= 9; {
			j++
		}
		if j > i {
			dict = append(dict, '0')
			runs = binary.AppendUvarint(runs, uint64(j-i))
			digits = appendDigits(digits, n, p[i:j])
			n += j - i
			i = j
		}
	}
	b.size += len(runs) + len(digits) - before
	b.cols[colWordBytes], b.cols[col+1], b.cols[col+2], b.digits[col+2] = dict, runs, digits, int32(n)
	return w.last(b)
}

// textSize is how many bytes a text takes in its columns, at most.
type textSize struct{ template, runs, digits int }

func roomOfText(length int) textSize { return textSize{length, length/2 + 2, length/2 + 1} }

// nonDigits is how many bytes p begins with that are no digits. It looks at eight at a time: x has a byte below 10 where
// p has a digit, and subtracting 10 from every byte borrows first at the lowest of those.
func nonDigits(p []byte) int {
	const each = 0x0101010101010101
	n := 0
	for ; n+8 <= len(p); n += 8 {
		x := binary.LittleEndian.Uint64(p[n:]) ^ '0'*each
		if digits := (x - 10*each) &^ x & (0x80 * each); digits != 0 {
			return n + bits.TrailingZeros64(digits)/8
		}
	}
	for n < len(p) && p[n]-'0' > 9 {
		n++
	}
	return n
}

// appendDigits appends a run to digits, which holds n: two a byte, the first in the low half.
func appendDigits(digits []byte, n int, run []byte) []byte {
	if n%2 == 1 {
		digits[len(digits)-1] |= (run[0] - '0') << 4
		run = run[1:]
	}
	for ; len(run) >= 2; run = run[2:] {
		digits = append(digits, run[0]-'0'|(run[1]-'0')<<4)
	}
	if len(run) == 1 {
		digits = append(digits, run[0]-'0')
	}
	return digits
}

// last is the number of the word whose bytes were just appended to the dictionary. If it was there before, they are
// taken back.
func (w *words) last(b *block) uint64 {
	start := w.ends[len(w.ends)-1]
	p := b.cols[colWordBytes][start:]
	if len(p) == 0 {
		return 0
	}
	hash := maphash.Bytes(w.seed, p)
	mask := uint64(len(w.table) - 1)
	slot := hash & mask
	for ; w.table[slot] != 0; slot = (slot + 1) & mask {
		word := uint64(w.table[slot])
		if w.hashes[word] == hash && bytes.Equal(w.bytes(b, word), p) {
			b.cols[colWordBytes] = b.cols[colWordBytes][:start]
			return word
		}
	}
	w.table[slot] = uint32(len(w.ends))
	return w.add(b, len(p), hash)
}

func (w *words) add(b *block, length int, hash uint64) uint64 {
	word := len(w.ends)
	w.ends = append(w.ends, w.ends[word-1]+uint32(length))
	w.hashes = append(w.hashes, hash)
	lengths := binary.AppendUvarint(b.cols[colWordLengths], uint64(length))
	b.size += length + len(lengths) - len(b.cols[colWordLengths])
	b.cols[colWordLengths] = lengths
	if 2*word >= len(w.table) {
		w.grow()
	}
	return uint64(word)
}

func (w *words) grow() {
	w.table = make([]uint32, 2*len(w.table))
	mask := uint64(len(w.table) - 1)
	for word := 1; word < len(w.ends); word++ {
		slot := w.hashes[word] & mask
		for w.table[slot] != 0 {
			slot = (slot + 1) & mask
		}
		w.table[slot] = uint32(word)
	}
}
