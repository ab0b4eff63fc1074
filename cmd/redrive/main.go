// Command redrive records what MySQL clients send through it, re-drives it and compares the runs.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
)

// Exit statuses, the same for every subcommand but synth, which keeps sysbench's.
const (
	exitDone    = 0
	exitFailed  = 1 // failed or incomplete
	exitUsage   = 2 // used wrongly, or refused by a gate
	exitChecked = 3 // a check failed
)

// An exitError is an error that decides the exit status. Without one the status is exitFailed.
type exitError struct {
	status int
	err    error // nil: everything has been said
}

func (e *exitError) Error() string {
	if e.err == nil {
		return fmt.Sprintf("exit status %d", e.status)
	}
	return e.err.Error()
}

func (e *exitError) Unwrap() error { return e.err }

// usagef is an error of someone who used a command wrongly.
func usagef(format string, args ...any) error {
	return &exitError{exitUsage, fmt.Errorf(format, args...)}
}

// streams are a command's standard streams, so that tests can run commands in their own process.
type streams struct {
	in       io.Reader
	out, err io.Writer
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second Ctrl-C kills
	os.Exit(run(ctx, hideSecrets(os.Args[1:]), streams{os.Stdin, os.Stdout, os.Stderr}))
}

// run runs the command line args (without the program's name) and returns the exit status.
func run(ctx context.Context, args []string, s streams) int {
	root := newRoot(s)
	root.SetArgs(args)
	command, err := root.ExecuteContextC(ctx)
	if err == nil {
		return exitDone
	}
	var exit *exitError
	if !errors.As(err, &exit) {
		exit = &exitError{exitFailed, err}
	}
	if exit.err != nil {
		for line := range strings.Lines(exit.err.Error()) { // joined errors have a line each
			fmt.Fprintf(s.err, "%s: %s\n", command.CommandPath(), strings.TrimSuffix(line, "\n"))
		}
	}
	return exit.status
}

func newRoot(s streams) *cobra.Command {
	root := &cobra.Command{
		Use:           "redrive",
		Short:         "Record, re-drive and analyze MySQL traffic, one statement type at a time",
		SilenceErrors: true,
		SilenceUsage:  true,
		RunE: func(c *cobra.Command, args []string) error {
			if len(args) == 0 {
				return c.Help()
			}
			hint := ""
			if near := c.SuggestionsFor(args[0]); len(near) > 0 {
				hint = "; did you mean " + near[0] + "?"
			}
			return usagef("there is no command %q%s; see redrive --help", args[0], hint)
		},
		Args:                       cobra.ArbitraryArgs,
		SuggestionsMinimumDistance: 2,
	}
	root.SetIn(s.in)
	root.SetOut(s.out)
	root.SetErr(s.err)
	root.CompletionOptions.DisableDefaultCmd = true
	root.SetHelpCommand(newHelp())
	root.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		return usagef("%w; see %s --help", err, c.CommandPath())
	})
	root.AddCommand(newAnalyze(s))
	root.AddCommand(newProxy(s))
	root.AddCommand(newReplay(s))
	root.AddCommand(newSynth(s))
	root.AddCommand(newTrace(s))
	root.AddCommand(newVersion(s))
	checkArgs(root)
	return root
}

// newHelp is cobra's help command, but that it refuses to help with what is not there.
func newHelp() *cobra.Command {
	return &cobra.Command{
		Use:   "help [COMMAND]",
		Short: "Print what a command does and takes",
		RunE: func(c *cobra.Command, args []string) error {
			about, rest, err := c.Root().Find(args)
			if err != nil || len(rest) > 0 {
				return usagef("there is no command %q; see redrive --help", strings.Join(args, " "))
			}
			return about.Help()
		},
	}
}

// checkArgs makes wrong arguments of every command below c what wrong flags are: wrong use, not a failure.
func checkArgs(c *cobra.Command) {
	for _, sub := range c.Commands() {
		checkArgs(sub)
	}
	check := c.Args
	if check == nil {
		return
	}
	c.Args = func(c *cobra.Command, args []string) error {
		if err := check(c, args); err != nil {
			return usagef("%w; see %s --help", err, c.CommandPath())
		}
		return nil
	}
}
