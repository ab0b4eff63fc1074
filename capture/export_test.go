package capture

import "time"

// SetLimit makes a statement with more bytes of byte strings too long to be stored whole.
func (w *Writer) SetLimit(n int) { w.enc.limit = n }

// Held is how many records wait for their turn.
func (o *Ordered) Held() int { return len(o.heap) }

// Storing is a lane in the midst of storing a record that was done at done, until goOn is called.
func (l *Lane) Storing(done time.Duration) (goOn func()) {
	l.lock(done)
	return l.mu.Unlock
}

// Waiting is how many records wait for the lane's lock.
func (l *Lane) Waiting() int {
	l.arrivals.mu.Lock()
	defer l.arrivals.mu.Unlock()
	return len(l.arrivals.done)
}

// Pending is how many blocks are to be written.
func (r *Recorder) Pending() int { return int(r.pending.Load()) }
