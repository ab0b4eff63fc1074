package synth

import (
	"math"
	"sync"
	"sync/atomic"
	"time"

	"redrive/internal/stats"
	"redrive/internal/wire"
)

// sysbench's histogram of event latencies: logarithmic buckets from a microsecond to 100 seconds.
const (
	buckets    = 1024
	leastMilli = 0.001
	mostMilli  = 100000
)

var (
	logLeast  = math.Log(leastMilli)
	logFactor = (buckets - 1) / (math.Log(mostMilli) - logLeast)
)

func bucketOf(d time.Duration) int {
	ms := float64(d) / float64(time.Millisecond)
	if ms <= leastMilli {
		return 0
	}
	return min(buckets-1, int((math.Log(ms)-logLeast)*logFactor+0.5))
}

// bucketMilli is what a bucket stands for: its centre, in milliseconds.
func bucketMilli(i int) float64 { return math.Exp(float64(i)/logFactor + logLeast) }

// A tally is what one thread counts. The thread writes it; others may read the atomic parts at any time, and the rest
// when the thread has ended.
type tally struct {
	read, write, other  atomic.Uint64 // statements, by what came of them
	ignored, reconnects atomic.Uint64
	events              atomic.Uint64
	latencies           [buckets]atomic.Uint64

	least, most, sum time.Duration // of the latencies
	unfinished       bool          // the event at hand was cut off by the end of the run
	kinds            *kindTally
}

// statement counts a statement that succeeded: by its result, not by its text.
func (t *tally) statement(o *wire.Outcome) {
	switch {
	case o.ResultSets > 0:
		t.read.Add(1)
	case o.Affected > 0:
		t.write.Add(1)
	default:
		t.other.Add(1)
	}
}

// event counts an event that is done.
func (t *tally) event(latency time.Duration) {
	if t.events.Add(1) == 1 {
		t.least = latency
	}
	t.least, t.most = min(t.least, latency), max(t.most, latency)
	t.sum += latency
	t.latencies[bucketOf(latency)].Add(1)
}

// totals are the sums of several tallies at one moment.
type totals struct {
	read, write, other, ignored, reconnects, events uint64
	latencies                                       [buckets]uint64
}

func (a *totals) queries() uint64 { return a.read + a.write + a.other }

func (a *totals) add(t *tally) {
	a.read += t.read.Load()
	a.write += t.write.Load()
	a.other += t.other.Load()
	a.ignored += t.ignored.Load()
	a.reconnects += t.reconnects.Load()
	a.events += t.events.Load()
	for i := range t.latencies {
		a.latencies[i] += t.latencies[i].Load()
	}
}

// since is what was counted between an earlier moment and this one.
func (a *totals) since(b *totals) *totals {
	d := &totals{
		read: a.read - b.read, write: a.write - b.write, other: a.other - b.other,
		ignored: a.ignored - b.ignored, reconnects: a.reconnects - b.reconnects, events: a.events - b.events,
	}
	for i := range d.latencies {
		d.latencies[i] = a.latencies[i] - b.latencies[i]
	}
	return d
}

// percentile is the latency in milliseconds that p percent of the events did not exceed, as sysbench reckons it.
func (a *totals) percentile(p int) float64 {
	count := uint64(0)
	for _, n := range a.latencies {
		count += n
	}
	if count == 0 || p == 0 {
		return 0
	}
	target := uint64(math.Floor(float64(count)*float64(p)/100 + 0.5))
	seen := uint64(0)
	for i, n := range a.latencies {
		if seen += n; seen >= target && seen > 0 {
			return bucketMilli(i)
		}
	}
	return mostMilli
}

// A kindTally counts service times per kind of statement. Several threads share one: a histogram has hundreds of
// kilobytes, and there may be thousands of threads.
type kindTally struct {
	mu      sync.Mutex
	service [kindCount]stats.Histogram
	errors  [kindCount]uint64
}

func (k *kindTally) add(kind Kind, service time.Duration, failed bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.service[kind].Record(service)
	if failed {
		k.errors[kind]++
	}
}

// merge adds o, which nobody writes any more.
func (k *kindTally) merge(o *kindTally) {
	for kind := range k.service {
		k.service[kind].Merge(&o.service[kind])
		k.errors[kind] += o.errors[kind]
	}
}
