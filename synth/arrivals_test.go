package synth_test

import (
	"math"
	"testing"
	"time"

	"redrive/synth"
)

func arrivals(rate int, start, end time.Duration) *synth.Arrivals {
	return synth.NewArrivals(synth.NewRandom(3, "test", 0, synth.Uniform), rate, start, end)
}

// Gaps of a Poisson process have their standard deviation equal to their mean, and a share of 1-1/e below it.
func TestArrivalsArePoisson(t *testing.T) {
	a := arrivals(1000, time.Minute, math.MaxInt64)
	mean := float64(time.Millisecond)
	last, _ := a.Next()
	if last <= time.Minute {
		t.Fatalf("first arrival at %v, want after the start", last)
	}
	const n = 20000
	sum, squares, below := 0.0, 0.0, 0
	for range n {
		next, ok := a.Next()
		if !ok || next < last {
			t.Fatalf("arrival at %v after %v, %v", next, last, ok)
		}
		gap := float64(next-last) / mean
		last = next
		sum += gap
		squares += gap * gap
		if gap < 1 {
			below++
		}
	}
	average := sum / n
	deviation := math.Sqrt(squares/n - average*average)
	share := float64(below) / n
	if math.Abs(average-1) > 5/math.Sqrt(n) || math.Abs(deviation-1) > 0.05 || math.Abs(share-(1-1/math.E)) > 0.02 {
		t.Errorf("gaps: mean %.3f, σ %.3f, %.3f below the mean; want 1, 1, %.3f", average, deviation, share, 1-1/math.E)
	}
}

func TestArrivalsEndAndBacklog(t *testing.T) {
	all := 0
	a := arrivals(1000, 0, time.Second)
	for {
		due, ok := a.Next()
		if !ok {
			break
		}
		if due >= time.Second {
			t.Fatalf("an arrival at %v, want none at or after 1s", due)
		}
		all++
	}
	if all < 840 || all > 1160 { // σ 31.6
		t.Errorf("%d arrivals in a second, want about 1000", all)
	}
	// The same stream asked for its backlog has the same arrivals.
	b := arrivals(1000, 0, time.Second)
	half := b.Backlog(500 * time.Millisecond)
	if got := b.Backlog(time.Hour); got != all {
		t.Errorf("backlog at the end %d, want %d", got, all)
	}
	for range half {
		if due, ok := b.Next(); !ok || due > 500*time.Millisecond {
			t.Fatalf("Next() = %v, %v, want one of the first half", due, ok)
		}
	}
	if got := b.Backlog(500 * time.Millisecond); got != 0 {
		t.Errorf("backlog after all due were taken: %d", got)
	}
}
