package capture

import (
	"errors"
	"io"
	"sync"
	"time"
)

// RecorderOptions steer a Recorder.
type RecorderOptions struct {
	OnFull     OnFull        // what to do when the account has no room for a record
	Memory     *Memory       // the account that records on their way to the file are taken from; nil: one of its own of 64 MiB
	Lanes      int           // 0 means 1
	FlushEvery time.Duration // how old a record may grow before it is written; 0 means 500ms
	Sync       func() error  // called after a flush about once a second, and at the end; nil: none
	Failed     func(error)   // called once if the file cannot be written any more; it must not call the Recorder. nil: none
}

// OnFull is what a Recorder does with a record that finds no room.
type OnFull int

const (
	ShedStatements   OnFull = iota // leave it out
	ShedTransactions               // leave whole transactions out
	Block                          // wait for room
	StopRecording                  // end the recording there
)

const (
	defaultMemory     = 64 << 20
	defaultFlushEvery = 500 * time.Millisecond
	syncEvery         = time.Second
	recordCost        = 256 // bytes at most that a record takes beside its byte strings
	keptBlocks        = 4   // empty ones, for use again
)

// Why records were shed.
const (
	reasonFull  = "the recording was full: writing the file was slower than what came in"
	reasonError = "the file could not be written"

	reasonClosed = "the recording has ended"
)

// A Recorder writes a capture file for many goroutines. Records are encoded under one short lock; one goroutine
// compresses and writes. Unless OnFull is Block no call ever waits for the file: what finds no room is shed, counted, and
// told in a gap record. Session records, begins and the ends of begun statements have room of their own. When the file
// cannot be written everything is shed from there on, and Close says why.
type Recorder struct {
	opts RecorderOptions
	out  *output // of the goroutine
	wake chan struct{}
	done chan struct{}

	mu      sync.Mutex
	room    sync.Cond // there is room, or no longer any hope of it
	enc     *encoder
	unbegun map[command]time.Duration // starts of open statements whose begin found no room
	queue   []*block                  // to be written, oldest first
	held    int                       // bytes of queue and of the block being written
	free    []*block
	gap     Gap // what was shed since the last gap record
	ledger  Ledger
	err     error
	closed  bool

	released bool
	lane     Lane
}

// Release makes calls that wait for room go on without, for good: what finds none from then on is shed.
func (r *Recorder) Release() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.released = true
	r.room.Broadcast()
}

// NewRecorder writes the header to w and starts the writing goroutine, which ends with Close.
func NewRecorder(w io.Writer, h Header, opts RecorderOptions) *Recorder {
	if opts.Memory == nil {
		opts.Memory = NewMemory(defaultMemory)
	}
	if opts.FlushEvery == 0 {
		opts.FlushEvery = defaultFlushEvery
	}
	r := &Recorder{
		opts: opts, out: newOutput(w, h), enc: newEncoder(), unbegun: map[command]time.Duration{},
		wake: make(chan struct{}, 1), done: make(chan struct{}),
	}
	r.room.L = &r.mu
	r.lane.r = r
	r.fail(r.out.err)
	go r.run()
	return r
}

// Statement stores a statement that is done, or sheds it. Each call counts as one forwarded.
func (r *Recorder) Statement(s *Statement) {
	r.mu.Lock()
	defer r.mu.Unlock()
	id := command{s.Session, s.Number}
	delete(r.unbegun, id)
	_, begun := r.enc.begun[id]
	reason := r.admit(bytesOf(s), begun)
	if r.closed {
		return
	}
	r.ledger.Forwarded++
	if reason != "" {
		r.ledger.Shed++
		r.gap.Statements++
		r.shed(s.Started(), s.Done, reason)
		return
	}
	r.enc.statement(s)
	r.ledger.Stored++
	r.cutFull()
}

// Begin stores that a statement is open. One that finds no room is left out without a trace, as its end tells the same;
// until then the horizon waits for it.
func (r *Recorder) Begin(s *Statement) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.admit(bytesOf(s), true) != "" {
		r.unbegun[command{s.Session, s.Number}] = s.Started()
		return
	}
	r.enc.beginStatement(s)
	r.cutFull()
}

// SessionStart stores a login that succeeded, or the state of a session that joined.
func (r *Recorder) SessionStart(s *SessionStart) {
	r.mu.Lock()
	defer r.mu.Unlock()
	size := len(s.User) + len(s.Schema) + len(s.ServerVersion) + len(s.Client)
	for _, a := range s.Attributes {
		size += len(a.Name) + len(a.Value)
	}
	for _, p := range s.Prepared {
		size += len(p.Types) + len(p.Text)
	}
	if r.admitSession(size, s.At) {
		r.enc.sessionStart(s)
		r.cutFull()
	}
}

// SessionEnd stores the end of a connection.
func (r *Recorder) SessionEnd(s *SessionEnd) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for id := range r.unbegun {
		if id.session == s.Session {
			delete(r.unbegun, id)
		}
	}
	if s.Reason == EndOpaque && !r.closed {
		r.ledger.Opaque++
	}
	if r.admitSession(len(s.Detail), s.At) {
		r.enc.sessionEnd(s)
		r.cutFull()
	}
}

// Horizon is the Writer's: a promise about every record that is stored after this call.
func (r *Recorder) Horizon(t time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, started := range r.unbegun {
		t = min(t, started)
	}
	r.enc.promise(t)
}

// Ledger is the account so far, without what is unfinished.
func (r *Recorder) Ledger() Ledger {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.ledger
}

// Close writes what is left and the file's end, and waits for the goroutine. It does not close the underlying writer.
// unfinished is the number of commands that were forwarded and have no end: they count as forwarded. Records that come
// later are ignored. The error is the first that kept the file from being written.
func (r *Recorder) Close(unfinished uint64) (Ledger, error) {
	r.mu.Lock()
	again := r.closed
	if !again {
		r.closed = true
		r.ledger.Unfinished = unfinished
		r.ledger.Forwarded += unfinished
		r.room.Broadcast()
		r.signal()
	}
	r.mu.Unlock()
	<-r.done
	if again {
		return r.Ledger(), errors.New("capture: closed twice")
	}
	return r.Ledger(), r.err // the goroutine, which sets it, has ended
}

// admit makes room for a record with size bytes of byte strings. "" means that it may be stored, else it says why
// not. Reserved room is half as much again on top of the budget.
func (r *Recorder) admit(size int, reserved bool) (reason string) {
	need := size + recordCost
	limit := r.opts.Memory.Limit()
	if reserved { // ample: a column that was all zeros so far may take thousands of bytes at its first value
		limit += limit / 2
	}
	waits := r.opts.OnFull == Block && !r.released
	for waits && r.pending() > 0 && r.pending()+need > limit && r.err == nil && !r.closed {
		r.cut()
		r.room.Wait()
		waits = !r.released
	}
	switch {
	case r.closed:
		return reasonClosed
	case r.err != nil:
		return reasonError
	case !waits && r.pending()+need > limit:
		return reasonFull
	}
	if r.pending()+need <= r.opts.Memory.Limit() {
		r.noteGap()
	}
	return ""
}

func (r *Recorder) admitSession(size int, at time.Duration) bool {
	reason := r.admit(size, true)
	if reason != "" && !r.closed {
		r.gap.Sessions++
		r.shed(at, at, reason)
	}
	return reason == ""
}

// pending is how many bytes are on their way to the file.
func (r *Recorder) pending() int { return r.held + r.enc.block.size }

// shed widens the gap to a record that started and was done at these times.
func (r *Recorder) shed(started, done time.Duration, reason string) {
	if r.gap.Reason == "" {
		r.gap.From, r.gap.Reason = started, reason
	}
	r.gap.From = min(r.gap.From, started)
	r.gap.To = max(r.gap.To, done)
}

// noteGap stores what was shed, if anything was.
func (r *Recorder) noteGap() {
	if r.gap.Reason != "" && r.err == nil {
		r.enc.gap(&r.gap)
		r.gap = Gap{}
	}
}

func (r *Recorder) cutFull() {
	if r.enc.full() {
		r.cut()
	}
}

// cut hands the block at hand, if it has records, to the goroutine.
func (r *Recorder) cut() {
	if r.enc.block.info.Records == 0 {
		return
	}
	next := new(block)
	if n := len(r.free); n > 0 {
		next, r.free = r.free[n-1], r.free[:n-1]
	}
	b := r.enc.take(next)
	r.held += b.size
	r.queue = append(r.queue, b)
	r.signal()
}

func (r *Recorder) signal() {
	select {
	case r.wake <- struct{}{}:
	default: // it is awake already
	}
}

// run writes blocks as they come, and the one at hand when it has become old.
func (r *Recorder) run() {
	defer close(r.done)
	old := time.NewTicker(r.opts.FlushEvery)
	defer old.Stop()
	synced, offset := time.Now(), r.out.offset
	for closed := false; !closed; {
		select {
		case <-r.wake:
		case <-old.C:
			r.cutOld()
		}
		closed = r.writeQueue()
		if r.out.offset > offset && time.Since(synced) >= syncEvery {
			r.sync()
			synced, offset = time.Now(), r.out.offset
		}
	}
	r.finish()
}

func (r *Recorder) cutOld() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.pending()+recordCost <= r.opts.Memory.Limit() {
		r.noteGap()
	}
	r.cut()
}

// writeQueue writes until nothing is queued, and reports whether the Recorder was closed by then.
func (r *Recorder) writeQueue() (closed bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for len(r.queue) > 0 {
		b := r.queue[0]
		r.queue = append(r.queue[:0], r.queue[1:]...)
		r.mu.Unlock()
		if r.out.err == nil {
			r.out.records(b)
		}
		r.mu.Lock()
		r.written(b)
	}
	return r.closed
}

// written gives back the room of a block, and takes its statements back if the file does not hold them.
func (r *Recorder) written(b *block) {
	r.held -= b.size
	if r.out.err != nil {
		r.fail(r.out.err)
		r.lose(b)
	}
	if len(r.free) < keptBlocks && b.size < 2*blockSize {
		r.free = append(r.free, b)
	}
	r.room.Broadcast()
}

// fail notes the first error; the block at hand will never be written.
func (r *Recorder) fail(err error) {
	if r.err == nil && err != nil {
		r.err = err
		if r.opts.Failed != nil {
			r.opts.Failed(err)
		}
		r.lose(r.enc.block)
		r.enc.take(new(block))
	}
}

func (r *Recorder) lose(b *block) {
	statements := uint64(b.counts[KindStatement])
	r.ledger.Stored -= statements
	r.ledger.Shed += statements
}

func (r *Recorder) sync() {
	if r.opts.Sync == nil || r.out.err != nil {
		return
	}
	if err := r.opts.Sync(); err != nil {
		r.out.err = err
		r.mu.Lock()
		defer r.mu.Unlock()
		r.fail(err)
	}
}

// finish writes the last block and the file's end.
func (r *Recorder) finish() {
	r.mu.Lock()
	r.noteGap()
	r.cut()
	r.mu.Unlock()
	r.writeQueue()
	r.out.end(r.Ledger())
	r.sync()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.fail(r.out.err)
}
