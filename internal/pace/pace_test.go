package pace_test

import (
	"math"
	"testing"
	"time"

	"redrive/internal/pace"
)

func TestDue(t *testing.T) {
	tests := []struct {
		speed                float64
		from, captured, want time.Duration
	}{
		{0, 0, 1500 * time.Millisecond, 1500 * time.Millisecond},
		{1, 0, time.Second, time.Second},
		{0.5, 0, time.Second, 2 * time.Second},
		{2, 0, time.Second, 500 * time.Millisecond},
		{1.5, 0, 3 * time.Second, 2 * time.Second},
		{3, 0, 10, 3},
		{2, 10 * time.Second, 30 * time.Second, 10 * time.Second},
		{1, 10 * time.Second, 9 * time.Second, 0},
		{pace.Max, 0, time.Hour, 0},
		{pace.Max, time.Second, time.Hour, 0},
		{1e-300, 0, time.Second, math.MaxInt64},
	}
	for _, tt := range tests {
		s := pace.Schedule{Speed: tt.speed, From: tt.from}
		if got := s.Due(tt.captured); got != tt.want {
			t.Errorf("Due(%v) at speed %v from %v = %v, want %v", tt.captured, tt.speed, tt.from, got, tt.want)
		}
	}
}

// Due times are computed from the start and not from one another, so rounding does not add up.
func TestDueDoesNotDrift(t *testing.T) {
	s := pace.Schedule{Speed: 3}
	for i := range 1000 {
		captured := time.Duration(i) * time.Millisecond
		want := float64(captured) / 3
		if got := float64(s.Due(captured)); math.Abs(got-want) > 1 {
			t.Fatalf("Due(%v) at speed 3 = %vns, want %vns", captured, got, want)
		}
	}
}

func TestPaced(t *testing.T) {
	for speed, want := range map[float64]bool{0: true, 1: true, 0.1: true, pace.Max: false} {
		if got := (pace.Schedule{Speed: speed}).Paced(); got != want {
			t.Errorf("Paced at speed %v = %v, want %v", speed, got, want)
		}
	}
}

func TestParseSpeed(t *testing.T) {
	good := map[string]float64{"1": 1, "2.5": 2.5, "0.5": 0.5, "1e2": 100, "max": pace.Max}
	for text, want := range good {
		if got, err := pace.ParseSpeed(text); err != nil || got != want {
			t.Errorf("ParseSpeed(%q) = %v, %v, want %v", text, got, err, want)
		}
	}
	for _, text := range []string{"", "0", "-1", "fast", "NaN", "Inf", "+Inf", "1x", "1e999"} {
		_, err := pace.ParseSpeed(text)
		if want := text + ": want a number above 0, or max"; err == nil || err.Error() != want {
			t.Errorf("ParseSpeed(%q) fails with %v, want %s", text, err, want)
		}
	}
}

func TestFormatSpeed(t *testing.T) {
	for speed, want := range map[float64]string{0: "1", 1: "1", 2.5: "2.5", pace.Max: "max"} {
		if got := pace.FormatSpeed(speed); got != want {
			t.Errorf("FormatSpeed(%v) = %s, want %s", speed, got, want)
		}
	}
}
