package main

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"redrive/capture"
	"redrive/proxy"
)

// A recordingControl starts, stops and rotates the recording of a proxy. It is safe for concurrent use.
type recordingControl struct {
	proxy   *proxy.Proxy
	header  func(ctx context.Context) (capture.Header, error)
	onFull  capture.OnFull
	lanes   int // of a recorder
	streams streams

	changing sync.Mutex // held by the one change that goes on; it may take seconds, and with --on-full block longer
	named    string     // the file as it was named to us, from which rotation makes names; guarded by changing
	missing  error      // what the first file lacks that was closed by a rotation; guarded by changing

	mu       sync.Mutex // guards what follows, for moments only
	current  *recording // nil when nothing is recorded
	before   *recording // the one that is being closed; nil for none
	released bool
}

// A recording is a capture file with what writes it.
type recording struct {
	*capture.Recorder
	file *output
}

// open begins a recording in the file that create makes. A server that cannot be asked who it is is an error only when
// the proxy starts: later the recording matters more.
func (c *recordingControl) open(ctx context.Context, create func() (*output, error), starting bool) (*recording, error) {
	header, err := c.header(ctx)
	switch {
	case err != nil && starting:
		return nil, err
	case err != nil:
		c.proxy.Logger.Warn("the server was not asked who it is; the recording goes on without", "error", err)
	}
	file, err := create()
	if err != nil {
		return nil, err
	}
	return &recording{capture.NewRecorder(file.Writer, header, capture.RecorderOptions{
		OnFull: c.onFull, Memory: c.proxy.Memory, Lanes: c.lanes, Sync: file.Sync,
		Failed: func(err error) {
			c.proxy.Logger.Error("the recording has failed; relaying goes on", "file", file.name, "error", err)
		},
		Resumed: func() { c.proxy.Logger.Info("the recording goes on behind a gap", "file", file.name) },
	}), file}, nil
}

// create is for open: it makes the file of that name.
func (c *recordingControl) create(name string) func() (*output, error) {
	return func() (*output, error) { return createOutput(name, c.streams.out) }
}

// begin opens the recording that the proxy starts with.
func (c *recordingControl) begin(ctx context.Context, name string) error {
	c.changing.Lock()
	defer c.changing.Unlock()
	first, err := c.open(ctx, c.create(name), true)
	if err != nil {
		return err
	}
	c.named = name
	c.change(first)
	return nil
}

// change goes over to another recording, or to none, and closes the one before. Call it with changing held.
func (c *recordingControl) change(to *recording) (closed string, ledger *capture.Ledger, err error) {
	before := c.replace(to)
	var recorder *capture.Recorder
	if to != nil {
		recorder = to.Recorder
	}
	_, unfinished := c.proxy.Record(recorder)
	if before == nil {
		return "", nil, nil
	}
	l, err := before.close(unfinished, c.streams)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.before = nil
	return before.file.name, &l, err
}

// replace notes which recording is the current one, and gives the one before.
func (c *recordingControl) replace(to *recording) (before *recording) {
	c.mu.Lock()
	defer c.mu.Unlock()
	before, c.before, c.current = c.current, c.current, to
	if c.released && to != nil {
		to.Release()
	}
	return before
}

// now is the current recording, nil if there is none.
func (c *recordingControl) now() *recording {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.current
}

// release has nobody wait for a file any more, whatever --on-full says, from here on.
func (c *recordingControl) release() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.released = true
	for _, r := range []*recording{c.before, c.current} {
		if r != nil {
			r.Release()
		}
	}
}

// rotate goes on in the next file. Nobody waits for the outcome, so the log has it, and end what was missed.
func (c *recordingControl) rotate(ctx context.Context) {
	c.changing.Lock()
	defer c.changing.Unlock()
	current, log := c.now(), c.proxy.Logger
	switch {
	case current == nil:
		return
	case !current.file.regular():
		log.Warn("not rotated: only files can be, no pipe, no device and not standard output", "out", current.file.name)
		return
	}
	next, err := c.open(ctx, func() (*output, error) { return createNext(c.named) }, false)
	if err != nil {
		log.Error("not rotated; the recording goes on as it was", "out", current.file.name, "error", err)
		return
	}
	closed, _, err := c.change(next)
	if err != nil {
		log.Error("the file that was closed is not complete", "out", closed, "error", err)
		if c.missing == nil {
			c.missing = err
		}
	}
	log.Info("rotated", "closed", closed, "out", next.file.name)
}

// end closes the recording when the proxy has ended.
func (c *recordingControl) end() error {
	c.changing.Lock()
	defer c.changing.Unlock()
	last := c.replace(nil)
	if last == nil {
		return c.missing
	}
	_, err := last.close(0, c.streams)
	return errors.Join(c.missing, err)
}

// close closes the capture and says what is in it.
func (r *recording) close(unfinished uint64, s streams) (capture.Ledger, error) {
	ledger, err := r.Recorder.Close(unfinished)
	err = errors.Join(err, r.file.Close())
	fmt.Fprintf(s.err, "recorded in %s: %d commands forwarded = %d stored + %d shed + %d unfinished\n",
		r.file.name, ledger.Forwarded, ledger.Stored, ledger.Shed, ledger.Unfinished)
	switch {
	case err != nil:
		return ledger, fmt.Errorf("recording: %w", err)
	case ledger.Shed > 0:
		return ledger, fmt.Errorf("%d commands were not recorded; trace info %s lists the gaps", ledger.Shed, r.file.name)
	}
	return ledger, nil
}

// answer does what a request asks for.
func (c *recordingControl) answer(ctx context.Context, r request) response {
	var answer response
	var err error
	if r.Do != "status" {
		answer.Closed, answer.Ledger, err = c.obey(ctx, r)
	}
	if current := c.now(); current != nil {
		answer.Recording = current.file.name
		if answer.Ledger == nil {
			l := current.Ledger()
			answer.Ledger = &l
		}
	}
	if err != nil {
		answer.Error = err.Error()
	}
	answer.MemoryUsed, answer.MemoryLimit = uint64(c.proxy.Memory.Used()), uint64(c.proxy.Memory.Limit())
	answer.Connections = uint64(c.proxy.Open())
	return answer
}

// obey starts, rotates or stops the recording.
func (c *recordingControl) obey(ctx context.Context, r request) (closed string, ledger *capture.Ledger, err error) {
	c.changing.Lock()
	defer c.changing.Unlock()
	current := c.now()
	switch {
	case r.Do == "stop" && current == nil:
		return "", nil, errors.New("nothing is being recorded")
	case r.Do == "start" && current != nil:
		return "", nil, fmt.Errorf("%s is being recorded already; stop it first, or rotate", current.file.name)
	case r.Do == "rotate" && current == nil:
		return "", nil, errors.New("nothing is being recorded; start a recording first")
	case r.Do == "stop":
		return c.change(nil)
	case r.Do == "start" || r.Do == "rotate":
		next, err := c.open(ctx, c.create(r.Out), false)
		if err != nil {
			return "", nil, err
		}
		c.named = r.Out
		return c.change(next)
	}
	return "", nil, fmt.Errorf("no such request: %q", r.Do)
}
