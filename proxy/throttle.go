package proxy

import (
	"sync"
	"time"
)

// A throttle lets one line a second into the log of what may happen thousands of times in one. Its zero value is ready; it
// is safe for concurrent use.
type throttle struct {
	mu   sync.Mutex
	next time.Time // when the next line may go
	held uint64    // lines that did not since the last that did
}

// allow reports whether a line may go into the log now, and how many have not since the last one.
func (t *throttle) allow() (held uint64, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := time.Now()
	if now.Before(t.next) {
		t.held++
		return 0, false
	}
	held, t.held, t.next = t.held, 0, now.Add(time.Second)
	return held, true
}
