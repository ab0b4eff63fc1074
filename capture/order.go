package capture

import (
	"sync"
	"sync/atomic"
	"time"
)

// How the blocks of several lanes come into one file in done order. Lanes never wait for each other: each hands its
// block on when it spans too much time, and the writing goroutine takes the oldest first. A block waits, within the
// account, while another lane has or is storing what was done long before it, however long storing that takes.

// disorder is how far apart the first and the last record of a block may be done, and the records of blocks that follow
// each other. What passes between reading a clock and coming to a lane adds to it, and the sum stays below Disorder.
const disorder = 3 * defaultFlushEvery / 2

// never is later than all times.
const never = time.Duration(1<<63 - 1)

// An instant is a time that others read without a lock.
type instant struct{ ns atomic.Int64 }

func (i *instant) get() time.Duration  { return time.Duration(i.ns.Load()) }
func (i *instant) set(t time.Duration) { i.ns.Store(int64(t)) }

// lower makes it t if that is earlier. Only one goroutine at a time may.
func (i *instant) lower(t time.Duration) {
	if t < i.get() {
		i.set(t)
	}
}

// arrivals are when the records were done that wait for a lane's lock.
type arrivals struct {
	oldest instant
	mu     sync.Mutex
	done   []time.Duration
}

func (a *arrivals) enter(done time.Duration) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.done = append(a.done, done)
	a.oldest.lower(done)
}

func (a *arrivals) leave(done time.Duration) {
	a.mu.Lock()
	defer a.mu.Unlock()
	oldest, found := never, false
	kept := a.done[:0]
	for _, d := range a.done {
		if d == done && !found {
			found = true
			continue
		}
		kept = append(kept, d)
		oldest = min(oldest, d)
	}
	a.done = kept
	a.oldest.set(oldest)
}

// lock takes the lane's lock for a record that was done at done, which others know of from here on.
func (l *Lane) lock(done time.Duration) {
	if l.mu.TryLock() {
		l.keepOrder(done)
		return
	}
	l.arrivals.enter(done)
	l.mu.Lock()
	l.keepOrder(done)
	l.arrivals.leave(done)
}

// keepOrder hands the block on before a record is stored that was done long after its first.
func (l *Lane) keepOrder(done time.Duration) {
	if l.closed {
		return
	}
	if first := l.first.get(); len(l.r.lanes) > 1 && first != never && done-first > disorder {
		l.cut()
	}
	l.announce(done)
}

// announce publishes that a record is being stored: storing a large one takes its time.
func (l *Lane) announce(done time.Duration) {
	if done > 0 {
		l.first.lower(done)
	}
}

// oldest is when the oldest record was done that the lane has or is about to have.
func (l *Lane) oldest() time.Duration { return min(l.first.get(), l.arrivals.oldest.get()) }

// next is the block to be written next, or nil. What other lanes have of before, or are storing, goes first.
func (r *Recorder) next() *block {
	for {
		b, late := r.pick()
		if late == nil {
			return b
		}
		late.mu.Lock()
		late.cut()
		late.mu.Unlock()
	}
}

// pick takes the oldest block out of the queues, unless a lane is late with an older one.
func (r *Recorder) pick() (b *block, late *Lane) {
	r.mu.Lock()
	defer r.mu.Unlock()
	var from *Lane
	for _, l := range r.lanes {
		if len(l.queue) > 0 && (from == nil || l.queue[0].first < from.queue[0].first) {
			from = l
		}
	}
	if from == nil {
		return nil, nil
	}
	b = from.queue[0]
	for _, l := range r.lanes {
		if l != from && b.info.LastDone-l.oldest() > disorder {
			return nil, l
		}
	}
	from.queue = append(from.queue[:0], from.queue[1:]...)
	b.info.Horizon = max(0, r.horizon())
	return b, nil
}

// horizon is the producer's, but not beyond what follows: in queues and in lanes, or yet to come without a begin.
func (r *Recorder) horizon() time.Duration {
	horizon := r.promised
	for _, l := range r.lanes {
		horizon = min(horizon, l.earliest.get(), l.waits.get())
		for _, b := range l.queue {
			if b.info.Earliest != none {
				horizon = min(horizon, b.info.Earliest)
			}
		}
	}
	return horizon
}
