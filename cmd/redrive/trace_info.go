package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"redrive/capture"
	"redrive/internal/identity"
	"redrive/internal/units"
)

func newTraceInfo(s streams) *cobra.Command {
	return &cobra.Command{
		Use:   "info FILE…",
		Short: "Say where captures come from and what is in them",
		Args:  namesFiles,
		RunE: func(c *cobra.Command, files []string) error {
			return eachCapture(c.Context(), s, files, func(name string, r *capture.Reader, out io.Writer) error {
				return traceInfo(c.Context(), name, r, out)
			})
		},
	}
}

func traceInfo(ctx context.Context, name string, r *capture.Reader, out io.Writer) error {
	h, err := r.Header()
	if err != nil {
		return err
	}
	var c contents
	for r.Next() {
		c.add(r.Record())
	}
	if r.Err() != nil && ctx.Err() != nil {
		return r.Err()
	}
	p := facts{out}
	fmt.Fprintf(out, "%s\n", name)
	p.header(h, c.greeting)
	p.contents(h, &c, r.Offset())
	l, clean := r.Ledger()
	if clean {
		p.fact("ledger", "commands: %d stored + %d shed + %d unfinished = %d forwarded", l.Stored, l.Shed, l.Unfinished, l.Forwarded)
		if l.Opaque > 0 {
			p.fact("opaque", "%s relayed without being understood", units.Count(l.Opaque, "session"))
		}
		p.fact("end", "clean")
		return nil
	}
	if errors.Is(r.Err(), io.ErrUnexpectedEOF) {
		p.fact("end", "cut short after offset %d", r.Offset())
	} else {
		p.fact("end", "not clean: %s", strings.TrimPrefix(r.Err().Error(), name+": "))
	}
	return r.Err()
}

// contents are the sums that info prints.
type contents struct {
	records     [capture.KindGap + 1]uint64
	statements  uint64 // that run SQL
	errors      uint64
	first, last time.Duration // -1: nothing yet
	any         bool
	gaps        []capture.Gap // the first of them
	greeting    string        // server version, as the first session's greeting told it
}

const gapsShown = 10

func (c *contents) add(rec *capture.Record) {
	c.records[rec.Kind]++
	switch rec.Kind {
	case capture.KindStatement:
		if s := &rec.Statement; s.RunsSQL() {
			c.statements++
			if s.Outcome.Errno != 0 {
				c.errors++
			}
		}
		c.span(rec.Statement.Started(), rec.Statement.Done)
	case capture.KindBegin:
		c.span(rec.Statement.Started(), rec.Statement.Started())
	case capture.KindSessionStart:
		c.span(rec.Start.At, rec.Start.At)
		c.greeting = cmp.Or(c.greeting, rec.Start.ServerVersion)
	case capture.KindSessionEnd:
		c.span(rec.End.At, rec.End.At)
	case capture.KindGap:
		if len(c.gaps) < gapsShown {
			c.gaps = append(c.gaps, rec.Gap)
		}
	}
}

func (c *contents) span(from, to time.Duration) {
	if !c.any || from < c.first {
		c.first = from
	}
	c.last = max(c.last, to)
	c.any = true
}

// facts prints one fact a line.
type facts struct{ out io.Writer }

func (p facts) fact(name, format string, args ...any) {
	if text := fmt.Sprintf(format, args...); text != "" {
		fmt.Fprintf(p.out, "  %-12s %s\n", name, printable(text))
	}
}

func (p facts) header(h *capture.Header, greeting string) {
	p.fact("producer", "%s", strings.TrimSpace(h.Producer+parenthesis(h.Product)))
	p.fact("host", "%s", h.Host)
	p.fact("start", "%s", startText(h))
	if h.Clock != "" {
		p.fact("clock", "%s", h.Clock)
	}
	p.fact("backend", "%s", h.Backend+parenthesis(strings.Join(h.Resolved, ", ")))
	p.fact("server", "%s", serverText(h.Server, greeting))
	p.fact("source", "%s", h.Source)
	for _, name := range slices.Sorted(maps.Keys(h.Settings)) {
		p.fact("setting", "%s=%s", name, h.Settings[name])
	}
}

// startText is the wall clock at the capture's start. Z is as good as its name.
func startText(h *capture.Header) string {
	start := h.Start.Format(time.RFC3339Nano)
	if strings.HasSuffix(start, "Z") && h.Zone == "UTC" {
		return start
	}
	return strings.TrimSpace(start + " " + h.Zone)
}

func (p facts) contents(h *capture.Header, c *contents, size int64) {
	n := c.records
	p.fact("sessions", "%d started, %d ended", n[capture.KindSessionStart], n[capture.KindSessionEnd])
	p.fact("commands", "%d, of them %d statements, %d with errors", n[capture.KindStatement], c.statements, c.errors)
	p.fact("begins", "%s open for a second or longer", units.Count(n[capture.KindBegin], "command"))
	if c.any {
		p.fact("time", "%s to %s, %s long", h.Start.Add(c.first).Format(time.RFC3339Nano), h.Start.Add(c.last).Format(time.RFC3339Nano), c.last-c.first)
	}
	p.fact("size", "%d bytes%s", size, perStatement(size, c.statements))
	p.fact("gaps", "%d", n[capture.KindGap])
	for _, g := range c.gaps {
		cut := ""
		if g.Cut > 0 {
			cut = fmt.Sprintf(", %s cut off", units.Count(g.Cut, "transaction"))
		}
		p.fact("gap", "%s to %s: %s, %s%s: %s", g.From, g.To, units.Count(g.Statements, "command"), units.Count(g.Sessions, "session record"), cut, g.Reason)
	}
}

// perStatement divides by the commands that run SQL, as those are what a capture is for.
func perStatement(size int64, statements uint64) string {
	if statements == 0 {
		return ""
	}
	return fmt.Sprintf(": %.1f for each statement", float64(size)/float64(statements))
}

func parenthesis(text string) string {
	if text == "" {
		return ""
	}
	return " (" + text + ")"
}

// serverText is what a server said of itself, the empty answers left out.
func serverText(s *identity.Server, greeting string) string {
	switch {
	case s == nil && greeting == "":
		return "was not asked who it is"
	case s == nil:
		return greeting + ", as told by its greeting"
	}
	var parts []string
	for _, part := range [][2]string{
		{"", cmp.Or(strings.TrimSpace(s.Version+parenthesis(s.Comment)), "version not told")},
		{"host ", s.Hostname},
		{"port ", s.Port},
		{"server_id ", s.ServerID},
		{"uuid ", s.UUID},
		{"datadir ", s.Datadir},
		{"socket ", s.Socket},
		{"binlog ", s.BinlogFile},
		{"gtid ", s.GTID},
	} {
		if part[1] != "" {
			parts = append(parts, part[0]+part[1])
		}
	}
	return strings.Join(parts, ", ")
}
