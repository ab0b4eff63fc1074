package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"redrive/capture"
	"redrive/synth"
)

func newSynth(s streams) *cobra.Command {
	return &cobra.Command{
		Use:   "synth [options] " + strings.Join(synth.Workloads, "|") + " prepare|run|cleanup",
		Short: "Send sysbench's OLTP workloads, by sysbench's own command line",
		// sysbench's syntax is its own: --name=value only, - and _ alike.
		DisableFlagParsing: true,
		RunE: func(c *cobra.Command, args []string) error {
			return runSynth(c.Context(), args, s)
		},
	}
}

// runSynth keeps sysbench's streams and exit statuses: what it says goes to standard output, but for mistakes in the
// command line.
func runSynth(ctx context.Context, args []string, s streams) error {
	switch {
	case len(args) == 0:
		fmt.Fprint(s.err, synthHelp())
		return &exitError{exitFailed, nil}
	case len(args) == 1 && args[0] == "-h":
		args = []string{"--help"}
	}
	o, err := parseSynth(args)
	var mistake *synthMistake
	switch {
	case errors.As(err, &mistake):
		mistake.print(s)
		return &exitError{exitFailed, nil}
	case o.help:
		_, err := fmt.Fprint(s.out, synthHelp())
		return err
	case o.version:
		_, err := fmt.Fprint(s.out, strings.TrimSuffix(synth.Banner(version), "\n"))
		return err
	}
	printed := s.out
	if o.out == "-" {
		printed = s.err // the capture has standard output for itself
	}
	runner := synth.Runner{
		Settings: o.Settings, Name: o.test, Version: version, Targets: o.targets(), Out: printed, Clock: capture.NewClock(),
	}
	if o.out == "" {
		return synthStatus(doSynth(ctx, &runner, o.command), printed)
	}
	file, err := createOutput(o.out, s.out)
	if err != nil {
		return &exitError{exitFailed, err}
	}
	recorder := capture.NewRecorder(file.Writer, o.header(ctx, runner.Clock), capture.RecorderOptions{Sync: file.Sync})
	runner.Sink = recorder
	err = synthStatus(doSynth(ctx, &runner, o.command), printed)
	return errors.Join(err, closeSynth(recorder, file, o.out, s.err))
}

func doSynth(ctx context.Context, r *synth.Runner, command string) error {
	switch command {
	case "prepare":
		return r.Prepare(ctx)
	case "cleanup":
		return r.Cleanup(ctx)
	}
	return r.Run(ctx)
}

// synthStatus prints sysbench's lines about an error and gives its exit status.
func synthStatus(err error, out io.Writer) error {
	var fatal *synth.Fatal
	switch {
	case err == nil:
		return nil
	case !errors.As(err, &fatal):
		return &exitError{exitFailed, err}
	}
	for _, line := range fatal.Lines {
		fmt.Fprintf(out, "FATAL: %s\n", line)
	}
	return &exitError{fatal.Status, nil}
}

// closeSynth ends the recording and says what is in it.
func closeSynth(r *capture.Recorder, file *output, name string, say io.Writer) error {
	ledger, err := r.Close(0)
	err = errors.Join(err, file.Close())
	fmt.Fprintf(say, "recorded in %s: %d commands = %d stored + %d shed\n", name, ledger.Forwarded, ledger.Stored, ledger.Shed)
	if err != nil {
		return fmt.Errorf("recording: %w", err)
	}
	if ledger.Shed > 0 {
		return fmt.Errorf("%d commands were not recorded; trace info %s lists the gaps", ledger.Shed, name)
	}
	return nil
}
