package synth

import (
	"context"
	"fmt"
	"io"
	"math"
	"sync"
	"time"
)

// sysbenchVersion is the release whose command line and output this is.
const sysbenchVersion = "1.0.20"

// Banner is the line every command prints first, in the form of sysbench's; version is this program's.
func Banner(version string) string {
	return fmt.Sprintf("sysbench %s (redrive synth %s)\n\n", sysbenchVersion, version)
}

// A report prints a run as sysbench does, and what sysbench leaves out behind it.
type report struct {
	run  *run
	last totals // at the last interim line
}

func (p *report) printf(format string, args ...any) { fmt.Fprintf(p.run.Out, format, args...) }

func (p *report) header() {
	r := p.run
	p.printf("%s", Banner(r.Version))
	if r.Events == 0 && r.Time == 0 {
		p.printf("WARNING: Both event and time limits are disabled, running an endless test\n")
	}
	p.printf("Running the test with following options:\nNumber of threads: %d\n", r.Threads)
	if r.Rate > 0 {
		p.printf("Target transaction rate: %d/sec\n", r.Rate)
	}
	if r.ReportInterval > 0 {
		p.printf("Report intermediate results every %.0f second(s)\n", r.ReportInterval.Seconds())
	}
	if r.Seed == 0 {
		p.printf("Initializing random number generator from current time\n\n\n")
	} else {
		p.printf("Initializing random number generator from seed (%d).\n\n\n", r.Seed)
	}
	p.printf("Initializing worker threads...\n\n")
}

func (p *report) started() { p.printf("Threads started!\n\n") }

// interim prints lines on a grid of the report's interval until it is told to end. A tick that was missed is left out.
func (p *report) interim() (end func()) {
	if p.run.ReportInterval <= 0 {
		return func() {}
	}
	done := make(chan struct{})
	var g sync.WaitGroup
	g.Go(func() {
		start, every := p.run.start, p.run.ReportInterval
		for last := start; ; {
			now := p.run.Clock.Now()
			timer := time.NewTimer(every - (now-start)%every)
			select {
			case <-done:
				timer.Stop()
				return
			case <-timer.C:
				now = p.run.Clock.Now()
				p.interimLine(now, now-last)
				last = now
			}
		}
	})
	return func() { close(done); g.Wait() }
}

func (p *report) interimLine(now, span time.Duration) {
	r := p.run
	all := r.totals()
	d := all.since(&p.last)
	p.last = *all
	per := func(n uint64) float64 { return float64(n) / span.Seconds() }
	at := (now - r.start).Seconds()
	p.printf("[ %.0fs ] thds: %d tps: %4.2f qps: %4.2f (r/w/o: %4.2f/%4.2f/%4.2f) lat (ms,%d%%): %4.2f err/s: %4.2f reconn/s: %4.2f\n",
		at, r.working.Load(), per(d.events), per(d.queries()), per(d.read), per(d.write), per(d.other),
		r.Percentile, d.percentile(r.Percentile), per(d.ignored), per(d.reconnects))
	if r.arrivals != nil {
		p.printf("[ %.0fs ] queue length: %d, concurrency: %d\n", at, r.arrivals.Backlog(now), r.busy.Load())
	}
}

func (r *run) totals() *totals {
	sum := new(totals)
	for _, t := range r.threads {
		sum.add(&t.tally)
	}
	return sum
}

// end prints the report. Its error is how the run ended if it did not end by itself.
func (p *report) end(ctx context.Context) error {
	r := p.run
	now := r.Clock.Now()
	forced := r.hungUp()
	var status *Fatal
	switch {
	case ctx.Err() != nil:
		status = fatalf(1)
	case forced:
		p.printf("FATAL: The --max-time limit has expired, forcing shutdown...\n")
		status = fatalf(2)
	}
	all := r.totals()
	seconds := (now - r.start).Seconds()
	p.sql(all, seconds)
	if forced {
		p.printf("\nNumber of unfinished transactions on forced shutdown: %d\n", r.unfinished())
	}
	p.general(all, seconds)
	p.statements(now, all)
	if status != nil {
		return status
	}
	return nil
}

func (r *run) unfinished() (n int) {
	for _, t := range r.threads {
		if t.tally.unfinished {
			n++
		}
	}
	return n
}

func (p *report) sql(all *totals, seconds float64) {
	rate := func(label string, n uint64) {
		p.printf("    %-37s%-6d (%.2f per sec.)\n", label, n, float64(n)/seconds)
	}
	p.printf("SQL statistics:\n    queries performed:\n")
	p.printf("        read:                            %d\n", all.read)
	p.printf("        write:                           %d\n", all.write)
	p.printf("        other:                           %d\n", all.other)
	p.printf("        total:                           %d\n", all.queries())
	rate("transactions:", all.events)
	rate("queries:", all.queries())
	rate("ignored errors:", all.ignored)
	rate("reconnects:", all.reconnects)
}

func (p *report) general(all *totals, seconds float64) {
	p.printf("\nGeneral statistics:\n")
	p.printf("    total time:                          %.4fs\n", seconds)
	p.printf("    total number of events:              %d\n", all.events)
	least, most, sum := p.run.latency()
	mean := time.Duration(0)
	if all.events > 0 {
		mean = sum / time.Duration(all.events)
	}
	p.printf("\nLatency (ms):\n")
	for _, row := range []struct {
		label string
		value time.Duration
	}{{"min", least}, {"avg", mean}, {"max", most}} {
		p.printf("         %s: %39.2f\n", row.label, milli(row.value))
	}
	if p.run.Percentile > 0 {
		p.printf("        %3dth percentile: %27.2f\n", p.run.Percentile, all.percentile(p.run.Percentile))
	} else {
		p.printf("         percentile stats:               disabled\n")
	}
	p.printf("         sum: %39.2f\n", milli(sum))
	events, times := p.run.fairness()
	p.printf("\nThreads fairness:\n")
	p.printf("    events (avg/stddev):           %.4f/%3.2f\n", events.mean(), events.deviation())
	p.printf("    execution time (avg/stddev):   %.4f/%3.2f\n\n", times.mean(), times.deviation())
}

func (r *run) latency() (least, most, sum time.Duration) {
	least = math.MaxInt64
	for _, t := range r.threads {
		if t.tally.events.Load() > 0 {
			least, most = min(least, t.tally.least), max(most, t.tally.most)
			sum += t.tally.sum
		}
	}
	if least == math.MaxInt64 {
		least = 0
	}
	return least, most, sum
}

// fairness gives every thread's number of events and seconds in them. Unfinished events count here, as in sysbench.
func (r *run) fairness() (events, times sample) {
	for _, t := range r.threads {
		n := float64(t.tally.events.Load())
		if t.tally.unfinished {
			n++
		}
		events = append(events, n)
		times = append(times, t.tally.sum.Seconds())
	}
	return events, times
}

type sample []float64

func (s sample) mean() float64 {
	sum := 0.0
	for _, x := range s {
		sum += x
	}
	return sum / float64(len(s))
}

// deviation is the standard deviation of the whole population.
func (s sample) deviation() float64 {
	mean, sum := s.mean(), 0.0
	for _, x := range s {
		sum += (x - mean) * (x - mean)
	}
	return math.Sqrt(sum / float64(len(s)))
}

// statements prints what sysbench has no word for: every kind of statement by itself, and what was wanted beside what
// was achieved.
func (p *report) statements(now time.Duration, all *totals) {
	r := p.run
	sum := new(kindTally)
	for _, shard := range r.shards {
		sum.merge(shard)
	}
	p.printf("Statements (service time, ms):\n")
	p.printf("    %-18s %10s %9s %9s %9s %9s %9s %9s %8s\n", "type", "count", "mean", "p50", "p95", "p99", "p99.9", "max", "errors")
	for kind := range sum.service {
		if h := &sum.service[kind]; h.Count() > 0 {
			p.printf("    %-18s %10d %9.3f %9.3f %9.3f %9.3f %9.3f %9.3f %8d\n", Kind(kind), h.Count(), milli(h.Mean()),
				milli(h.Quantile(0.5)), milli(h.Quantile(0.95)), milli(h.Quantile(0.99)), milli(h.Quantile(0.999)), milli(h.Max()), sum.errors[kind])
		}
	}
	if r.arrivals != nil {
		p.printf("\nOpen loop: %d events/s wanted, %.2f done; %d due events not begun at the end. Latency counts from the due time.\n",
			r.Rate, float64(all.events)/(now-r.start).Seconds(), r.arrivals.Backlog(now))
	}
	p.printf("\nRandom seed: %d\n", r.seed)
}

func milli(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// A lineWriter lets several goroutines write whole lines.
type lineWriter struct {
	mu sync.Mutex
	w  io.Writer
}

func (l *lineWriter) printf(format string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	fmt.Fprintf(l.w, format, args...)
}
