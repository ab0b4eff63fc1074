// Package stats holds the figures redrive must own: latency histograms and what is read from them.
package stats

import (
	"math"
	"slices"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// maxTracked is the longest duration told apart; longer ones count as this long, though Max and Sum stay exact.
const maxTracked = 24 * time.Hour

// maxExact is how many durations are kept as they are. An HDR histogram of our range and precision takes some 300 KB,
// too much for each of thousands of digests that were seen a few times.
const maxExact = 512

// A Histogram counts durations: the first few hundred exactly, more with three significant digits (an HDR histogram
// over nanoseconds). Count, Sum, Min and Max are always exact. The zero value is empty and ready; it is not safe for
// concurrent use, not even by readers alone.
type Histogram struct {
	exact    []time.Duration // until there are too many
	hdr      *hdrhistogram.Histogram
	count    uint64
	sum      time.Duration
	min, max time.Duration
}

// Record counts d; a negative d counts as 0.
func (h *Histogram) Record(d time.Duration) {
	d = max(0, d)
	if h.count == 0 {
		h.min = d
	}
	h.count++
	h.sum += d
	h.min = min(h.min, d)
	h.max = max(h.max, d)
	h.add(d)
}

func (h *Histogram) add(d time.Duration) {
	if h.hdr == nil && len(h.exact) < maxExact {
		h.exact = append(h.exact, d)
		return
	}
	h.spill()
	_ = h.hdr.RecordValue(int64(min(d, maxTracked))) // cannot fail: within the tracked range
}

// spill moves what is kept exactly to the HDR histogram.
func (h *Histogram) spill() {
	if h.hdr == nil {
		h.hdr = hdrhistogram.New(1, int64(maxTracked), 3)
	}
	for _, d := range h.exact {
		_ = h.hdr.RecordValue(int64(min(d, maxTracked)))
	}
	h.exact = nil
}

// Count is how many durations were recorded.
func (h *Histogram) Count() uint64 { return h.count }

// Sum is their total.
func (h *Histogram) Sum() time.Duration { return h.sum }

// Min is the shortest, 0 if there is none.
func (h *Histogram) Min() time.Duration { return h.min }

// Max is the longest, 0 if there is none.
func (h *Histogram) Max() time.Duration { return h.max }

// Mean is their arithmetic mean, 0 if there is none.
func (h *Histogram) Mean() time.Duration {
	if h.count == 0 {
		return 0
	}
	return h.sum / time.Duration(h.count)
}

// Quantile is the smallest recorded duration (to three digits) that at least the share q of all does not exceed; q is
// between 0 and 1. It is never below Min or above Max, and 0 if nothing was recorded.
func (h *Histogram) Quantile(q float64) time.Duration {
	if h.count == 0 {
		return 0
	}
	rank := min(h.count, max(1, uint64(math.Ceil(q*float64(h.count)-1e-9)))) // 0.95×20 is a little more than 19
	if h.hdr == nil {
		slices.Sort(h.exact)
		return h.exact[rank-1]
	}
	// ValueAtQuantile rounds to a rank of its own; a quantile made of the rank leaves it no choice.
	value := h.hdr.ValueAtQuantile(100 * float64(rank) / float64(h.count))
	return min(h.max, max(h.min, time.Duration(value)))
}

// Merge adds o's durations; o stays as it is.
func (h *Histogram) Merge(o *Histogram) {
	if o.count == 0 {
		return
	}
	if h.count == 0 {
		h.min = o.min
	}
	h.count += o.count
	h.sum += o.sum
	h.min = min(h.min, o.min)
	h.max = max(h.max, o.max)
	for _, d := range o.exact {
		h.add(d)
	}
	if o.hdr != nil {
		h.spill()
		h.hdr.Merge(o.hdr)
	}
}
