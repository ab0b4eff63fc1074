package mysqltest

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os/exec"
	"strconv"
	"strings"
	"time"
)

// A Report is what a sysbench run printed at its end. prepare, cleanup and help print none: all is zero but Output.
type Report struct {
	Output string // everything it printed

	Read, Write, Other, Total uint64 // queries
	Transactions              uint64
	IgnoredErrors, Reconnects uint64
	Events                    uint64
	TotalTime                 time.Duration

	// Latency of an event. The percentile is the one asked for by --percentile, 0 when there is none.
	Min, Avg, Max, Percentile, Sum time.Duration
}

// SysbenchArgs are the options that make sysbench connect to addr (host:port) as the administrator.
func SysbenchArgs(addr, schema string) []string {
	host, port, _ := net.SplitHostPort(addr)
	return []string{
		"--mysql-host=" + host, "--mysql-port=" + port, "--mysql-db=" + schema,
		"--mysql-user=" + User, "--mysql-password=" + Password,
	}
}

// Sysbench runs the real sysbench and reads its report. Cancelling ctx kills it. The error of a run that failed has
// what sysbench printed.
func Sysbench(ctx context.Context, args ...string) (Report, error) {
	tool, err := Tool("sysbench")
	if err != nil {
		return Report{}, err
	}
	var out bytes.Buffer
	cmd := exec.Command(tool, args...)
	cmd.Stdout, cmd.Stderr = &out, &out
	process, err := Spawn(cmd)
	if err != nil {
		return Report{}, err
	}
	stop := context.AfterFunc(ctx, process.Kill)
	defer stop()
	if err := process.Wait(); err != nil {
		return Report{Output: out.String()}, fmt.Errorf("sysbench %s: %w\n%s", strings.Join(args, " "), err, &out)
	}
	return ParseReport(out.String())
}

// ParseReport reads what sysbench 1.0 prints.
func ParseReport(output string) (Report, error) {
	r := Report{Output: output}
	_, statistics, found := strings.Cut(output, "SQL statistics:")
	if !found {
		return r, nil
	}
	for line := range strings.Lines(statistics) {
		label, rest, _ := strings.Cut(strings.TrimSpace(line), ":")
		values := strings.Fields(rest)
		if len(values) == 0 {
			continue
		}
		if err := r.set(label, values[0]); err != nil {
			return r, fmt.Errorf("sysbench's report: %q: %w", strings.TrimSpace(line), err)
		}
	}
	return r, nil
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
