package stats_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"redrive/internal/stats"
)

// draw makes n durations of a long-tailed kind, from microseconds to minutes.
func draw(n int, seed uint64) []time.Duration {
	r := rand.New(rand.NewPCG(seed, 1))
	all := make([]time.Duration, n)
	for i := range all {
		all[i] = time.Duration(math.Exp(r.NormFloat64()*2) * float64(time.Millisecond))
	}
	return all
}

func fill(all []time.Duration) *stats.Histogram {
	var h stats.Histogram
	for _, d := range all {
		h.Record(d)
	}
	return &h
}

// rank is the nearest-rank quantile of sorted durations, by definition: the first that q of all do not exceed.
func rank(sorted []time.Duration, q float64) time.Duration {
	for i, d := range sorted {
		if float64(i+1) >= q*float64(len(sorted))-1e-9 {
			return d
		}
	}
	return 0
}

func TestQuantilesAgainstSort(t *testing.T) {
	for _, n := range []int{1, 2, 10, 99, 100, 512, 513, 1032, 20_000} {
		all := draw(n, uint64(n))
		h := fill(all)
		slices.Sort(all)
		for _, q := range []float64{0, 0.001, 0.25, 0.5, 0.95, 0.99, 0.999, 1} {
			got, want := h.Quantile(q), rank(all, q)
			if diff := math.Abs(float64(got - want)); diff > 0.001*float64(want) || n <= 512 && diff != 0 {
				t.Errorf("Quantile(%v) of %d = %v, want %v within 0.1 %%", q, n, got, want)
			}
		}
	}
}

func TestExactFigures(t *testing.T) {
	all := draw(5000, 7)
	h := fill(all)
	var sum time.Duration
	for _, d := range all {
		sum += d
	}
	if h.Count() != 5000 || h.Sum() != sum || h.Mean() != sum/5000 || h.Min() != slices.Min(all) || h.Max() != slices.Max(all) {
		t.Errorf("count %d sum %v mean %v min %v max %v, want 5000 %v %v %v %v",
			h.Count(), h.Sum(), h.Mean(), h.Min(), h.Max(), sum, sum/5000, slices.Min(all), slices.Max(all))
	}
}

func TestMergeIsLikeRecordingAll(t *testing.T) {
	for _, sizes := range [][2]int{{0, 0}, {0, 3}, {3, 0}, {3, 4}, {300, 300}, {600, 5}, {5, 600}, {0, 600}, {600, 700}} {
		a, b := draw(sizes[0], 1), draw(sizes[1], 2)
		got, other, want := fill(a), fill(b), fill(append(slices.Clone(a), b...))
		got.Merge(other)
		if got.Count() != want.Count() || got.Sum() != want.Sum() || got.Min() != want.Min() || got.Max() != want.Max() {
			t.Errorf("merge of %v: count %d sum %v min %v max %v, want %d %v %v %v", sizes,
				got.Count(), got.Sum(), got.Min(), got.Max(), want.Count(), want.Sum(), want.Min(), want.Max())
		}
		for _, q := range []float64{0.5, 0.95, 1} {
			if got.Quantile(q) != want.Quantile(q) {
				t.Errorf("merge of %v: Quantile(%v) = %v, want %v", sizes, q, got.Quantile(q), want.Quantile(q))
			}
		}
		if other.Count() != uint64(sizes[1]) {
			t.Errorf("merge of %v changed the other: count %d", sizes, other.Count())
		}
	}
}

func TestOutOfRange(t *testing.T) {
	h := fill([]time.Duration{-time.Second, 48 * time.Hour})
	if h.Min() != 0 || h.Max() != 48*time.Hour || h.Quantile(1) != 48*time.Hour {
		t.Errorf("min %v max %v p100 %v, want 0s 48h0m0s 48h0m0s", h.Min(), h.Max(), h.Quantile(1))
	}
	var empty stats.Histogram
	if empty.Quantile(0.5) != 0 || empty.Mean() != 0 {
		t.Errorf("an empty histogram has p50 %v mean %v, want 0 of each", empty.Quantile(0.5), empty.Mean())
	}
}
