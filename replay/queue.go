package replay

import (
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"redrive/capture"
)

// action is what a session has to do with an item.
type action byte

const (
	actSend    action = iota // send the statement
	actBegin                 // send it, and keep what comes of it: the captured outcome follows
	actCompare               // the end of a statement sent at its begin: only its outcome is new
	actEnd                   // end the session
)

// An item is one record on its way to a session and its copies, which share it.
type item struct {
	act       action
	statement *capture.Statement // nil for actEnd
	due       time.Duration
	skip      string // why nobody sends it
	skipCopy  string // why copies do not
	cost      int
	holders   atomic.Int32
	budget    *budget
}

// release gives the item's room back once the last holder is done with it.
func (i *item) release() {
	if i.holders.Add(-1) == 0 {
		i.budget.give(i.cost)
	}
}

// itemCost is about what a statement takes in memory.
func itemCost(s *capture.Statement) int {
	return int(unsafe.Sizeof(item{})+unsafe.Sizeof(*s)) + len(s.Text) + len(s.Schema) +
		len(s.Params.Nulls) + len(s.Params.Types) + len(s.Params.Values)
}

// A queue holds what a session is to do, in the captured order. The reader puts, the session takes; neither ever
// waits for the other while holding anything.
type queue struct {
	mu     sync.Mutex
	items  []*item
	closed bool
	ready  chan struct{} // has room for one signal: there is something new
}

func newQueue() *queue { return &queue{ready: make(chan struct{}, 1)} }

func (q *queue) put(i *item) {
	q.mu.Lock()
	q.items = append(q.items, i)
	q.mu.Unlock()
	q.signal()
}

// close says that nothing follows.
func (q *queue) close() {
	q.mu.Lock()
	q.closed = true
	q.mu.Unlock()
	q.signal()
}

func (q *queue) signal() {
	select {
	case q.ready <- struct{}{}:
	default:
	}
}

// take waits for the next item. It is nil at the queue's end.
func (q *queue) take() *item {
	for {
		if i, closed := q.poll(); i != nil || closed {
			return i
		}
		<-q.ready
	}
}

func (q *queue) poll() (i *item, closed bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.items) == 0 {
		return nil, q.closed
	}
	i = q.items[0]
	q.items[0] = nil
	q.items = q.items[1:]
	return i, false
}
