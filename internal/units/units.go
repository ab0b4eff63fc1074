// Package units prints figures for people, the same wherever they stand.
package units

import (
	"math"
	"strconv"
	"time"
)

// Duration prints three digits in the unit that suits: 87ns, 123µs, 1.23ms, 12.3s.
func Duration(d time.Duration) string {
	for _, unit := range []struct {
		name string
		size time.Duration
	}{{"ns", 1}, {"µs", time.Microsecond}, {"ms", time.Millisecond}} {
		v := float64(d) / float64(unit.size)
		if text := digits(v, unit.size == 1); v < 999.5 {
			return text + unit.name
		}
	}
	return digits(d.Seconds(), false) + "s"
}

// digits prints three significant digits, or all in front of the point.
func digits(v float64, whole bool) string {
	places := 2
	switch {
	case whole || v >= 99.95:
		places = 0
	case v >= 9.995:
		places = 1
	}
	return strconv.FormatFloat(v, 'f', places, 64)
}

// Number prints n with commas.
func Number(n uint64) string {
	s := strconv.FormatUint(n, 10)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// Count prints how many of something there are: 1 statement, 2,000 statements.
func Count(n uint64, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return Number(n) + " " + noun + "s"
}

// Rate prints a figure per second.
func Rate(f float64) string {
	if f >= 1000 {
		return Number(uint64(math.Round(f)))
	}
	return digits(f, false)
}

// Percent prints a share of 1.
func Percent(share float64) string { return strconv.FormatFloat(100*share, 'f', 1, 64) + "%" }

// Ratio prints how many times a base something is.
func Ratio(r float64) string { return "×" + digits(r, false) }
