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
			return usagef("trace: say what to do: info, verify or cat; see redrive trace --help")
		},
	}
	c.AddCommand(newTraceInfo(s), newTraceVerify(s), newTraceCat(s))
	return c
}

// namesFiles is the check of a command's arguments: one capture file at least, standard input once.
func namesFiles(c *cobra.Command, files []string) error {
	if len(files) == 0 {
		return usagef("%s: name a capture file, or - for standard input", c.CommandPath())
	}
	stdin := 0
	for _, name := range files {
		if name == "-" {
			stdin++
		}
	}
	if stdin > 1 {
		return usagef("%s: - is given %d times, standard input can be read once", c.CommandPath(), stdin)
	}
	return nil
}

// eachCapture opens one file after the other and calls f with a reader of it and a buffered standard output. An error
// of one file does not keep the others from being read; a failing output or the end of ctx does.
func eachCapture(ctx context.Context, s streams, files []string, f func(name string, r *capture.Reader, out io.Writer) error) error {
	out := bufio.NewWriterSize(s.out, 64<<10)
	var failed error
	for _, name := range files {
		failed = errors.Join(failed, readCapture(ctx, s, name, func(name string, r *capture.Reader) error { return f(name, r, out) }))
		if err := out.Flush(); err != nil {
			return errors.Join(failed, fmt.Errorf("standard output: %w", err))
		}
		if ctx.Err() != nil {
			return errors.Join(failed, context.Cause(ctx))
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
	return f(name, capture.NewReader(untilDone{ctx, in}, name))
}

// untilDone reads until its context is done, so that Ctrl-C ends the reading of a large file.
type untilDone struct {
	ctx context.Context
	io.Reader
}

func (u untilDone) Read(p []byte) (int, error) {
	if u.ctx.Err() != nil {
		return 0, context.Cause(u.ctx)
	}
	return u.Reader.Read(p)
}
