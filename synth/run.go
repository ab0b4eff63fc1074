package synth

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"redrive/capture"
	"redrive/internal/client"
)

// watchEvery is how often the watcher looks for commands that stay open, and openLimit is how long one may be open
// before a begin record tells of it.
const (
	openLimit  = time.Second
	watchEvery = openLimit / 4
)

// Why we close the connections ourselves.
var (
	errGrace = errors.New("the run is over")
	errLate  = errors.New("connecting took too long")
)

// A run is one run of a workload.
type run struct {
	*Runner
	workload Workload
	texts    *texts
	seed     uint64
	threads  []*thread
	shards   []*kindTally
	arrivals *Arrivals // nil in a closed loop

	start, limit time.Duration // of the events; a limit of math.MaxInt64 is none
	taken        atomic.Uint64 // events begun
	busy         atomic.Int64  // events under way
	working      atomic.Int64  // threads not yet ended
	sessions     atomic.Uint64 // last session number given
	stopping     atomic.Bool   // no further event is to begin

	stopContext   context.Context // its end is the run's last moment for beginning an event
	stop          context.CancelFunc
	hangUpContext context.Context // its end closes every connection
	hangUp        context.CancelCauseFunc

	mu    sync.Mutex
	conns []*conn // that the watcher looks after, by thread; nil before its first
}

// Run connects, runs events until a limit is reached, ctx ends or an error is fatal, and prints the report. A *Fatal says
// what sysbench would have said; then there is no report, except after a forced end.
func (r *Runner) Run(ctx context.Context) error {
	workload, err := NewWorkload(r.Name, r.Settings)
	if err != nil {
		return &Fatal{[]string{err.Error()}, 1}
	}
	run := r.newRun(workload)
	run.stopContext, run.stop = context.WithCancel(ctx)
	defer run.stop()
	run.hangUpContext, run.hangUp = context.WithCancelCause(context.WithoutCancel(ctx))
	defer run.hangUp(nil)
	defer run.watch()()
	defer run.close()
	report := &report{run: run}
	report.header()
	if err := run.init(ctx); err != nil {
		return err
	}
	report.started()
	if err := run.work(ctx, report); err != nil {
		return err
	}
	return report.end(ctx)
}

func (r *Runner) newRun(workload Workload) *run {
	run := &run{Runner: r, workload: workload, texts: newTexts(workload.Kinds(), r.Tables), seed: r.Seed, limit: math.MaxInt64, conns: make([]*conn, r.Threads)}
	if run.seed == 0 {
		run.seed = clockSeed()
	}
	run.sessions.Store(uint64(r.Threads))
	for range min(r.Threads, 2*runtime.GOMAXPROCS(0)) {
		run.shards = append(run.shards, new(kindTally))
	}
	for i := range r.Threads {
		t := &thread{run: run, number: i, random: NewRandom(run.seed, "run", i, r.Distribution)}
		t.tally.kinds = run.shards[i%len(run.shards)]
		run.threads = append(run.threads, t)
	}
	return run
}

// clockSeed is a seed that --rand-seed can be given too.
func clockSeed() uint64 { return uint64(time.Now().UnixNano())%math.MaxInt32 + 1 }

// newConn is a connection that the watcher looks after; it takes the place of the thread's last one.
func (r *run) newConn(thread int, session uint64) *conn {
	c := &conn{id: session, clock: r.Clock, sink: r.Sink, texts: r.texts}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.conns[thread] = c
	return c
}

// each runs f for every thread at once and waits; the first error stops the others at their next event.
func (r *run) each(f func(*thread) error) error {
	var g sync.WaitGroup
	var once sync.Once
	var first error
	for _, t := range r.threads {
		g.Go(func() {
			if err := f(t); err != nil {
				once.Do(func() { first = err })
				r.stop()
			}
		})
	}
	g.Wait()
	return first
}

// init connects all threads and has them prepare their statements.
func (r *run) init(ctx context.Context) error {
	stop := context.AfterFunc(ctx, func() { r.hangUp(context.Cause(ctx)) })
	defer stop()
	timer := time.AfterFunc(initTimeout, func() { r.hangUp(errLate) })
	defer timer.Stop()
	err := r.each(func(t *thread) error { return t.start(r.hangUpContext) })
	var fatal *Fatal
	switch {
	case err == nil:
		return nil
	case context.Cause(r.hangUpContext) == errLate:
		return fatalf(2, fmt.Sprintf("Worker threads failed to initialize within %.0f seconds!", initTimeout.Seconds()))
	case ctx.Err() != nil:
		return fatalf(1, "interrupted before all threads were connected")
	case errors.As(err, &fatal):
		fatal.Lines = append(fatal.Lines, "Thread initialization failed!")
	}
	return err
}

// work runs events. It returns when no thread is at work any more: at the latest a grace after the time limit, or after
// ctx, when the connections are closed under them.
func (r *run) work(ctx context.Context, report *report) error {
	r.start = r.Clock.Now()
	if r.Time > 0 {
		r.limit = r.start + r.Time
		timer := time.AfterFunc(r.Time, r.stop)
		defer timer.Stop()
	}
	if r.Rate > 0 {
		r.arrivals = NewArrivals(NewRandom(r.seed, "arrivals", 0, Uniform), r.Rate, r.start, r.limit)
	}
	unwatch := context.AfterFunc(r.stopContext, func() { r.stopping.Store(true) })
	defer unwatch()
	defer r.hangUpAfter(r.grace())()
	r.working.Store(int64(len(r.threads)))
	defer report.interim()()
	return r.each(func(t *thread) error {
		defer r.working.Add(-1)
		return t.work()
	})
}

// hangUpAfter closes the connections when the run has been over for so long, unless it is called off before.
func (r *run) hangUpAfter(grace time.Duration) (callOff func()) {
	done := make(chan struct{})
	var g sync.WaitGroup
	g.Go(func() {
		select {
		case <-done:
			return
		case <-r.stopContext.Done():
		}
		timer := time.NewTimer(grace)
		defer timer.Stop()
		select {
		case <-done:
		case <-timer.C:
			r.hangUp(errGrace)
		}
	})
	return func() { close(done); g.Wait() }
}

// over reports whether no further event is to begin.
func (r *run) over() bool { return r.stopping.Load() || r.Clock.Now() >= r.limit }

// hungUp reports whether we closed the connections ourselves.
func (r *run) hungUp() bool { return r.hangUpContext.Err() != nil }

// next waits until an event is due and gives that time; ok is false when there is to be none.
func (r *run) next() (due time.Duration, ok bool) {
	if r.over() || r.Events > 0 && r.taken.Add(1) > r.Events {
		return 0, false
	}
	if r.arrivals == nil {
		return r.Clock.Now(), true
	}
	due, ok = r.arrivals.Next()
	if !ok || !r.sleepUntil(due) {
		return 0, false
	}
	return due, true
}

// sleepUntil reports false when the run ended meanwhile.
func (r *run) sleepUntil(due time.Duration) bool {
	early := due - r.Clock.Now()
	if early <= 0 {
		return true
	}
	timer := time.NewTimer(early)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-r.stopContext.Done():
		return false
	}
}

// watch looks after what is recorded, until it is told to end.
func (r *run) watch() (end func()) {
	if r.Sink == nil {
		return func() {}
	}
	done := make(chan struct{})
	var g sync.WaitGroup
	g.Go(func() {
		ticker := time.NewTicker(watchEvery)
		defer ticker.Stop()
		for {
			select {
			case <-done:
				return
			case <-ticker.C:
				r.Sink.Horizon(r.survey())
			}
		}
	})
	return func() { close(done); g.Wait() }
}

func (r *run) survey() time.Duration {
	now := r.Clock.Now()
	horizon := now
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, c := range r.conns {
		if c == nil {
			continue
		}
		horizon = min(horizon, c.look(now, openLimit))
	}
	return horizon
}

// close ends every session.
func (r *run) close() {
	reason := capture.EndQuit
	if r.hungUp() {
		reason = capture.EndStopped
	}
	for _, t := range r.threads {
		if t.conn != nil {
			t.conn.end(reason, "")
		}
	}
}

// place is how sysbench names a server.
func place(c client.Config) string {
	if c.Network == "unix" {
		return fmt.Sprintf("socket '%s'", c.Address)
	}
	host, port, err := net.SplitHostPort(c.Address)
	if err != nil {
		return fmt.Sprintf("host '%s'", c.Address)
	}
	return fmt.Sprintf("host '%s', port %s", strings.Trim(host, "[]"), port)
}
