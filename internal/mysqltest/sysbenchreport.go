package mysqltest

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// A Report is what a sysbench run printed at its end; where --report-checkpoints divide the run, what follows the last
// of them, but for TotalTime. prepare, cleanup and help print none: all is zero but Output.
type Report struct {
	Output string // everything it printed

	Read, Write, Other, Total uint64 // queries
	Transactions              uint64
	IgnoredErrors, Reconnects uint64
	Events                    uint64
	TotalTime                 time.Duration
	QueryRate                 float64 // queries per second

	// Latency of an event. The percentile is the one asked for by --percentile, 0 when there is none.
	Min, Avg, Max, Percentile, Sum time.Duration
	Histogram                      LatencyHistogram // of the same latencies, with --histogram
}

// ParseReport reads what sysbench 1.0 prints.
func ParseReport(output string) (Report, error) {
	r := Report{Output: output}
	const title = "SQL statistics:"
	i := strings.LastIndex(output, title)
	if i < 0 {
		return r, nil
	}
	for line := range strings.Lines(output[i+len(title):]) {
		if err := r.line(strings.TrimSpace(line)); err != nil {
			return r, fmt.Errorf("sysbench's report: %q: %w", strings.TrimSpace(line), err)
		}
	}
	var err error
	r.Histogram, err = parseHistogram(output)
	return r, err
}

// line reads a label, a colon, a value, and of some the value per second.
func (r *Report) line(line string) error {
	label, rest, _ := strings.Cut(line, ":")
	values := strings.Fields(rest)
	if len(values) == 0 {
		return nil
	}
	if label == "queries" && len(values) > 1 {
		rate, err := strconv.ParseFloat(strings.TrimPrefix(values[1], "("), 64)
		r.QueryRate = rate
		return err
	}
	return r.set(label, values[0])
}

func (r *Report) set(label, value string) (err error) {
	counts := map[string]*uint64{
		"read": &r.Read, "write": &r.Write, "other": &r.Other, "total": &r.Total, "transactions": &r.Transactions,
		"ignored errors": &r.IgnoredErrors, "reconnects": &r.Reconnects, "total number of events": &r.Events,
	}
	latencies := map[string]*time.Duration{"min": &r.Min, "avg": &r.Avg, "max": &r.Max, "sum": &r.Sum}
	if count := counts[label]; count != nil {
		*count, err = strconv.ParseUint(value, 10, 64)
		return err
	}
	if label == "total time" {
		r.TotalTime, err = time.ParseDuration(value)
		return err
	}
	latency := latencies[label]
	if strings.HasSuffix(label, "th percentile") {
		latency = &r.Percentile
	}
	if latency != nil {
		*latency, err = time.ParseDuration(value + "ms")
	}
	return err
}
