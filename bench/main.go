// Command bench takes the figures that README quotes: redrive beside its peers, on one machine, in one run.
//
// Every contender carries the same load, stock sysbench against a private MariaDB, in alternating rounds, so that
// whatever else the machine does meets all of them. What counts are the ratios of the medians.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/pflag"

	"redrive/internal/mysqltest"
)

type options struct {
	redrive   string // the binary
	workload  string
	psMode    string
	threads   []int
	rounds    int
	round     time.Duration
	tables    int
	tableSize int
	minRatio  float64 // of the recording proxy's throughput to HAProxy's
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second Ctrl-C kills
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

// run measures, prints markdown and returns the exit status: 1 for a failure or a target missed, 2 for wrong use.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	o, err := parse(args, stderr)
	if errors.Is(err, pflag.ErrHelp) {
		return 0
	}
	if err != nil {
		fmt.Fprintf(stderr, "bench: %v\n", err)
		return 2
	}
	if err := measure(ctx, o, stdout, stderr); err != nil {
		fmt.Fprintf(stderr, "bench: %v\n", err)
		return 1
	}
	return 0
}

func parse(args []string, stderr io.Writer) (*options, error) {
	o := &options{}
	flags := pflag.NewFlagSet("bench", pflag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.StringVar(&o.redrive, "redrive", "bin/redrive", "binary to measure")
	flags.StringVar(&o.workload, "workload", "oltp_point_select", "sysbench script")
	flags.StringVar(&o.psMode, "db-ps-mode", "disable", "sysbench's: disable for text, auto for prepared statements")
	flags.IntSliceVar(&o.threads, "threads", []int{8}, "numbers of sysbench threads, each measured for itself")
	flags.IntVar(&o.rounds, "rounds", 5, "alternating rounds")
	flags.DurationVar(&o.round, "round", 5*time.Second, "length of a round")
	flags.IntVar(&o.tables, "tables", 1, "tables")
	flags.IntVar(&o.tableSize, "table-size", 10000, "rows of a table")
	flags.Float64Var(&o.minRatio, "min-ratio", 0.8, "fail if recording has less than this of HAProxy's throughput")
	if err := flags.Parse(args); err != nil {
		return nil, err
	}
	return o, o.check(flags.Args())
}

func (o *options) check(rest []string) error {
	switch {
	case len(rest) > 0:
		return fmt.Errorf("unexpected argument %q", rest[0])
	case o.rounds < 1:
		return fmt.Errorf("--rounds %d: want at least 1", o.rounds)
	case o.round < time.Second || o.round%time.Second != 0:
		return fmt.Errorf("--round %v: want whole seconds", o.round)
	}
	for _, n := range o.threads {
		if n < 1 {
			return fmt.Errorf("--threads %d: want at least 1", n)
		}
	}
	return nil
}

func measure(ctx context.Context, o *options, stdout, stderr io.Writer) error {
	server, err := mysqltest.Launch()
	if err != nil {
		return err
	}
	defer server.Stop()
	b := &bench{options: o, server: server, log: stderr}
	if b.dir, err = os.MkdirTemp("", "redrive-bench-"); err != nil {
		return err
	}
	defer os.RemoveAll(b.dir)
	if err := b.prepare(ctx); err != nil {
		return err
	}
	results, err := b.paths(ctx)
	if err != nil {
		return err
	}
	sizes, err := b.captureSizes(ctx)
	if err != nil {
		return err
	}
	writePaths(stdout, o, results)
	writeSizes(stdout, sizes)
	return checkRatio(results, o.minRatio)
}
