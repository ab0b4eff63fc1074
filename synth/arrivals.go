package synth

import (
	"sync"
	"time"
)

// Arrivals is the schedule of an open loop: a Poisson process of absolute due times, handed out first come, first
// served. However late events are begun, their due times stay, and none is left out. It is safe for concurrent use.
type Arrivals struct {
	mu      sync.Mutex
	random  *Random
	mean    float64 // nanoseconds between arrivals
	last    time.Duration
	pending []time.Duration // drawn, but not handed out
	end     time.Duration   // nothing is due from here on
}

// NewArrivals is the schedule of so many events per second on average between start and end. As in sysbench the first
// event comes after two gaps.
func NewArrivals(random *Random, rate int, start, end time.Duration) *Arrivals {
	a := &Arrivals{random: random, mean: float64(time.Second) / float64(rate), last: start, end: end}
	a.last += a.gap()
	return a
}

func (a *Arrivals) gap() time.Duration { return time.Duration(a.random.ExpFloat64() * a.mean) }

// draw adds the next arrival to those pending.
func (a *Arrivals) draw() {
	a.last += a.gap()
	a.pending = append(a.pending, a.last)
}

// Next hands out the next due time; ok is false when it lies beyond the end.
func (a *Arrivals) Next() (due time.Duration, ok bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.pending) == 0 {
		a.draw()
	}
	due = a.pending[0]
	if due >= a.end {
		return 0, false
	}
	a.pending = a.pending[1:]
	return due, true
}

// Backlog is how many events are due at now and not handed out.
func (a *Arrivals) Backlog(now time.Duration) int {
	a.mu.Lock()
	defer a.mu.Unlock()
	now = min(now, a.end-1)
	for a.last <= now {
		a.draw()
	}
	n := 0
	for n < len(a.pending) && a.pending[n] <= now {
		n++
	}
	return n
}
