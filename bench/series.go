package main

import (
	"fmt"
	"math"
	"slices"
)

// none is the figure of what has none: processor time of a path without a process in the middle.
var none = math.NaN()

// A series is one figure of one contender, round by round.
type series []float64

// median of an odd number of rounds is the middle one, of an even number the mean of the middle two; none of none.
func (s series) median() float64 {
	if len(s) == 0 {
		return none
	}
	sorted := slices.Sorted(slices.Values(s))
	return (sorted[(len(s)-1)/2] + sorted[len(s)/2]) / 2
}

func (s series) sum() (sum float64) {
	for _, v := range s {
		sum += v
	}
	return sum
}

// over are the ratios to base, each within its round.
func (s series) over(base series) series {
	ratios := make(series, min(len(s), len(base)))
	for i := range ratios {
		ratios[i] = s[i] / base[i]
	}
	return ratios
}

// spread is the least and the most of several.
func (s series) spread() string {
	if len(s) < 2 {
		return ""
	}
	return fmt.Sprintf("%.2f–%.2f", slices.Min(s), slices.Max(s))
}
