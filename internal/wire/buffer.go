package wire

import (
	"math/bits"
	"sync"
	"unsafe"
)

// An Account is asked before memory is taken for what a peer sends, and told when it is given back.
type Account interface {
	Take(n int) bool // reports false, and takes nothing, if so many bytes are not left
	Give(n int)
}

const (
	leastBuffer  = 64
	smallBuffer  = 1 << 10  // up to here memory stays with the Buffer and is nobody's account
	pooledBuffer = 64 << 10 // up to here memory is shared by way of pools; larger memory is left to the collector
)

// A Buffer gathers bytes of a peer's. No length that the peer names is believed: it grows by doubling as the bytes come,
// and what it has beyond 1 KiB is taken from an account, and given back by Reset. The zero value is empty. The account,
// nil for one that grants everything, must be the same in all calls.
type Buffer struct {
	data  []byte
	small []byte // kept from one use to the next
}

// Bytes are those gathered so far. They are valid until the next Append or Reset.
func (b *Buffer) Bytes() []byte { return b.data }

// Len is how many bytes have been gathered.
func (b *Buffer) Len() int { return len(b.data) }

// Append adds as many bytes of data as leave no more than limit in all, and as there is memory for. It returns how many.
func (b *Buffer) Append(data []byte, limit int, account Account) int {
	n := min(len(data), limit-len(b.data))
	if n <= 0 {
		return 0
	}
	if len(b.data)+n > cap(b.data) && !b.grow(len(b.data)+n, account) {
		n = min(n, cap(b.data)-len(b.data))
	}
	b.data = append(b.data, data[:n]...)
	return n
}

// grow makes room for size bytes in all. Without memory it makes what room there is for nothing, and reports false.
func (b *Buffer) grow(size int, account Account) bool {
	if size > smallBuffer && b.enlarge(size, account) {
		return true
	}
	if cap(b.data) >= smallBuffer {
		return false
	}
	b.small = append(make([]byte, 0, roundUp(min(size, smallBuffer))), b.data...)
	b.data = b.small
	return size <= smallBuffer
}

// enlarge moves what was gathered into memory from the account.
func (b *Buffer) enlarge(size int, account Account) bool {
	memory, ok := take(roundUp(size), account)
	if !ok {
		return false
	}
	old := b.data
	b.data = append(memory, old...)
	give(old, account)
	return true
}

// Reset empties the buffer and gives back what it took. What Bytes gave must no longer be used.
func (b *Buffer) Reset(account Account) {
	give(b.data, account)
	b.data = b.small[:0]
}

// roundUp is the power of two that a buffer for n bytes has.
func roundUp(n int) int { return 1 << bits.Len(uint(max(n, leastBuffer)-1)) }

// pools hold memory of 2 KiB, 4 KiB … up to pooledBuffer, each as a pointer to its first byte.
var pools [6]sync.Pool

func poolOf(size int) *sync.Pool {
	return &pools[bits.TrailingZeros(uint(size))-bits.TrailingZeros(2*smallBuffer)]
}

// take gives empty memory for size bytes, a power of two.
func take(size int, account Account) ([]byte, bool) {
	if account != nil && !account.Take(size) {
		return nil, false
	}
	if size <= pooledBuffer {
		if p, ok := poolOf(size).Get().(*byte); ok {
			return unsafe.Slice(p, size)[:0], true
		}
	}
	return make([]byte, 0, size), true
}

// give gives back what take gave; it leaves small buffers alone.
func give(memory []byte, account Account) {
	size := cap(memory)
	if size <= smallBuffer {
		return
	}
	if size <= pooledBuffer {
		poolOf(size).Put(unsafe.SliceData(memory))
	}
	if account != nil {
		account.Give(size)
	}
}
