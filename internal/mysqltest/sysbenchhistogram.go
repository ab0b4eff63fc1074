package mysqltest

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// A LatencyHistogram is the one that sysbench prints: ascending values, some 1.8 % apart, each with the number of
// events that took about that long.
type LatencyHistogram []LatencyCount

// A LatencyCount is a line of it.
type LatencyCount struct {
	Latency time.Duration // to the microsecond
	Events  uint64
}

// Events is how many are counted. It may be a little short of the report's own count: a checkpoint takes the two one
// after the other.
func (h LatencyHistogram) Events() (n uint64) {
	for _, c := range h {
		n += c.Events
	}
	return n
}

// Quantile is the latency that at least the share q of the events does not exceed; 0 if there are none.
func (h LatencyHistogram) Quantile(q float64) time.Duration {
	rank := max(1, math.Ceil(q*float64(h.Events())-1e-9)) // 0.95×20 is a little more than 19
	var seen uint64
	for _, c := range h {
		if seen += c.Events; float64(seen) >= rank {
			return c.Latency
		}
	}
	return 0
}

// parseHistogram reads the last one in the output, which stands before the report: lines such as
//
//	0.036 |*************    285
//
// with milliseconds in front and events at the end. At a checkpoint sysbench prints none.
func parseHistogram(output string) (h LatencyHistogram, err error) {
	i := strings.LastIndex(output, "Latency histogram (values are in milliseconds)")
	if i < 0 {
		return nil, nil
	}
	for line := range strings.Lines(output[i:]) {
		value, bar, found := strings.Cut(strings.TrimSpace(line), " |")
		if !found {
			if len(h) > 0 {
				break
			}
			continue
		}
		var c LatencyCount
		if c.Latency, err = time.ParseDuration(value + "ms"); err == nil {
			c.Events, err = strconv.ParseUint(strings.TrimLeft(bar, "* "), 10, 64)
		}
		if err != nil {
			return nil, fmt.Errorf("sysbench's histogram: %q: %w", strings.TrimSpace(line), err)
		}
		h = append(h, c)
	}
	return h, nil
}
