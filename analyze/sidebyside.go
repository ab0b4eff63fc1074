package analyze

import (
	"bufio"
	"fmt"
	"io"
	"slices"
	"time"

	"redrive/internal/units"
)

// SideBySide puts several runs next to one another, type by type. It judges nothing: two runs always differ.
type SideBySide struct {
	Files []string  `json:"files"` // in the order of the runs; the first is the base of all ratios
	Rows  []SideRow `json:"rows"`

	qps, tps []float64
	byDigest bool
}

// A SideRow is one group of statements in all runs; the first row is all statements, the last all transactions.
type SideRow struct {
	Name   string `json:"name"`
	Digest string `json:"digest,omitempty"`
	Runs   []Side `json:"runs"` // one for each file
}

// A Side is a group in one run. What cannot be said is null: times of a group that was not timed, ratios to it.
type Side struct {
	Count     uint64         `json:"count"`
	Mean      *time.Duration `json:"mean_ns"`
	P95       *time.Duration `json:"p95_ns"`
	MeanRatio *float64       `json:"mean_ratio"` // to the first run
	P95Ratio  *float64       `json:"p95_ratio"`
}

// NewSideBySide compares reports that were grouped alike. Groups stand in the order of the first run that has them.
func NewSideBySide(reports []*Report) *SideBySide {
	s := &SideBySide{}
	var names []string
	for _, r := range reports {
		s.Files = append(s.Files, r.Source.File)
		s.qps, s.tps = append(s.qps, r.Headline.QPS), append(s.tps, r.Headline.TPS)
		s.byDigest = r.byDigest
		for _, name := range r.order {
			if !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	s.add(reports, "all statements", func(r *Report) Group {
		return Group{Count: r.Headline.Statements, Service: r.Headline.Service}
	})
	for _, name := range names {
		s.add(reports, name, func(r *Report) Group { return r.groups[name] })
	}
	s.add(reports, "transactions", func(r *Report) Group {
		return Group{Count: r.Headline.Transactions, Service: r.durations}
	})
	return s
}

func (s *SideBySide) add(reports []*Report, name string, of func(*Report) Group) {
	row := SideRow{Name: name}
	base := of(reports[0]).Service
	for _, r := range reports {
		g := of(r)
		if g.Digest != "" {
			row.Digest = g.Digest
		}
		row.Runs = append(row.Runs, newSide(g, base))
	}
	s.Rows = append(s.Rows, row)
}

func newSide(g Group, base *Times) Side {
	side := Side{Count: g.Count}
	if g.Service == nil {
		return side
	}
	side.Mean, side.P95 = &g.Service.Mean, &g.Service.P95
	if base != nil {
		side.MeanRatio, side.P95Ratio = quotient(*side.Mean, base.Mean), quotient(*side.P95, base.P95)
	}
	return side
}

func quotient(a, b time.Duration) *float64 {
	if b == 0 {
		return nil
	}
	q := rounded(float64(a) / float64(b))
	return &q
}

// WriteText prints the table for people: runs by letter, each figure of all runs together.
func (s *SideBySide) WriteText(w io.Writer) error {
	b := bufio.NewWriter(w)
	fmt.Fprintln(b, "Side by side. Statements by service time, transactions by duration; ratios to A. No verdict: repeat runs for that.")
	fmt.Fprintln(b)
	var t table
	t.add("run", "QPS", "TPS")
	for i, file := range s.Files {
		t.add(letter(i)+"  "+file, perSecond(s.qps[i]), perSecond(s.tps[i]))
	}
	t.write(b)
	fmt.Fprintln(b)
	s.writeRows(b)
	return b.Flush()
}

// writeRows prints as many tables as it takes for none to be wider than the others of a report: each has the first run
// and some of the others, one at least.
func (s *SideBySide) writeRows(w io.Writer) {
	others := len(s.Files) - 1
	for from := 1; from <= others; {
		n := others - from + 1
		t := s.table(from, n)
		for n > 1 && t.width() > width {
			n--
			t = s.table(from, n)
		}
		if from > 1 {
			fmt.Fprintln(w)
		}
		t.write(w)
		from += n
	}
}

// table compares n runs, the first of them by this index, with run 0.
func (s *SideBySide) table(from, n int) *table {
	runs := []int{0}
	for i := range n {
		runs = append(runs, from+i)
	}
	var t table
	head := []string{"type"}
	if s.byDigest {
		head[0] = "digest"
	}
	for _, figure := range []string{"count", "mean", "p95"} {
		for _, i := range runs {
			head = append(head, figure+" "+letter(i))
		}
		if figure == "count" {
			continue
		}
		for _, i := range runs[1:] {
			head = append(head, letter(i)+"/A")
		}
	}
	t.add(head...)
	for _, row := range s.Rows {
		name, note := row.Name, ""
		if row.Digest != "" {
			name, note = row.Digest, row.Name
		}
		t.addWithNote(note, append([]string{name}, row.cells(runs)...)...)
	}
	return &t
}

func (r SideRow) cells(runs []int) []string {
	var counts, means, meanRatios, p95s, p95Ratios []string
	for _, i := range runs {
		side := r.Runs[i]
		counts = append(counts, units.Number(side.Count))
		means, p95s = append(means, maybe(side.Mean, units.Duration)), append(p95s, maybe(side.P95, units.Duration))
		if i > 0 {
			meanRatios = append(meanRatios, maybe(side.MeanRatio, units.Ratio))
			p95Ratios = append(p95Ratios, maybe(side.P95Ratio, units.Ratio))
		}
	}
	return slices.Concat(counts, means, meanRatios, p95s, p95Ratios)
}

func maybe[T any](v *T, print func(T) string) string {
	if v == nil {
		return "-"
	}
	return print(*v)
}

// letter names the runs A, B, …
func letter(i int) string {
	if i < 26 {
		return string(rune('A' + i))
	}
	return fmt.Sprint(i + 1)
}
