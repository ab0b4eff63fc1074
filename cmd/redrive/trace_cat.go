package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"redrive/capture"
	"redrive/internal/wire"
)

type traceCatOptions struct {
	format, order string
	width         int
}

func newTraceCat(s streams) *cobra.Command {
	var o traceCatOptions
	c := &cobra.Command{
		Use:   "cat FILE…",
		Short: "Print captures, one record a line",
		Long: `Print the records of capture files, one a line: session.number, transaction.place (- for none), when it started,
service time, command, outcome, text and parameters. Bytes that would break a line are escaped.
docs/trace.md describes the JSON.`,
		Args: namesFiles,
		RunE: func(c *cobra.Command, files []string) error {
			if o.format != "text" && o.format != "json" {
				return usagef("--format %s: want text or json", o.format)
			}
			if o.width < 0 {
				return usagef("--width %d: want a number of bytes, or 0 for no limit", o.width)
			}
			if o.order != "done" && o.order != "start" {
				return usagef("--order %s: want done or start", o.order)
			}
			return eachCapture(c.Context(), s, files, func(_ string, r *capture.Reader, out io.Writer) error {
				return traceCat(o, r, out)
			})
		},
	}
	c.Flags().StringVar(&o.format, "format", "text", "text, or json for one object a line")
	c.Flags().StringVar(&o.order, "order", "done", "the order statements were done in, or the order of their start")
	c.Flags().IntVar(&o.width, "width", 2000, "bytes of a text, and of parameters, that are printed; 0: all (JSON always has all)")
	return c
}

// records is a Reader in either order.
type records interface {
	Next() bool
	Record() *capture.Record
	Err() error
}

func traceCat(o traceCatOptions, r *capture.Reader, out io.Writer) error {
	var in records = r
	if o.order == "start" {
		in = capture.InStartOrder(r)
	}
	print := textPrinter(out, o.width)
	if o.format == "json" {
		print = jsonPrinter(out)
	}
	services := services{}
	for in.Next() {
		rec := in.Record()
		if err := print(rec, services.of(rec)); err != nil {
			return fmt.Errorf("standard output: %w", err)
		}
	}
	return in.Err()
}

// A printer prints one record, given its service time.
type printer func(rec *capture.Record, service time.Duration) error

func textPrinter(out io.Writer, width int) printer {
	var line []byte
	return func(rec *capture.Record, service time.Duration) error {
		line = append(appendTextLine(line[:0], rec, service, width), '\n')
		_, err := out.Write(line)
		return err
	}
}

func jsonPrinter(out io.Writer) printer {
	enc := json.NewEncoder(out)
	enc.SetEscapeHTML(false)
	return func(rec *capture.Record, service time.Duration) error { return enc.Encode(objectOf(rec, service)) }
}

// services computes service times, for which it keeps when each session was done with its command before, or its login.
type services map[uint64]time.Duration

func (s services) of(rec *capture.Record) time.Duration {
	switch rec.Kind {
	case capture.KindSessionStart:
		s[rec.Start.Session] = rec.Start.Ready()
	case capture.KindStatement:
		prev := s[rec.Statement.Session]
		s[rec.Statement.Session] = rec.Statement.Done
		return rec.Statement.Service(prev)
	case capture.KindSessionEnd:
		delete(s, rec.End.Session)
	}
	return 0
}

func appendTextLine(dst []byte, rec *capture.Record, service time.Duration, width int) []byte {
	switch rec.Kind {
	case capture.KindSessionStart:
		return appendSessionStart(dst, &rec.Start)
	case capture.KindSessionEnd:
		e := &rec.End
		dst = fmt.Appendf(dst, "%d - %s - session end: %s after %d commands", e.Session, offset(e.At), e.Reason, e.Commands)
		if e.Errno != 0 {
			dst = fmt.Appendf(dst, " errno=%d", e.Errno)
		}
		return appendNamed(dst, "detail", e.Detail)
	case capture.KindGap:
		g := &rec.Gap
		dst = fmt.Appendf(dst, "- - %s - gap to %s: statements=%d sessions=%d", offset(g.From), offset(g.To), g.Statements, g.Sessions)
		if g.Cut > 0 {
			dst = fmt.Appendf(dst, " cut=%d", g.Cut)
		}
		return appendNamed(dst, "reason", g.Reason)
	}
	return appendStatement(dst, rec, service, width)
}

func appendSessionStart(dst []byte, s *capture.SessionStart) []byte {
	what := "session start"
	if s.Joined {
		what = "session joined"
	}
	dst = fmt.Appendf(dst, "%d - %s - %s: connection=%d", s.Session, offset(s.At), what, s.ConnectionID)
	dst = appendNamed(dst, "user", s.User)
	dst = appendNamed(dst, "schema", s.Schema)
	dst = appendNamed(dst, "client", s.Client)
	dst = appendNamed(dst, "server", s.ServerVersion)
	dst = fmt.Appendf(dst, " collation=%d", s.Collation)
	if s.Source != 0 {
		dst = fmt.Appendf(dst, " plays=%d copy=%d", s.Source, s.Copy)
	}
	if s.Joined {
		dst = fmt.Appendf(dst, " status=%04x prepared=%d", s.Status, len(s.Prepared))
		dst = appendNamed(dst, "unknown", s.Unknown)
	}
	for _, a := range s.Attributes {
		dst = appendNamed(dst, printable(a.Name), a.Value)
	}
	return dst
}

// appendNamed appends name=value, unless the value is empty.
func appendNamed(dst []byte, name, value string) []byte {
	if value == "" {
		return dst
	}
	return fmt.Appendf(dst, " %s=%q", name, value)
}

func appendStatement(dst []byte, rec *capture.Record, service time.Duration, width int) []byte {
	s := &rec.Statement
	txn := "-"
	if s.Txn != 0 {
		txn = fmt.Sprintf("%d.%d", s.Txn, s.Place)
	}
	took := offset(service)
	switch {
	case rec.Kind == capture.KindBegin:
		took = "open"
	case !wire.HasReply(s.Command):
		took = "-"
	}
	dst = fmt.Appendf(dst, "%d.%d %s %s %s %s", s.Session, s.Number, txn, offset(s.Started()), took, commandName(s))
	if rec.Kind == capture.KindStatement {
		dst = appendOutcome(dst, s)
	}
	if s.TxnEnd != capture.TxnOpen {
		dst = append(append(dst, " end="...), strings.ReplaceAll(s.TxnEnd.String(), " ", "-")...)
	}
	for _, name := range s.Flags.Names() {
		dst = append(append(dst, ' '), strings.ReplaceAll(name, " ", "-")...)
	}
	if len(s.Text) > 0 {
		dst = appendWithin(append(dst, ' '), s.Text, width)
	}
	return appendParams(dst, s, width)
}

// appendOutcome tells of affected rows where there might have been some.
func appendOutcome(dst []byte, s *capture.Statement) []byte {
	o := &s.Outcome
	if o.Errno != 0 {
		return fmt.Appendf(dst, " errno=%d", o.Errno)
	}
	if o.ResultSets > 0 {
		dst = fmt.Appendf(dst, " rows=%d", o.Rows)
	}
	if o.ResultSets == 0 && s.RunsSQL() || o.Affected > 0 {
		dst = fmt.Appendf(dst, " affected=%d", o.Affected)
	}
	return dst
}

func appendParams(dst []byte, s *capture.Statement, width int) []byte {
	params, err := literals(s)
	if err != nil {
		return fmt.Appendf(dst, " -- parameters: %d bytes that cannot be decoded", len(s.Params.Values))
	}
	if len(params) > 0 {
		dst = appendCut(append(dst, " -- "...), []byte(strings.Join(params, ", ")), width)
	}
	return dst
}

// appendWithin appends at most width bytes of a text, printable, and says how long it is if there are more.
func appendWithin(dst, text []byte, width int) []byte {
	kept := within(text, width)
	return appendRest(appendPrintable(dst, kept), len(text), len(kept))
}

// appendCut is appendWithin for what is printable already.
func appendCut(dst, text []byte, width int) []byte {
	kept := within(text, width)
	return appendRest(append(dst, kept...), len(text), len(kept))
}

func appendRest(dst []byte, length, kept int) []byte {
	if kept == length {
		return dst
	}
	return fmt.Appendf(dst, "… (%d bytes)", length)
}

// within is the beginning of a text, of at most width bytes and whole characters; all of it where width is 0.
func within(text []byte, width int) []byte {
	if width == 0 || len(text) <= width {
		return text
	}
	for n := width; n > max(0, width-utf8.UTFMax); n-- {
		if utf8.RuneStart(text[n]) {
			return text[:n]
		}
	}
	return text[:width]
}

// offset is a time as cat prints it, to the nanosecond.
func offset(d time.Duration) string {
	return fmt.Sprintf("%d.%09d", d/time.Second, d%time.Second)
}
