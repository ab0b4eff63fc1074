package replay

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"

	"redrive/internal/stats"
	"redrive/internal/units"
)

// WriteJSON writes the result as one JSON object.
func (r *Result) WriteJSON(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(r)
}

// WriteText writes the result for people.
func (r *Result) WriteText(w io.Writer) error {
	p := &printer{w: w}
	r.writeWarnings(p)
	p.line("speed %s, %s: took %s; captured %s%s", r.Speed, perSession(r.Scale), units.Duration(r.Wall), units.Duration(r.Captured), r.expected())
	p.line("sessions: %d captured, %d opened, %d refused, %d lost", r.Sessions.Captured, r.Sessions.Opened, r.Sessions.Refused, r.Sessions.Lost)
	for _, reason := range r.Sessions.Reasons {
		p.line("  %s", reason)
	}
	r.writeAccounts(p)
	r.writeDifferences(p)
	r.writeTimes(p)
	r.writeVerdict(p)
	return p.err
}

// expected is what the captured time comes to, where there is a pace.
func (r *Result) expected() string {
	if r.Expected == 0 {
		return ""
	}
	return ", which is " + units.Duration(r.Expected) + " at this speed"
}

func perSession(scale int) string {
	if scale == 1 {
		return "one session for each captured one"
	}
	return fmt.Sprintf("%d sessions for each captured one", scale)
}

// writeWarnings says first what makes the figures doubtful.
func (r *Result) writeWarnings(p *printer) {
	for _, broken := range r.Broken {
		p.line("INCOMPLETE: %s", broken)
	}
	if r.Interrupted {
		p.line("INCOMPLETE: the replay was interrupted")
	}
	if r.GaveUp != "" {
		p.line("INCOMPLETE: the replay gave up: %s", r.GaveUp)
	}
	if n := r.unprepared(); n > 0 {
		p.line("INCOMPLETE: %s not sent, as the target refused their PREPARE", units.Count(n, "command"))
	}
	if r.Sessions.Refused+r.Sessions.Lost > 0 {
		p.line("INCOMPLETE: sessions were refused or lost, and with them what they had to send")
	}
	if r.Shed > 0 {
		p.line("warning: the capture left out %s (trace info lists the gaps)", units.Count(r.Shed, "command"))
	}
	if r.Paused > 0 {
		p.line("warning: reading was late by %v, as statements piled up to the limit (--read-ahead); that shows as lag", units.Duration(r.Paused))
	}
}

func (r *Result) writeAccounts(p *printer) {
	t := p.table(tabwriter.AlignRight)
	t.row("", "captured", "replayed", "skipped", "lost", "unreached")
	reasons := map[string]uint64{}
	for _, part := range []struct {
		name string
		a    *Account
	}{
		{"statements", &r.Statements},
		{"other commands", &r.Commands},
		{"copies: statements", &r.Copies.Statements},
		{"copies: other commands", &r.Copies.Commands},
	} {
		a := part.a
		if a.Captured == 0 {
			continue
		}
		t.row(part.name, a.Captured, a.Replayed, a.Skipped, a.Lost, a.Unreached)
		for reason, n := range a.Reasons {
			reasons[reason] += n
		}
	}
	t.flush()
	for _, reason := range slices.Sorted(maps.Keys(reasons)) {
		p.line("  skipped %d: %s", reasons[reason], reason)
	}
}

func (r *Result) writeDifferences(p *printer) {
	e := &r.Errors
	p.line("")
	p.line("compared with the capture: %s", units.Count(r.Compared, "command"))
	p.line("  errors: %d new, %d vanished, %d changed, %d the same", e.New, e.Vanished, e.Changed, e.Same)
	p.line("  differences: %d in rows, %d in affected rows", r.Rows, r.Affected)
	if r.Copies.Errors > 0 {
		p.line("  errors of copies, not compared: %d", r.Copies.Errors)
	}
	if len(r.Differences) == 0 {
		return
	}
	p.line("")
	t := p.table(0)
	t.row("ended otherwise", "count", "captured", "replayed", "first at", "statement")
	for _, d := range r.Differences {
		captured, replayed := d.sides()
		t.row(d.Kind, units.Number(d.Count), captured, replayed, d.Where, d.Text)
	}
	t.flush()
}

// sides are the captured outcome and the target's, as people read them.
func (d *Difference) sides() (captured, replayed string) {
	switch d.Kind {
	case rowsDiffer, affectedRows:
		return units.Number(d.Captured), units.Number(d.Replayed)
	case vanishedError:
		return errorText(d.Captured, d.SQLState), "ok"
	case newError:
		return "ok", errorText(d.Replayed, d.SQLState)
	}
	return errorText(d.Captured, ""), errorText(d.Replayed, d.SQLState)
}

// errorText is an error's number and SQLSTATE. Its message stays out, as that may hold literals.
func errorText(errno uint64, state string) string {
	return strings.TrimSpace(fmt.Sprintf("error %d %s", errno, state))
}

// writeVerdict says last what it all comes to.
func (r *Result) writeVerdict(p *printer) {
	p.line("")
	switch {
	case r.Compared == 0:
		p.line("nothing could be compared with the capture")
	case r.Different == 0:
		p.line("all %s compared ended as captured", units.Count(r.Compared, "command"))
	default:
		p.line("%s of %s compared ended otherwise than captured", units.Number(r.Different), units.Count(r.Compared, "command"))
	}
}

func (r *Result) writeTimes(p *printer) {
	if r.Service == nil {
		return
	}
	p.line("")
	t := p.table(tabwriter.AlignRight)
	t.row("all statements", "count", "mean", "p50", "p95", "p99", "max")
	for _, part := range []struct {
		name  string
		times *stats.Times
	}{
		{"service time", r.Service}, {"response time", r.Response}, {"wait", r.Wait}, {"lag (ours)", r.Lag},
	} {
		if q := part.times; q != nil {
			t.row(part.name, units.Number(q.Count), units.Duration(q.Mean), units.Duration(q.P50), units.Duration(q.P95), units.Duration(q.P99), units.Duration(q.Max))
		}
	}
	t.flush()
}

// A printer writes lines and tables, and keeps the first error.
type printer struct {
	w   io.Writer
	err error
}

func (p *printer) line(format string, args ...any) {
	if p.err == nil {
		_, p.err = fmt.Fprintf(p.w, format+"\n", args...)
	}
}

func (p *printer) table(flags uint) *table {
	return &table{p, tabwriter.NewWriter(p.w, 0, 0, 2, ' ', flags)}
}

type table struct {
	p *printer
	w *tabwriter.Writer
}

// row writes a row of cells; its name is padded, as tables may align to the right.
func (t *table) row(name string, cells ...any) {
	fmt.Fprintf(t.w, "%-24s\t", name)
	for _, c := range cells {
		fmt.Fprintf(t.w, "%v\t", c)
	}
	fmt.Fprintln(t.w)
}

func (t *table) flush() {
	if err := t.w.Flush(); t.p.err == nil {
		t.p.err = err
	}
}
