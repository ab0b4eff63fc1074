package units_test

import (
	"testing"
	"time"

	"redrive/internal/units"
)

func TestDuration(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "0ns", 87: "87ns", 999: "999ns", 1000: "1.00µs", 123_456: "123µs", 999_600: "1.00ms", 1_234_567: "1.23ms", 12_345 * time.Millisecond: "12.3s", time.Hour: "3600s",
	} {
		if got := units.Duration(d); got != want {
			t.Errorf("Duration(%d) = %s, want %s", d, got, want)
		}
	}
}

func TestCount(t *testing.T) {
	for n, want := range map[uint64]string{0: "0 statements", 1: "1 statement", 2: "2 statements", 1234567: "1,234,567 statements"} {
		if got := units.Count(n, "statement"); got != want {
			t.Errorf("Count(%d) = %s, want %s", n, got, want)
		}
	}
}
