package main

import (
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
)

// legend explains the tables' ratios.
const legend = "× is the ratio to HAProxy: the median of the rounds' own ratios, with the least and the most where they tell."

// A column is a figure, and perhaps its ratio to HAProxy's.
type column struct {
	name   string
	digits int // behind the point
	ratio  bool
	spread bool // of the ratio
	sum    bool // over the rounds, in the place of the median
}

// A table compares contenders at several levels of load.
type table struct {
	levels  string // what a level is
	columns []column
	rows    []*row
	goals   []goal   // of the recording proxy
	notes   []string // what processes said of their recordings
}

// A row is one contender's figures at one level.
type row struct {
	level, path string
	figures     []series // as the columns
}

// add makes rows for the contenders at a level.
func (t *table) add(level string, contenders []*contender) []*row {
	for _, c := range contenders {
		t.rows = append(t.rows, &row{level: level, path: c.path, figures: make([]series, len(t.columns))})
	}
	return t.rows[len(t.rows)-len(contenders):]
}

// record takes a round's figures.
func (r *row) record(figures ...float64) {
	for i, f := range figures {
		r.figures[i] = append(r.figures[i], f)
	}
}

// find is the row of a path at a level, nil if it was not measured.
func (t *table) find(level, path string) *row {
	for _, r := range t.rows {
		if r.level == level && r.path == path {
			return r
		}
	}
	return nil
}

// ratios are a row's, in one column, to those of another path at the same level; empty where one was not measured.
func (t *table) ratios(r *row, column int, to string) series {
	base := t.find(r.level, to)
	if base == nil {
		return nil
	}
	return r.figures[column].over(base.figures[column])
}

// write prints the table as markdown, and below it verdicts and notes.
func (t *table) write(w io.Writer) {
	heads, rules := []string{t.levels, "path"}, []string{"--:", "---"}
	for _, c := range t.columns {
		heads, rules = append(heads, c.name), append(rules, "--:")
		if c.ratio {
			heads, rules = append(heads, "×"), append(rules, "--:")
		}
	}
	fmt.Fprintf(w, "| %s |\n|%s|\n", strings.Join(heads, " | "), strings.Join(rules, "|"))
	for _, r := range t.rows {
		fmt.Fprintf(w, "| %s |\n", strings.Join(t.cells(r), " | "))
	}
	fmt.Fprintln(w)
	t.writeVerdicts(w)
	for _, note := range t.notes {
		fmt.Fprintf(w, "- %s\n", note)
	}
	if len(t.goals)+len(t.notes) > 0 {
		fmt.Fprintln(w)
	}
}

// takeNotes stops the contenders and keeps what those that recorded say of it: a share that was not recorded would
// flatter them. where is the level, or empty if they served all.
func (t *table) takeNotes(where string, contenders []*contender) error {
	var errs []error
	for _, c := range contenders {
		words, err := c.stop()
		errs = append(errs, err)
		if _, ledger, recorded := strings.Cut(words, ".rdt: "); recorded {
			t.notes = append(t.notes, where+c.path+": "+ledger)
		}
	}
	return errors.Join(errs...)
}

func (t *table) cells(r *row) []string {
	cells := []string{r.level, r.path}
	for i, c := range t.columns {
		figure := r.figures[i].median()
		if c.sum {
			figure = r.figures[i].sum()
		}
		cells = append(cells, number(figure, c.digits))
		if !c.ratio {
			continue
		}
		ratios := t.ratios(r, i, haproxyPath)
		cell := number(ratios.median(), 2)
		if c.spread && r.path != haproxyPath && cell != "–" && len(ratios) > 1 {
			cell += " (" + ratios.spread() + ")"
		}
		cells = append(cells, cell)
	}
	return cells
}

// number prints a figure, a dash for none.
func number(f float64, digits int) string {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return "–"
	}
	return fmt.Sprintf("%.*f", digits, f)
}
