package main

import (
	"errors"
	"fmt"
	"io"
	"slices"
)

// median of an odd number of samples is the middle one, of an even number the mean of the middle two.
func median(samples []sample, of func(sample) float64) float64 {
	values := make([]float64, len(samples))
	for i, s := range samples {
		values[i] = of(s)
	}
	slices.Sort(values)
	return (values[(len(values)-1)/2] + values[len(values)/2]) / 2
}

func (r *result) qps() float64 { return median(r.samples, func(s sample) float64 { return s.qps }) }
func (r *result) p95() float64 { return median(r.samples, func(s sample) float64 { return s.p95 }) }
func (r *result) cpu() float64 { return median(r.samples, func(s sample) float64 { return s.cpu }) }

// yardstick is HAProxy's result at the same number of threads.
func yardstick(results []result, threads int) *result {
	i := slices.IndexFunc(results, func(r result) bool { return r.path == haproxyPath && r.threads == threads })
	return &results[i]
}

// writePaths prints every path's medians and their ratio to HAProxy's.
func writePaths(w io.Writer, o *options, results []result) {
	fmt.Fprintf(w, "%s, db-ps-mode %s, medians of %d alternating rounds of %v; × is the ratio to HAProxy\n\n",
		o.workload, o.psMode, o.rounds, o.round)
	fmt.Fprintln(w, "| threads | path | statements/s | × | p95 ms | × | CPU µs per statement | × |")
	fmt.Fprintln(w, "|--:|---|--:|--:|--:|--:|--:|--:|")
	for i := range results {
		r := &results[i]
		y := yardstick(results, r.threads)
		fmt.Fprintf(w, "| %d | %s | %.0f | %.2f | %.2f | %.2f | %s |\n", r.threads, r.path,
			r.qps(), r.qps()/y.qps(), r.p95(), r.p95()/y.p95(), cpuCells(r, y))
	}
	fmt.Fprintln(w)
	for i := range results {
		if r := &results[i]; r.note != "" {
			fmt.Fprintf(w, "- %d threads, %s: %s\n", r.threads, r.path, r.note)
		}
	}
	fmt.Fprintln(w)
}

// cpuCells are two cells; a path without a process in the middle has none to show.
func cpuCells(r, y *result) string {
	if r.cpu() == 0 {
		return "– | –"
	}
	return fmt.Sprintf("%.1f | %.2f", r.cpu(), r.cpu()/y.cpu())
}

func writeSizes(w io.Writer, sizes []size) {
	fmt.Fprintf(w, "Capture files, stock sysbench, text mode, %d threads\n\n", sizeThreads)
	fmt.Fprintln(w, "| workload | statements | bytes | bytes per statement |")
	fmt.Fprintln(w, "|---|--:|--:|--:|")
	for _, s := range sizes {
		fmt.Fprintf(w, "| %s | %d | %d | %.1f |\n", s.workload, s.statements, s.bytes, float64(s.bytes)/float64(s.statements))
	}
}

// checkRatio fails where the recording proxy has less than least of HAProxy's throughput.
func checkRatio(results []result, least float64) error {
	var errs []error
	for i := range results {
		r := &results[i]
		if got := r.qps() / yardstick(results, r.threads).qps(); r.path == recordingPath && got < least {
			errs = append(errs, fmt.Errorf("%d threads: recording has %.2f of HAProxy's throughput, want at least %.2f", r.threads, got, least))
		}
	}
	return errors.Join(errs...)
}
