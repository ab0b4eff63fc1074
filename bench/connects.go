package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"redrive/internal/stats"
)

const (
	pacedWorkers  = 1024 // connects that may be under way at once while they are paced
	closedWorkers = 32   // and while each waits for the one before
	connectBuffer = 4 << 10
)

// The figures of a load of connects, as connectColumns has them.
const (
	connectRate = iota
	connectP50
	connectP95
	connectP99
	connectErrors
	connectCPU
)

var connectColumns = []column{
	connectRate:   {name: "connects/s", ratio: true, spread: true},
	connectP50:    {name: "login p50 ms", digits: 2},
	connectP95:    {name: "login p95 ms", digits: 2, ratio: true},
	connectP99:    {name: "login p99 ms", digits: 2, ratio: true, spread: true},
	connectErrors: {name: "errors", sum: true},
	connectCPU:    {name: "CPU µs per connect", ratio: true, spread: true},
}

// connects measures how connections come and go: log in, one statement, quit.
func (b *bench) connects(ctx context.Context, w io.Writer) error {
	contenders, err := b.startContenders()
	defer stopAll(contenders)
	if err != nil {
		return err
	}
	warmUpThreads(ctx, b.server.Addr)
	t := &table{levels: "wanted", columns: connectColumns}
	for _, load := range []churn{
		{name: fmt.Sprintf("%d/s", b.rate), workers: pacedWorkers, interval: time.Second / time.Duration(b.rate), length: b.round},
		{name: "the most", workers: closedWorkers, length: b.round},
	} {
		rows := t.add(load.name, contenders)
		err := b.inTurn(len(contenders), func(round, i int) error {
			figures, err := load.once(ctx, contenders[i])
			if err != nil {
				return fmt.Errorf("connects by %s: %w", contenders[i].path, err)
			}
			rows[i].record(figures...)
			fmt.Fprintf(b.log, "connects, %s, round %d of %d, %s: %.0f/s, login p99 %.2f ms, %.0f errors\n",
				load.name, round+1, b.rounds, contenders[i].path, figures[connectRate], figures[connectP99], figures[connectErrors])
			return ctx.Err()
		})
		if err != nil {
			return err
		}
	}
	err = t.takeNotes("", contenders)
	fmt.Fprintf(w, "### Connects\n\nLog in, one statement, quit. A number wanted is an open loop, in which a login counts from when it was due; "+
		"the most are those of %d clients in a closed loop. Medians of %d alternating rounds of %v; errors are those of all rounds.\n%s\n\n",
		closedWorkers, b.rounds, b.round, legend)
	t.write(w)
	return err
}

// A churn is a load of connections that come and go.
type churn struct {
	name     string
	workers  int
	interval time.Duration // from one to the next, among all workers; 0 means that each starts when its last one ended
	length   time.Duration
}

// A tally is what became of connects.
type tally struct {
	logins stats.Histogram
	done   uint64
	errors uint64
	first  error // the first of them, by way of example
}

func (t *tally) add(o *tally) {
	t.logins.Merge(&o.logins)
	t.done += o.done
	t.errors += o.errors
	if t.first == nil {
		t.first = o.first
	}
}

// once runs the load against a contender and gives its figures as connects has them.
func (l churn) once(ctx context.Context, c *contender) ([]float64, error) {
	before, err := c.cpu()
	if err != nil {
		return nil, err
	}
	start := time.Now()
	sum := l.run(ctx, c.addr, start)
	elapsed := time.Since(start)
	after, err := c.cpu()
	if err != nil {
		return nil, err
	}
	if sum.done == 0 {
		return nil, fmt.Errorf("not one worked out: %w", errors.Join(sum.first, ctx.Err()))
	}
	quantile := func(q float64) float64 { return sum.logins.Quantile(q).Seconds() * 1e3 }
	return []float64{
		float64(sum.done) / elapsed.Seconds(), quantile(0.50), quantile(0.95), quantile(0.99), float64(sum.errors),
		c.perUnit((after-before).Seconds()*1e6, float64(sum.done)),
	}, nil
}

// warmUpThreads has the server make the threads it will keep for connections, or who comes first would wait for them.
func warmUpThreads(ctx context.Context, addr string) {
	churn{workers: pacedWorkers, length: warmUp}.run(ctx, addr, time.Now())
}

// run gives what became of the connects that were due from start on.
func (l churn) run(ctx context.Context, addr string, start time.Time) *tally {
	var next atomic.Int64 // number of the connect that is due next
	tallies := make([]tally, l.workers)
	var workers sync.WaitGroup
	for i := range tallies {
		workers.Go(func() { l.work(ctx, addr, start, &next, &tallies[i]) })
	}
	workers.Wait()
	sum := &tally{}
	for i := range tallies {
		sum.add(&tallies[i])
	}
	return sum
}

// work makes one connect after the other until the time is over.
func (l churn) work(ctx context.Context, addr string, start time.Time, next *atomic.Int64, t *tally) {
	buf := make([]byte, connectBuffer)
	for ctx.Err() == nil {
		due := time.Now()
		if l.interval > 0 {
			due = start.Add(time.Duration(next.Add(1)-1) * l.interval)
		}
		if due.Sub(start) >= l.length {
			return
		}
		if wait := time.Until(due); wait > 0 {
			time.Sleep(wait)
			due = time.Now() // what the timer was late is no fault of the path
		}
		t.connect(addr, buf, due)
	}
}

// connect is one connection from its login, due at a time, to its end.
func (t *tally) connect(addr string, buf []byte, due time.Time) {
	s, err := logIn(addr, buf)
	if err == nil {
		t.logins.Record(time.Since(due))
		_, err = s.query(smallQuery)
		err = errors.Join(err, s.quit())
	}
	if err == nil {
		t.done++
		return
	}
	t.errors++
	if t.first == nil {
		t.first = err
	}
}
