package replay

import (
	"context"
	"sync"
	"time"
)

const (
	defaultBudget = 64 << 20
	stuckAfter    = time.Second // without anything given back, while what comes next is overdue
	growthLimit   = 8           // times the budget that may be held where nothing else helps
)

// A budget bounds the bytes of statements that were read and not yet sent. The reader waits when it is used up. One
// case must not wait: when nothing moves because sessions wait for locks, and what would free the locks is yet to be
// read. There the budget grows, step by step, up to growthLimit times; beyond that the server's own lock timeouts help.
type budget struct {
	limit int

	mu       sync.Mutex
	used     int
	extra    int           // allowed beyond limit until used is below limit again
	released chan struct{} // has room for one signal: something was given back
}

func newBudget(limit int) *budget {
	if limit <= 0 {
		limit = defaultBudget
	}
	return &budget{limit: limit, released: make(chan struct{}, 1)}
}

// take waits until cost may be held, and holds it. overdue says whether what it is for should have been sent by now. It
// returns how long it waited, and false if ctx ended first.
func (b *budget) take(ctx context.Context, cost int, overdue func() bool) (waited time.Duration, ok bool) {
	if b.admit(cost) {
		return 0, true
	}
	start := time.Now()
	timer := time.NewTimer(stuckAfter)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return time.Since(start), false
		case <-b.released:
		case <-timer.C:
			if overdue() {
				b.grow()
			}
		}
		if b.admit(cost) {
			return time.Since(start), true
		}
		timer.Reset(stuckAfter)
	}
}

// admit holds cost if anything at all is left: a statement larger than the budget must pass too.
func (b *budget) admit(cost int) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.used < b.limit {
		b.extra = 0
	}
	if b.used >= b.limit+b.extra {
		return false
	}
	b.used += cost
	return true
}

func (b *budget) grow() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.extra = min(b.extra+max(1, b.limit/4), (growthLimit-1)*b.limit)
}

func (b *budget) give(cost int) {
	b.mu.Lock()
	b.used -= cost
	b.mu.Unlock()
	select {
	case b.released <- struct{}{}:
	default:
	}
}
