// Command bench takes the figures that README quotes: redrive beside its peers, on one machine, in one run.
//
// Every contender carries the same load against a private MariaDB, in alternating rounds, so that whatever else the
// machine does meets all of them. What counts are ratios, each taken within a round, and their median.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/pflag"
)

type options struct {
	redrive    string   // the binary
	only       []string // parts to measure
	workloads  []string // sysbench scripts
	psMode     string
	threads    []int
	rounds     int
	round      time.Duration
	tables     int
	tableSize  int
	resultMiB  int
	rate       int // connects per second
	idle       int // connections
	goroutines bool
	proxyFlags []string
	minRatio   float64 // of the recording proxy's throughput to HAProxy's
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
	flags.StringSliceVar(&o.only, "only", partNames(), "parts to measure")
	flags.StringSliceVar(&o.workloads, "workloads", []string{"oltp_point_select", "oltp_read_write"}, "sysbench scripts")
	flags.StringVar(&o.psMode, "db-ps-mode", "disable", "sysbench's: disable for text, auto for prepared statements")
	flags.IntSliceVar(&o.threads, "threads", []int{1, 8, 64, 512}, "numbers of sysbench threads, each measured for itself")
	flags.IntVar(&o.rounds, "rounds", 5, "alternating rounds")
	flags.DurationVar(&o.round, "round", 5*time.Second, "length of a round, without a second to warm up")
	flags.IntVar(&o.tables, "tables", 8, "tables")
	flags.IntVar(&o.tableSize, "table-size", 10000, "rows of a table")
	flags.IntVar(&o.resultMiB, "result-mib", 1024, "size of the large result")
	flags.IntVar(&o.rate, "rate", 2000, "connects per second")
	flags.IntVar(&o.idle, "idle", 1000, "connections at rest whose memory is measured")
	flags.BoolVar(&o.goroutines, "goroutines", false, "measure the proxy with --relay goroutines too")
	flags.StringSliceVar(&o.proxyFlags, "proxy-flags", nil, "further flags of all the proxies, such as --loops=1")
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
	case o.round < time.Second || o.round%time.Second != 0:
		return fmt.Errorf("--round %v: want whole seconds", o.round)
	}
	for _, name := range o.only {
		if !slices.Contains(partNames(), name) {
			return fmt.Errorf("--only %s: want some of %s", name, strings.Join(partNames(), ","))
		}
	}
	for flag, n := range map[string]int{
		"rounds": o.rounds, "tables": o.tables, "table-size": o.tableSize, "threads": slices.Min(append(o.threads, 1)),
		"result-mib": o.resultMiB, "rate": o.rate, "idle": o.idle,
	} {
		if n < 1 {
			return fmt.Errorf("--%s %d: want at least 1", flag, n)
		}
	}
	return nil
}
