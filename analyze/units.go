package analyze

import (
	"math"
	"strconv"
	"time"
)

// duration prints three digits in the unit that suits: 87ns, 123µs, 1.23ms, 12.3s.
func duration(d time.Duration) string {
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

// number prints n with commas.
func number(n uint64) string {
	s := strconv.FormatUint(n, 10)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// rate prints a figure per second.
func rate(f float64) string {
	if f >= 1000 {
		return number(uint64(math.Round(f)))
	}
	return digits(f, false)
}

func percent(share float64) string { return strconv.FormatFloat(100*share, 'f', 1, 64) + "%" }

// ratio prints how many times a base something is.
func ratio(r float64) string { return "×" + digits(r, false) }
