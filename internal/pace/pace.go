// Package pace says when things are due: arithmetic from offset to offset. Nothing here reads a clock or sleeps.
package pace

import (
	"fmt"
	"math"
	"strconv"
	"time"
)

// A Schedule says when something captured at some offset is due, counted from the start of a replay. Its zero value
// keeps the captured timing. Due times are absolute, so being late once makes nothing later.
type Schedule struct {
	Speed float64       // 2 plays twice as fast, 0.5 at half the pace; 0 means 1; Max keeps no gaps
	From  time.Duration // the captured offset that is due at 0
}

// Max is the speed at which nothing waits for a time: everything is due at once.
var Max = math.Inf(1)

// Paced reports whether the schedule waits for times at all.
func (s Schedule) Paced() bool { return s.Speed != Max }

// Due is when something captured at this offset is due; never before 0.
func (s Schedule) Due(captured time.Duration) time.Duration {
	return max(0, s.Scale(captured-s.From))
}

// Scale is how long a captured span takes. It is 0 at Max, and the longest Duration where it would exceed that.
func (s Schedule) Scale(span time.Duration) time.Duration {
	if s.Speed == 0 || s.Speed == 1 {
		return span
	}
	scaled := float64(span) / s.Speed // as float64: time.Duration(0.5) is 0
	if scaled >= math.MaxInt64 {
		return math.MaxInt64
	}
	return time.Duration(math.Round(scaled))
}

// ParseSpeed reads a speed as people give it: a number above 0, or max.
func ParseSpeed(s string) (float64, error) {
	if s == "max" {
		return Max, nil
	}
	speed, err := strconv.ParseFloat(s, 64)
	if err != nil || math.IsNaN(speed) || math.IsInf(speed, 0) || speed <= 0 {
		return 0, fmt.Errorf("%s: want a number above 0, or max", s)
	}
	return speed, nil
}

// FormatSpeed is how ParseSpeed would read it.
func FormatSpeed(speed float64) string {
	switch speed {
	case Max:
		return "max"
	case 0:
		return "1"
	}
	return strconv.FormatFloat(speed, 'g', -1, 64)
}
