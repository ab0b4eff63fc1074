package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"redrive/capture"
)

func newTrace(s streams) *cobra.Command {
	c := &cobra.Command{
		Use:   "trace",
		Short: "Look into capture files and check them",
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			return usagef("say what to do: info, verify or cat; see redrive trace --help")
		},
	}
	c.AddCommand(newTraceInfo(s), newTraceVerify(s), newTraceCat(s))
	return c
}

// namesFiles is the check of a command's arguments: one capture file at least, standard input once.
func namesFiles(_ *cobra.Command, files []string) error {
	if len(files) == 0 {
		return errors.New("name a capture file, or - for standard input")
	}
	stdin := 0
	for _, name := range files {
		if name == "-" {
			stdin++
		}
	}
	if stdin > 1 {
		return fmt.Errorf("- is given %d times, standard input can be read once", stdin)
	}
	return nil
}

// eachCapture opens one file after the other and calls f with a reader of it and a buffered standard output. An error
// of one file does not keep the others from being read; a failing output or the end of ctx does.
func eachCapture(ctx context.Context, s streams, files []string, f func(name string, r *capture.Reader, out io.Writer) error) error {
	out := bufio.NewWriterSize(s.out, 64<<10)
	var failed error
	for _, name := range files {
		err := readCapture(ctx, s, name, func(name string, r *capture.Reader) error { return f(name, r, out) })
		failed = errors.Join(failed, orInterrupted(ctx, err))
		if err := out.Flush(); err != nil {
			return errors.Join(failed, fmt.Errorf("standard output: %w", err))
		}
		if ctx.Err() != nil {
			break
		}
	}
	return failed
}

func readCapture(ctx context.Context, s streams, name string, f func(name string, r *capture.Reader) error) error {
	in := s.in
	if name == "-" {
		name = "standard input"
	} else {
		file, err := os.Open(name)
		if err != nil {
			return err
		}
		defer file.Close()
		in = file
	}
	input := untilDone(ctx, in)
	defer input.Close()
	return f(name, capture.NewReader(input, name))
}
