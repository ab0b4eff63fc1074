package main

import (
	"errors"
	"fmt"
	"io"
	"strings"
)

// A goal is what a figure of the recording proxy should be, as a ratio to another path's.
type goal struct {
	name    string
	column  int
	to      string
	atLeast bool // else at most
	ratio   float64
}

// goals are those of a load.
var goals = []goal{
	{"throughput", loadRate, haproxyPath, true, 1},
	{"p99", loadP99, haproxyPath, false, 1},
	{"CPU", loadCPU, haproxyPath, false, 1},
	{"throughput beside relaying", loadRate, relayingPath, true, 0.95},
}

func (g goal) met(ratio float64) bool {
	if g.atLeast {
		return ratio >= g.ratio
	}
	return ratio <= g.ratio
}

// String says what is wanted.
func (g goal) String() string {
	if g.atLeast {
		return fmt.Sprintf("≥ %.2f", g.ratio)
	}
	return fmt.Sprintf("≤ %.2f", g.ratio)
}

// writeVerdicts says of every level whether the recording proxy meets the goals there, and which it misses by what.
func writeVerdicts(w io.Writer, t *table) {
	for _, r := range t.rows {
		if r.path != recordingPath {
			continue
		}
		word, said := "met", []string(nil)
		for _, g := range goals {
			ratio := t.ratios(r, g.column, g.to).median()
			text := fmt.Sprintf("%s %.2f", g.name, ratio)
			if !g.met(ratio) {
				word = "NOT met"
				text = fmt.Sprintf("**%s, want %s**", text, g)
			}
			said = append(said, text)
		}
		fmt.Fprintf(w, "- %s %s: goal %s: %s\n", t.levels, r.level, word, strings.Join(said, "; "))
	}
	fmt.Fprintln(w)
}

// checkRatio fails where the recording proxy has less than least of HAProxy's throughput.
func checkRatio(workload string, t *table, least float64) error {
	var errs []error
	for _, r := range t.rows {
		if got := t.ratios(r, loadRate, haproxyPath).median(); r.path == recordingPath && got < least {
			errs = append(errs, fmt.Errorf("%s, %s %s: recording has %.2f of HAProxy's throughput, want at least %.2f",
				workload, t.levels, r.level, got, least))
		}
	}
	return errors.Join(errs...)
}
