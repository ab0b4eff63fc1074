package capture

import (
	"cmp"
	"errors"
	"io"
	"sync"
	"sync/atomic"
	"time"
)

// RecorderOptions steer a Recorder.
type RecorderOptions struct {
	OnFull     OnFull        // what to do with a record that finds no room
	Memory     *Memory       // the account that all the recorder takes is taken from; nil: one of its own of 64 MiB
	Lanes      int           // ways in that share no lock; 0 means 1
	FlushEvery time.Duration // how old a record may grow before it is handed on to be written; 0 means 500ms, with several lanes the most there is
	Sync       func() error  // called after a flush about once a second, and at the end; nil: none
	Failed     func(error)   // called when the file cannot be written, or OnFull ends the recording; it must not call the Recorder. nil: none
	Resumed    func()        // called when a file that could not be written is written again; it must not call the Recorder. nil: none
}

const (
	defaultMemory     = 64 << 20
	defaultFlushEvery = 500 * time.Millisecond
	syncEvery         = time.Second
	recordCost        = 256     // bytes at most that a record takes beside its byte strings
	writerCost        = 8 << 20 // bytes that compressing and writing take, whatever is recorded
	mostStep          = 64 << 10
)

// A Recorder writes a capture file for many goroutines: they encode records, each lane under its own short lock; one
// goroutine compresses and writes; one flushes what has become old. Unless OnFull is Block no call ever waits for the
// file: what finds no room is shed, counted, and told in a gap record.
//
// When the file cannot be written everything is shed. If it is a regular file (the writer has Truncate and Seek, as an
// os.File) the torn block is taken back, and the recording goes on behind a gap as soon as a block can be written;
// otherwise it has ended, and Close says why.
//
// All memory is taken from the account: an eighth of it at once for records that others hang on (a quarter for
// ShedTransactions), at most a quarter for writing, the rest as it is needed. A statement takes up to the double of its
// bytes until its block is written; a large one takes its bytes, and half of that again while it is compressed, if so
// much is left.
type Recorder struct {
	opts  RecorderOptions
	lanes []*Lane
	most  int // cost of the largest record that can find room
	kept  int // bytes kept of the text of a larger statement
	step  int // bytes that lanes take at once where there are plenty

	wake     chan struct{} // something is queued, or time has passed
	stopping chan struct{} // closed when OnFull ends the recording
	closing  chan struct{}
	flushed  chan struct{} // closed when the flushing goroutine has ended
	done     chan struct{} // closed when the writing goroutine has ended

	pending atomic.Int64 // blocks queued or being written
	idle    atomic.Int64 // blocks in free
	taken   atomic.Int64 // bytes taken from the account in all

	out  *output  // of the writing goroutine
	gaps *encoder // of the writing goroutine: for gaps of an outage

	mu       sync.Mutex
	room     sync.Cond // a block was written, or there is no use in waiting
	free     []*block
	promised time.Duration // the producer's horizon
	reserve  int           // bytes of the reserved room that are left
	reserved int           // bytes of the reserved room
	lost     Gap           // what stood in blocks that were not written
	missing  uint64        // statements in them
	ended    uint64        // unfinished
	waits    bool          // calls may wait for room
	closed   bool
	stopped  bool
}

// NewRecorder writes the header to w and starts the goroutines, which end with Close.
func NewRecorder(w io.Writer, h Header, opts RecorderOptions) *Recorder {
	if opts.Memory == nil {
		opts.Memory = NewMemory(defaultMemory)
	}
	opts.Lanes = max(1, opts.Lanes)
	if opts.FlushEvery == 0 || opts.Lanes > 1 {
		opts.FlushEvery = min(cmp.Or(opts.FlushEvery, defaultFlushEvery), defaultFlushEvery)
	}
	r := &Recorder{
		opts: opts, waits: opts.OnFull == Block, out: newOutput(w, h, opts.Memory),
		wake: make(chan struct{}, 1), stopping: make(chan struct{}), closing: make(chan struct{}),
		flushed: make(chan struct{}), done: make(chan struct{}),
	}
	r.room.L = &r.mu
	r.out.mayTakeBack()
	r.provide()
	for range opts.Lanes {
		r.lanes = append(r.lanes, newLane(r))
	}
	if r.out.err != nil {
		r.fail()
	}
	go r.flush()
	go r.write()
	return r
}

// Lane is lane number i, modulo how many there are.
func (r *Recorder) Lane(i int) *Lane { return r.lanes[uint(i)%uint(len(r.lanes))] }

// Statement is the first lane's.
func (r *Recorder) Statement(s *Statement) { r.lanes[0].Statement(s) }

// Begin is the first lane's.
func (r *Recorder) Begin(s *Statement) { r.lanes[0].Begin(s) }

// SessionStart is the first lane's.
func (r *Recorder) SessionStart(s *SessionStart) { r.lanes[0].SessionStart(s) }

// SessionEnd is the first lane's.
func (r *Recorder) SessionEnd(s *SessionEnd) { r.lanes[0].SessionEnd(s) }

// Horizon is the Writer's: a promise about every record that is stored after this call, in any lane.
func (r *Recorder) Horizon(t time.Duration) {
	r.each(func(*Lane) {}) // whatever is being stored is published from here on
	r.mu.Lock()
	defer r.mu.Unlock()
	r.promised = max(r.promised, t)
}

// Ledger is the account so far, without what is unfinished.
func (r *Recorder) Ledger() Ledger {
	r.mu.Lock()
	missing := r.missing
	sum := Ledger{Forwarded: r.ended, Unfinished: r.ended}
	r.mu.Unlock()
	for _, l := range r.lanes {
		l.mu.Lock()
		sum.Forwarded += l.ledger.Forwarded
		sum.Stored += l.ledger.Stored
		sum.Shed += l.ledger.Shed
		sum.Opaque += l.ledger.Opaque
		l.mu.Unlock()
	}
	sum.Stored -= missing
	sum.Shed += missing
	return sum
}

// Release makes calls that wait for room go on without, for good: what finds none from here on is shed.
func (r *Recorder) Release() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.waits = false
	r.room.Broadcast()
}

// Close writes what is left and the file's end, and waits for the goroutines. It does not close the underlying writer.
// unfinished is the number of commands that were forwarded and have no end: they count as forwarded. Records that come
// later are ignored. The error is why the file could not be written to its end, or ErrFull.
func (r *Recorder) Close(unfinished uint64) (Ledger, error) {
	r.mu.Lock()
	again := r.closed
	if !again {
		r.closed = true
		r.ended = unfinished
		r.room.Broadcast()
	}
	r.mu.Unlock()
	if again {
		<-r.done
		return r.Ledger(), errors.New("capture: closed twice")
	}
	r.each(func(l *Lane) { l.closed = true })
	close(r.closing)
	<-r.done
	return r.Ledger(), r.outcome()
}

// outcome is what was wrong with the recording, once the goroutines have ended.
func (r *Recorder) outcome() error {
	if r.out.err == nil && r.stopped {
		return ErrFull
	}
	return r.out.err
}

// What waiting came to.
type waitResult int

const (
	waited waitResult = iota
	nothingToWaitFor
	released
)

// wait waits until a block has been written, if any is to be.
func (r *Recorder) wait() waitResult {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.closed:
		return waited
	case !r.waits:
		return released
	case r.pending.Load() == 0:
		return nothingToWaitFor
	}
	r.room.Wait()
	return waited
}

// stop ends the recording, as there is no room.
func (r *Recorder) stop() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.stopped {
		r.stopped = true
		close(r.stopping)
	}
}

// enqueue takes a lane's block to be written.
func (r *Recorder) enqueue(l *Lane) {
	r.mu.Lock()
	defer r.mu.Unlock()
	b := l.enc.take(r.spare())
	b.first = l.first.get()
	if b.info.LastDone == none { // begins and gaps may stand anywhere
		b.first = 0
	}
	r.settle(b)
	l.queue = append(l.queue, b)
	l.emptied() // only now, so that it is always to be seen somewhere
	r.pending.Add(1)
	r.signal()
}

// spare is an empty block.
func (r *Recorder) spare() *block {
	n := len(r.free)
	if n == 0 {
		return new(block)
	}
	b := r.free[n-1]
	r.free = r.free[:n-1]
	r.idle.Add(-1)
	return b
}

func (r *Recorder) signal() {
	select {
	case r.wake <- struct{}{}:
	default: // it is awake already
	}
}

// each calls do for every lane, with its lock held.
func (r *Recorder) each(do func(*Lane)) {
	for _, l := range r.lanes {
		l.mu.Lock()
		do(l)
		l.mu.Unlock()
	}
}

// flush hands on what has become old, whatever the writing goroutine is waiting for, until the Recorder is closed.
func (r *Recorder) flush() {
	defer close(r.flushed)
	tick := time.NewTicker(r.opts.FlushEvery)
	defer tick.Stop()
	stopping := r.stopping
	for {
		select {
		case <-tick.C:
			if int(r.pending.Load()) < len(r.lanes) { // else they may as well grow
				r.each((*Lane).flush)
			}
			r.signal()
		case <-stopping:
			stopping = nil
			r.end()
		case <-r.closing:
			return
		}
	}
}

// end hands on what there is and lets nothing follow.
func (r *Recorder) end() {
	r.each(func(l *Lane) {
		if !l.closed {
			l.cut()
			l.off = stopped
		}
	})
	r.tell(ErrFull)
}

func (r *Recorder) tell(err error) {
	if r.opts.Failed != nil {
		r.opts.Failed(err)
	}
}
