package main

import (
	"errors"
	"fmt"
	"io"
	"strings"
)

// A goal is what a figure of the recording proxy should be.
type goal struct {
	name    string
	column  int
	to      string  // the path whose figure it is taken as a ratio to; empty for the figure itself
	atLeast bool    // else at most
	bound   float64 // of the median
}

// of is what counts of a row.
func (g goal) of(t *table, r *row) float64 {
	if g.to == "" {
		return r.figures[g.column].median()
	}
	return t.ratios(r, g.column, g.to).median()
}

func (g goal) met(value float64) bool {
	if g.atLeast {
		return value >= g.bound
	}
	return value <= g.bound
}

// String says what is wanted.
func (g goal) String() string {
	if g.atLeast {
		return fmt.Sprintf("≥ %.2f", g.bound)
	}
	return fmt.Sprintf("≤ %.2f", g.bound)
}

// writeVerdicts says of every level whether the recording proxy meets the goals there, and which it misses by what.
func (t *table) writeVerdicts(w io.Writer) {
	for _, r := range t.rows {
		if r.path != recordingPath || len(t.goals) == 0 {
			continue
		}
		word, said := "met", []string(nil)
		for _, g := range t.goals {
			value := g.of(t, r)
			text := fmt.Sprintf("%s %.2f", g.name, value)
			if !g.met(value) {
				word = "NOT met"
				text = fmt.Sprintf("**%s, want %s**", text, g)
			}
			said = append(said, text)
		}
		fmt.Fprintf(w, "- %s %s: goal %s: %s\n", t.levels, r.level, word, strings.Join(said, "; "))
	}
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
