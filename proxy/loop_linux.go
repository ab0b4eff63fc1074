package proxy

import (
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"redrive/internal/epoll"
)

// loops share the connections among them.
type loops []*loop

// A loop relays connections in one goroutine, both sides of each: so an answer is shown to the follower behind its question
// without anybody waiting, and the thread that learns of bytes is the one that passes them on.
type loop struct {
	proxy  *Proxy
	number int
	poller *epoll.Poller
	load   atomic.Int64  // connections it has or is about to get
	done   chan struct{} // closed when run returns

	mu     sync.Mutex // guards what others leave here for run
	coming []*pair
	going  []*pair // to be hung up
	ending bool

	pairs   []*pair // by slot; nil for a vacant one
	vacant  []int32 // slots
	left    []int32 // slots to become vacant when the events at hand, some of which may be theirs, have been dealt with
	again   []*end  // sides that had more than one turn's worth to be read
	waiting []*pair // those with a deadline, the next one first; some have left before it
	buf     [bufferSize]byte
}

// startLoops starts the event loops, unless the portable relay is wished for.
func (p *Proxy) startLoops() error {
	if p.Portable {
		return nil
	}
	n := p.Loops
	if n == 0 {
		n = procsBefore() // what the process may use, also where a container has less than the machine
	}
	for i := range n {
		poller, err := epoll.New()
		if err != nil {
			p.loops.stop()
			p.loops = nil
			return fmt.Errorf("event loop: %w", err)
		}
		l := &loop{proxy: p, number: i, poller: poller, done: make(chan struct{})}
		p.loops = append(p.loops, l)
		addProcs(1)
		go l.run()
	}
	return nil
}

// stop ends the loops. They must have no connections any more.
func (ls loops) stop() {
	for _, l := range ls {
		l.mu.Lock()
		l.ending = true
		l.mu.Unlock()
		l.poller.Wake()
		<-l.done
		l.poller.Close()
		addProcs(-1)
	}
}

var (
	procs sync.Mutex
	added int // to GOMAXPROCS, by loops
)

// procsBefore is GOMAXPROCS without what loops have added to it.
func procsBefore() int {
	procs.Lock()
	defer procs.Unlock()
	return runtime.GOMAXPROCS(0) - added
}

// addProcs changes GOMAXPROCS: a loop keeps its P while it waits for traffic, so each brings one of its own.
func addProcs(n int) {
	procs.Lock()
	defer procs.Unlock()
	runtime.GOMAXPROCS(runtime.GOMAXPROCS(0) + n)
	added += n
}

// reserve chooses the loop with the fewest connections for another one, until release.
func (ls loops) reserve() int {
	if len(ls) == 0 {
		return 0
	}
	l := slices.MinFunc(ls, func(a, b *loop) int { return int(a.load.Load() - b.load.Load()) })
	l.load.Add(1)
	return l.number
}

func (ls loops) release(number int) {
	if len(ls) > 0 {
		ls[number].load.Add(-1)
	}
}

// relay carries a connection on the loop that was chosen for it.
func (ls loops) relay(c *conn) relay { return &pair{conn: c, loop: ls[c.lane], slot: none} }

// take has the loop carry a connection from now on.
func (l *loop) take(p *pair) {
	l.mu.Lock()
	l.coming = append(l.coming, p)
	l.mu.Unlock()
	l.poller.Wake()
}

// drop has the loop hang up a connection.
func (l *loop) drop(p *pair) {
	l.mu.Lock()
	l.going = append(l.going, p)
	l.mu.Unlock()
	l.poller.Wake()
}

// run relays until stop.
func (l *loop) run() {
	defer close(l.done)
	if l.proxy.Pin {
		if err := epoll.PinThread(l.number); err != nil {
			l.proxy.Logger.Warn("event loop not bound to a CPU", "error", err)
		}
	}
	for {
		events, woken, err := l.poller.Wait(l.patience())
		if err != nil {
			panic(err) // a bug: the poller is ours, and open
		}
		for _, e := range events {
			if p := l.pairs[e.Key>>1]; p != nil {
				p.happened(&p.ends[e.Key&1], e.Events)
			}
		}
		l.goOn()
		l.expire()
		l.vacant = append(l.vacant, l.left...)
		l.left = l.left[:0]
		if woken && l.heed() {
			return
		}
	}
}

// patience is how long the loop may wait for events.
func (l *loop) patience() time.Duration {
	if len(l.again) > 0 {
		return 0
	}
	if len(l.waiting) == 0 {
		return -1
	}
	return max(0, time.Until(l.waiting[0].deadline))
}

// goOn gives another turn to the sides that had more to be read, after everybody else had theirs.
func (l *loop) goOn() {
	turns := l.again
	l.again = nil
	for _, e := range turns {
		e.queued = false
		e.pair.goOn(e)
	}
	clear(turns)
	if l.again == nil {
		l.again = turns[:0]
	}
}

// expire closes the connections whose time is up, and forgets those that have left before.
func (l *loop) expire() {
	if len(l.waiting) == 0 {
		return
	}
	now := time.Now()
	for len(l.waiting) > 0 {
		p := l.waiting[0]
		if p.slot != none && now.Before(p.deadline) {
			return
		}
		l.waiting[0] = nil
		l.waiting = l.waiting[1:]
		if p.slot != none {
			p.conn.mu.Lock()
			p.leave()
			p.conn.mu.Unlock()
			p.conn.end()
		}
	}
	l.waiting = nil
}

// heed does what others have left for the loop to do. It reports whether the loop is to end.
func (l *loop) heed() (end bool) {
	l.mu.Lock()
	coming, going := l.coming, l.going
	l.coming, l.going = nil, nil
	end = l.ending
	l.mu.Unlock()
	for _, p := range coming {
		l.admit(p)
	}
	for _, p := range going {
		p.hungUp()
	}
	return end
}

// admit gives a connection a slot and watches its sockets. What has come before makes events too.
func (l *loop) admit(p *pair) {
	if n := len(l.vacant); n > 0 {
		p.slot, l.vacant = l.vacant[n-1], l.vacant[:n-1]
	} else {
		p.slot = int32(len(l.pairs))
		l.pairs = append(l.pairs, nil)
	}
	l.pairs[p.slot] = p
	for i := range p.ends {
		if err := l.poller.Add(p.ends[i].fd, p.slot<<1|int32(i)); err != nil {
			l.proxy.Logger.Error("connection lost", "session", p.conn.id, "error", err)
			p.ends[i].broken = true
		}
	}
	p.admitted()
}
