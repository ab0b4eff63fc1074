package analyze

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"strings"
	"time"

	"redrive/internal/units"
)

// WriteText prints the report for people.
func (r *Report) WriteText(w io.Writer) error {
	b := bufio.NewWriter(w)
	r.writeHead(b)
	r.writeStatements(b)
	r.writeTransactions(b)
	r.writeErrors(b)
	r.writeCommands(b)
	r.writeSysbench(b)
	return b.Flush()
}

func (r *Report) writeHead(w io.Writer) {
	fmt.Fprintln(w, r.Source.line())
	for _, warning := range r.Warnings {
		for i, part := range wrap("Warning: "+warning, width, noteLines) {
			fmt.Fprintln(w, strings.Repeat(" ", min(i, 1)*len("Warning: "))+part)
		}
	}
	h := r.Headline
	fmt.Fprintln(w)
	var t table
	t.add("duration", seconds(h.Duration), "sessions", units.Number(h.Sessions))
	t.add("statements", units.Number(h.Statements), "QPS", perSecond(h.QPS))
	t.add("transactions", units.Number(h.Transactions), "TPS", perSecond(h.TPS))
	t.add("errors", units.Number(h.Errors), "mean concurrency", perSecond(h.Concurrency))
	t.write(w)
	if ends := h.Ends.line(); ends != "" {
		fmt.Fprintln(w, "transactions ended (TPS counts all that did): "+ends)
	}
	r.writeClocks(w)
}

func (s Source) line() string {
	parts := []string{cmp.Or(s.File, "capture")}
	switch {
	case s.Producer == "":
	case s.Backend == "":
		parts = append(parts, s.Producer)
	default:
		parts = append(parts, s.Producer+" → "+s.Backend)
	}
	if s.Server != "" {
		parts = append(parts, s.Server)
	}
	if !s.Start.IsZero() {
		parts = append(parts, s.Start.Format("2006-01-02 15:04:05 -07:00"))
	}
	return strings.Join(parts, ", ")
}

func seconds(d time.Duration) string {
	if d == 0 {
		return "n/a"
	}
	return units.Duration(d)
}

func perSecond(f float64) string {
	if f == 0 {
		return "n/a"
	}
	return units.Rate(f)
}

// line tells ends apart where there is more than one kind.
func (e Ends) line() string {
	var parts []string
	for _, end := range []struct {
		n    uint64
		name string
	}{
		{e.Commit, "commit"},
		{e.Rollback, "rollback"},
		{e.Autocommit, "autocommit"},
		{e.Implicit, "implicit commit"},
		{e.Error, "rolled back by the server"},
		{e.Disconnect, "disconnected"},
		{e.Incomplete, "incomplete"},
		{e.Open, "still open"},
	} {
		if end.n > 0 {
			parts = append(parts, end.name+" "+units.Number(end.n))
		}
	}
	return strings.Join(parts, ", ")
}

func (r *Report) writeClocks(w io.Writer) {
	h := r.Headline
	if h.Service == nil {
		return
	}
	var t table
	t.add("all statements", "count", "mean", "p50", "p95", "p99", "max")
	for _, row := range []struct {
		name  string
		times *Times
	}{{"service time", h.Service}, {"response time", h.Response}, {"wait", h.Wait}, {"lag", h.Lag}} {
		if row.times != nil {
			t.add(append([]string{row.name, units.Number(row.times.Count)}, timeCells(row.times)...)...)
		}
	}
	fmt.Fprintln(w)
	t.write(w)
}

// timeCells are mean, p50, p95, p99 and max; dashes where nothing was timed.
func timeCells(t *Times) []string {
	if t == nil {
		return []string{"-", "-", "-", "-", "-"}
	}
	return []string{units.Duration(t.Mean), units.Duration(t.P50), units.Duration(t.P95), units.Duration(t.P99), units.Duration(t.Max)}
}

func (r *Report) writeStatements(w io.Writer) {
	if len(r.Statements) == 0 {
		fmt.Fprintln(w, "\nNo statements.")
		return
	}
	what := "type"
	if r.byDigest {
		what = "digest"
	}
	fmt.Fprintf(w, "\nStatements by %s. Service time: from the request's last byte to the reply's.\n", what)
	var t table
	t.add(what, "count", "share", "mean", "p50", "p95", "p99", "max", "rows", "affected", "errors")
	for _, g := range r.Statements {
		name, note := g.Name, ""
		if g.Digest != "" {
			name, note = g.Digest, g.Name
		}
		t.addWithNote(note, row(name, g.Count, g.Share, g.Service, g.Rows, g.Affected, g.Errors)...)
	}
	t.write(w)
}

func row(name string, count uint64, share float64, times *Times, rows, affected, errors uint64) []string {
	cells := []string{name, units.Number(count), units.Percent(share)}
	if times == nil {
		cells[2] = "-"
	}
	cells = append(cells, timeCells(times)...)
	return append(cells, units.Number(rows), units.Number(affected), units.Number(errors))
}

func (r *Report) writeTransactions(w io.Writer) {
	if len(r.Transactions) == 0 {
		return
	}
	fmt.Fprintln(w, "\nTransactions by type. Duration: from the first statement's start to the last reply's end.")
	var t table
	t.add("statements", "count", "share", "mean", "p50", "p95", "p99", "max", "rows", "affected", "errors")
	for _, x := range r.Transactions {
		first := "-"
		if x.Statements > 0 {
			first = units.Number(x.Statements)
		}
		t.addWithNote(x.Name, row(first, x.Count, x.Share, x.Duration, x.Rows, x.Affected, x.Errors)...)
	}
	t.write(w)
}

func (r *Report) writeErrors(w io.Writer) {
	if len(r.Errors) == 0 {
		return
	}
	fmt.Fprintln(w, "\nErrors")
	var t table
	t.add("code", "sqlstate", "count")
	for _, e := range r.Errors {
		t.addWithNote(e.note(), fmt.Sprint(e.Errno), cmp.Or(e.SQLState, "-"), units.Number(e.Count))
	}
	t.write(w)
}

func (e Error) note() string {
	var parts []string
	for _, in := range e.In {
		parts = append(parts, in.Type+" "+units.Number(in.Count))
	}
	text := "in " + strings.Join(parts, ", ")
	if meaning := meanings[e.Errno]; meaning != "" {
		return meaning + "; " + text
	}
	return text
}

// meanings are the errors one meets under load.
var meanings = map[uint16]string{
	1020: "record has changed since last read", 1040: "too many connections", 1044: "access denied to the schema",
	1046: "no schema selected", 1054: "unknown column", 1062: "duplicate key", 1064: "syntax error",
	1142: "access denied to the table", 1146: "no such table", 1159: "network timeout", 1205: "lock wait timeout",
	1213: "deadlock", 1226: "resource limit of the account", 1243: "unknown prepared statement",
	1290: "server is read-only", 1317: "query interrupted", 1461: "too many prepared statements",
	1836: "server is read-only", 1927: "connection killed", 1969: "statement timeout", 2006: "connection lost",
	2013: "connection lost", 3024: "statement timeout", 3572: "lock not available at once", 4031: "idle connection closed",
}

func (r *Report) writeCommands(w io.Writer) {
	if len(r.Commands) == 0 {
		return
	}
	fmt.Fprintln(w, "\nCommands that run no SQL")
	var t table
	t.add("command", "count", "errors")
	for _, c := range r.Commands {
		t.add(c.Name, units.Number(c.Count), units.Number(c.Errors))
	}
	t.write(w)
}

func (r *Report) writeSysbench(w io.Writer) {
	s := r.Sysbench
	transactions, tps := "n/a", "n/a"
	if s.Transactions != nil {
		transactions = units.Number(*s.Transactions)
	}
	if s.TPS != nil {
		tps = perSecond(*s.TPS)
	}
	fmt.Fprintln(w, "\nAs sysbench counts: by result, not by text")
	var t table
	t.add("read", "write", "other", "total", "per s", "transactions", "per s", "ignored errors", "reconnects")
	t.add(units.Number(s.Read), units.Number(s.Write), units.Number(s.Other), units.Number(s.Total), perSecond(s.QPS), transactions, tps, units.Number(s.IgnoredErrors), units.Number(s.Reconnects))
	t.write(w)
}
