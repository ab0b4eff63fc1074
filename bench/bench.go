package main

import (
	"context"
	"fmt"
	"io"

	"redrive/internal/mysqltest"
)

const schema = "sbtest"

// A bench is one run's server, folder and settings.
type bench struct {
	*options
	server     *mysqltest.Server
	dir        string
	log        io.Writer // progress
	recordings int       // captures of the paths so far
}

func (b *bench) prepare(ctx context.Context) error {
	if _, err := b.server.DB().ExecContext(ctx, "CREATE DATABASE "+schema); err != nil {
		return err
	}
	_, err := b.sysbench(ctx, b.server.Addr, b.workload, 1, "prepare")
	return err
}

// sysbench runs a script with the run's tables against addr.
func (b *bench) sysbench(ctx context.Context, addr, script string, threads int, words ...string) (mysqltest.Report, error) {
	args := append(mysqltest.SysbenchArgs(addr, schema),
		fmt.Sprintf("--tables=%d", b.tables), fmt.Sprintf("--table-size=%d", b.tableSize),
		fmt.Sprintf("--threads=%d", threads), "--percentile=95", script)
	return mysqltest.Sysbench(ctx, append(args, words...)...)
}

// A sample is what one contender did in one round.
type sample struct {
	qps float64 // statements per second
	p95 float64 // of an event's latency, in milliseconds
	cpu float64 // the middle process's own, in microseconds per statement
}

// A result is one contender's samples at one number of threads.
type result struct {
	path    string
	threads int
	samples []sample
	note    string // what the process said of itself at its end
}

// paths measures every way to the server, at every number of threads.
func (b *bench) paths(ctx context.Context) ([]result, error) {
	var results []result
	for _, threads := range b.threads {
		some, err := b.pathsAt(ctx, threads)
		if err != nil {
			return nil, err
		}
		results = append(results, some...)
	}
	return results, nil
}

// pathsAt runs the contenders in turn, round by round. All of them are up all the time; the idle ones wait.
func (b *bench) pathsAt(ctx context.Context, threads int) (results []result, err error) {
	contenders, err := b.startContenders()
	defer stopAll(contenders)
	if err != nil {
		return nil, err
	}
	for _, c := range contenders {
		results = append(results, result{path: c.path, threads: threads})
	}
	for round := range b.rounds {
		for i, c := range contenders {
			s, err := b.sample(ctx, c, threads)
			if err != nil {
				return nil, fmt.Errorf("%s, %d threads: %w", c.path, threads, err)
			}
			results[i].samples = append(results[i].samples, s)
			fmt.Fprintf(b.log, "%d threads, round %d of %d, %s: %.0f statements/s\n", threads, round+1, b.rounds, c.path, s.qps)
		}
	}
	for i, c := range contenders {
		if results[i].note, err = c.stop(); err != nil {
			return nil, err
		}
	}
	return results, nil
}

func (b *bench) sample(ctx context.Context, c *contender, threads int) (sample, error) {
	before, err := c.cpu()
	if err != nil {
		return sample{}, err
	}
	report, err := b.sysbench(ctx, c.addr, b.workload, threads, b.runWords()...)
	if err != nil {
		return sample{}, err
	}
	after, err := c.cpu()
	if err != nil {
		return sample{}, err
	}
	if report.Total == 0 {
		return sample{}, fmt.Errorf("sysbench sent no statement:\n%s", report.Output)
	}
	return sample{
		qps: float64(report.Total) / report.TotalTime.Seconds(),
		p95: report.Percentile.Seconds() * 1e3,
		cpu: (after - before).Seconds() * 1e6 / float64(report.Total),
	}, nil
}

func (b *bench) runWords() []string {
	return []string{fmt.Sprintf("--time=%d", int(b.round.Seconds())), "--db-ps-mode=" + b.psMode, "run"}
}
