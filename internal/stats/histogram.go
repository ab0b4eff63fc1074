// Package stats holds the figures redrive must own: latency histograms and what is read from them.
package stats

import (
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// maxTracked is the longest duration told apart; longer ones count as this long, though Max and Sum stay exact.
const maxTracked = 24 * time.Hour

// A Histogram counts durations with three significant digits (an HDR histogram over nanoseconds). Count, Sum, Min and
// Max are exact. The zero value is empty and ready; it is not safe for concurrent use.
type Histogram struct {
	hdr      *hdrhistogram.Histogram
	count    uint64
	sum      time.Duration
	min, max time.Duration
}

// Record counts d; a negative d counts as 0.
func (h *Histogram) Record(d time.Duration) {
	d = max(0, d)
	if h.hdr == nil {
		h.hdr = hdrhistogram.New(1, int64(maxTracked), 3)
		h.min = d
	}
	_ = h.hdr.RecordValue(int64(min(d, maxTracked))) // cannot fail: within the tracked range
	h.count++
	h.sum += d
	h.min = min(h.min, d)
	h.max = max(h.max, d)
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
// between 0 and 1. It never exceeds Max and is 0 if nothing was recorded.
func (h *Histogram) Quantile(q float64) time.Duration {
	if h.count == 0 {
		return 0
	}
	return min(h.max, max(h.min, time.Duration(h.hdr.ValueAtQuantile(100*q))))
}

// Merge adds o's durations.
func (h *Histogram) Merge(o *Histogram) {
	if o.count == 0 {
		return
	}
	if h.count == 0 {
		h.hdr, h.min = hdrhistogram.New(1, int64(maxTracked), 3), o.min
	}
	h.hdr.Merge(o.hdr)
	h.count += o.count
	h.sum += o.sum
	h.min = min(h.min, o.min)
	h.max = max(h.max, o.max)
}
