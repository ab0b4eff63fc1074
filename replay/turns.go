package replay

import "sync"

// turns keeps the captured concurrency at full speed, where no due times do: a session starts only when those that had
// ended before it began, in the capture, have ended. The reader calls follow and end in start order.
type turns struct {
	mu        sync.Mutex
	ended     int          // ends that were read
	passed    int          // ends that have happened on the target, without a gap
	early     map[int]bool // those that have happened behind a gap
	followers []follower   // in the order of after
}

type follower struct {
	after int
	ready chan struct{}
}

// follow returns a channel that closes when every session whose end was read has ended.
func (t *turns) follow() <-chan struct{} {
	t.mu.Lock()
	defer t.mu.Unlock()
	f := follower{t.ended, make(chan struct{})}
	t.followers = append(t.followers, f)
	t.advance()
	return f.ready
}

// end notes that a session's end was read, and numbers it.
func (t *turns) end() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.ended++
	return t.ended - 1
}

// done says that the session whose end has this number has ended on the target.
func (t *turns) done(number int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.early == nil {
		t.early = map[int]bool{}
	}
	t.early[number] = true
	for t.early[t.passed] {
		delete(t.early, t.passed)
		t.passed++
	}
	t.advance()
}

func (t *turns) advance() {
	for len(t.followers) > 0 && t.followers[0].after <= t.passed {
		close(t.followers[0].ready)
		t.followers = t.followers[1:]
	}
}
