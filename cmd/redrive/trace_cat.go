package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"redrive/capture"
)

type traceCatOptions struct{ format, order string }

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
	print := textPrinter(out)
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

func textPrinter(out io.Writer) printer {
	var line []byte
	return func(rec *capture.Record, service time.Duration) error {
		line = append(appendTextLine(line[:0], rec, service), '\n')
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

func appendTextLine(dst []byte, rec *capture.Record, service time.Duration) []byte {
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
		return appendNamed(dst, "reason", g.Reason)
	}
	return appendStatement(dst, rec, service)
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

func appendStatement(dst []byte, rec *capture.Record, service time.Duration) []byte {
	s := &rec.Statement
	txn := "-"
	if s.Txn != 0 {
		txn = fmt.Sprintf("%d.%d", s.Txn, s.Place)
	}
	took := offset(service)
	if rec.Kind == capture.KindBegin {
		took = "open"
	}
	dst = fmt.Appendf(dst, "%d.%d %s %s %s %s", s.Session, s.Number, txn, offset(s.Started()), took, commandName(s))
	if rec.Kind == capture.KindStatement {
		dst = appendOutcome(dst, &s.Outcome)
	}
	if s.TxnEnd != capture.TxnOpen {
		dst = append(append(dst, " end="...), strings.ReplaceAll(s.TxnEnd.String(), " ", "-")...)
	}
	for _, name := range s.Flags.Names() {
		dst = append(append(dst, ' '), strings.ReplaceAll(name, " ", "-")...)
	}
	if len(s.Text) > 0 {
		dst = appendPrintable(append(dst, ' '), s.Text)
	}
	return appendParams(dst, s)
}

func appendOutcome(dst []byte, o *capture.Outcome) []byte {
	if o.Errno != 0 {
		return fmt.Appendf(dst, " errno=%d", o.Errno)
	}
	if o.ResultSets > 0 {
		dst = fmt.Appendf(dst, " rows=%d", o.Rows)
	}
	if o.ResultSets == 0 || o.Affected > 0 {
		dst = fmt.Appendf(dst, " affected=%d", o.Affected)
	}
	return dst
}

func appendParams(dst []byte, s *capture.Statement) []byte {
	params, err := literals(s)
	if err != nil {
		return fmt.Appendf(dst, " -- parameters: %d bytes that cannot be decoded", len(s.Params.Values))
	}
	if len(params) > 0 {
		dst = append(append(dst, " -- "...), strings.Join(params, ", ")...)
	}
	return dst
}

// offset is a time as cat prints it, to the nanosecond.
func offset(d time.Duration) string {
	return fmt.Sprintf("%d.%09d", d/time.Second, d%time.Second)
}
