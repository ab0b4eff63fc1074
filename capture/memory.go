package capture

import "sync/atomic"

// A Memory is an account of bytes that several parts share: a Recorder's records on their way to the file, and what
// followers keep of commands in flight. It is safe for concurrent use. A nil *Memory grants everything.
type Memory struct {
	limit int64
	used  atomic.Int64
}

// NewMemory is an account of limit bytes, none of them taken.
func NewMemory(limit int) *Memory { return &Memory{limit: int64(limit)} }

// Take takes n bytes, to be given back by Give. It reports false, and takes nothing, if so many are not left.
func (m *Memory) Take(n int) bool {
	if m == nil {
		return true
	}
	for {
		used := m.used.Load()
		if used+int64(n) > m.limit {
			return false
		}
		if m.used.CompareAndSwap(used, used+int64(n)) {
			return true
		}
	}
}

// Give gives n bytes back that were taken.
func (m *Memory) Give(n int) {
	if m != nil {
		m.used.Add(int64(-n))
	}
}

// Used is how many bytes are taken.
func (m *Memory) Used() int {
	if m == nil {
		return 0
	}
	return int(m.used.Load())
}

// Limit is how many bytes there are in all; of a nil *Memory, more than there can be.
func (m *Memory) Limit() int {
	if m == nil {
		return int(^uint(0) >> 1)
	}
	return int(m.limit)
}

// force takes n bytes whether they are left or not.
func (m *Memory) force(n int) {
	if m != nil {
		m.used.Add(int64(n))
	}
}
