package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"redrive/analyze"
	"redrive/capture"
)

// analyzeOptions are the command's flags.
type analyzeOptions struct {
	groupBy, format, ignoreErrors, out string
	top                                int
}

func newAnalyze(s streams) *cobra.Command {
	var o analyzeOptions
	c := &cobra.Command{
		Use:   "analyze FILE…",
		Short: "Summarise captures: figures per statement type and per transaction type",
		Long: `Summarise capture files: a headline, a table per statement type and one per transaction type, errors, and what
sysbench would have counted. Each FILE is a run; several are also put side by side. - is standard input.`,
		RunE: func(c *cobra.Command, files []string) error { return runAnalyze(c.Context(), s, o, files) },
	}
	c.Flags().StringVar(&o.groupBy, "group-by", "type", "group statements by type or by digest")
	c.Flags().StringVar(&o.format, "format", "text", "text or json")
	c.Flags().StringVarP(&o.out, "out", "o", "-", "file to write to; - is standard output")
	c.Flags().IntVar(&o.top, "top", 20, "list so many statements and transaction types, the others as one; 0 lists all")
	c.Flags().StringVar(&o.ignoreErrors, "ignore-errors", "1213,1020,1205", "what sysbench's --mysql-ignore-errors was; or all")
	return c
}

func runAnalyze(ctx context.Context, s streams, o analyzeOptions, files []string) error {
	options, err := o.parse(files)
	if err != nil {
		return err
	}
	var reports []*analyze.Report
	var failed error
	for _, name := range files {
		report, err := analyzeFile(ctx, s, name, options)
		if ctx.Err() != nil {
			return errors.Join(failed, errInterrupted)
		}
		failed = errors.Join(failed, err)
		if report != nil {
			reports = append(reports, report)
		}
	}
	if len(reports) == 0 {
		return failed
	}
	return errors.Join(failed, writeReports(s, o, reports))
}

func (o analyzeOptions) parse(files []string) (analyze.Options, error) {
	options := analyze.Options{ByDigest: o.groupBy == "digest", Top: o.top}
	if len(files) == 0 {
		return options, usagef("name a capture file, or - for standard input")
	}
	stdin := 0
	for _, name := range files {
		if name == "-" {
			stdin++
		}
	}
	if stdin > 1 {
		return options, usagef("- is given %d times, standard input can be read once", stdin)
	}
	if o.groupBy != "type" && o.groupBy != "digest" {
		return options, usagef("--group-by %s: want type or digest", o.groupBy)
	}
	if o.format != "text" && o.format != "json" {
		return options, usagef("--format %s: want text or json", o.format)
	}
	if o.top < 0 {
		return options, usagef("--top %d: want a number from 0", o.top)
	}
	ignore, err := analyze.ParseIgnoreErrors(o.ignoreErrors)
	if err != nil {
		return options, usagef("--ignore-errors: %w", err)
	}
	options.IgnoreErrors = ignore
	return options, nil
}

func analyzeFile(ctx context.Context, s streams, name string, o analyze.Options) (*analyze.Report, error) {
	in, label := s.in, "standard input"
	if name != "-" {
		file, err := os.Open(name)
		if err != nil {
			return nil, err
		}
		defer file.Close()
		in, label = file, name
	}
	input := untilDone(ctx, in)
	defer input.Close()
	return analyze.Read(capture.NewReader(input, label), label, o)
}

func writeReports(s streams, o analyzeOptions, reports []*analyze.Report) error {
	out, err := createOutput(o.out, s.out)
	if err != nil {
		return err
	}
	if o.format == "json" {
		err = analyze.WriteJSON(out, reports)
	} else {
		err = writeText(out, reports)
	}
	if err := errors.Join(err, out.Close()); err != nil {
		return fmt.Errorf("write the report: %w", err)
	}
	return nil
}

func writeText(w io.Writer, reports []*analyze.Report) error {
	for _, r := range reports {
		if err := r.WriteText(w); err != nil {
			return err
		}
		if len(reports) > 1 {
			fmt.Fprintln(w)
		}
	}
	if len(reports) < 2 {
		return nil
	}
	return analyze.NewSideBySide(reports).WriteText(w)
}
