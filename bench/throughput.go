package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"redrive/internal/mysqltest"
)

// warmUp is how long a load runs before it is measured.
const warmUp = time.Second

// The figures of a load, as throughputColumns has them.
const (
	loadRate = iota
	loadP50
	loadP95
	loadP99
	loadCPU
)

var throughputColumns = []column{
	loadRate: {name: "statements/s", ratio: true, spread: true},
	loadP50:  {name: "p50 ms", digits: 2},
	loadP95:  {name: "p95 ms", digits: 2, ratio: true},
	loadP99:  {name: "p99 ms", digits: 2, ratio: true, spread: true},
	loadCPU:  {name: "CPU µs per statement", digits: 1, ratio: true, spread: true},
}

var throughputGoals = []goal{
	{"throughput", loadRate, haproxyPath, true, 1},
	{"p99", loadP99, haproxyPath, false, 1},
	{"CPU", loadCPU, haproxyPath, false, 1},
	{"throughput beside relaying", loadRate, relayingPath, true, 0.95},
}

// throughput measures every way to the server under sysbench's load: each script, at each number of threads.
func (b *bench) throughput(ctx context.Context, w io.Writer) error {
	var missed []error
	for _, workload := range b.workloads {
		t := &table{levels: "threads", columns: throughputColumns, goals: throughputGoals}
		for _, threads := range b.threads {
			if err := b.load(ctx, t, workload, threads); err != nil {
				return fmt.Errorf("%s, %d threads: %w", workload, threads, err)
			}
		}
		fmt.Fprintf(w, "### %s\n\nStock sysbench, db-ps-mode %s; medians of %d alternating rounds of %v. Latencies are of an event.\n%s\n\n",
			workload, b.psMode, b.rounds, b.round, legend)
		t.write(w)
		missed = append(missed, checkRatio(workload, t, b.minRatio))
	}
	return errors.Join(missed...)
}

// load adds to t what the contenders do at one number of threads.
func (b *bench) load(ctx context.Context, t *table, workload string, threads int) error {
	contenders, err := b.startContenders()
	defer stopAll(contenders)
	if err != nil {
		return err
	}
	rows := t.add(fmt.Sprint(threads), contenders)
	err = b.inTurn(len(contenders), func(round, i int) error {
		figures, err := b.loadOnce(ctx, contenders[i], workload, threads)
		if err != nil {
			return fmt.Errorf("%s: %w", contenders[i].path, err)
		}
		rows[i].record(figures...)
		fmt.Fprintf(b.log, "%s, %d threads, round %d of %d, %s: %.0f statements/s, p99 %.2f ms, CPU %s µs\n",
			workload, threads, round+1, b.rounds, contenders[i].path, figures[loadRate], figures[loadP99], number(figures[loadCPU], 1))
		return nil
	})
	return errors.Join(err, t.takeNotes(fmt.Sprintf("threads %d, ", threads), contenders))
}

func (b *bench) loadOnce(ctx context.Context, c *contender, workload string, threads int) ([]float64, error) {
	var before, after time.Duration
	var warmErr error
	args := append(b.sysbenchArgs(c.addr, threads), workload, "run")
	report, err := mysqltest.WarmSysbench(ctx, warmUp, b.round, func() { before, warmErr = c.cpu() }, args...)
	if err == nil {
		after, err = c.cpu()
	}
	switch {
	case err != nil || warmErr != nil:
		return nil, errors.Join(err, warmErr)
	case report.Total == 0:
		return nil, fmt.Errorf("sysbench sent no statement:\n%s", report.Output)
	}
	quantile := func(q float64) float64 { return report.Histogram.Quantile(q).Seconds() * 1e3 }
	return []float64{
		loadRate: report.QueryRate,
		loadP50:  quantile(0.50), loadP95: quantile(0.95), loadP99: quantile(0.99),
		loadCPU: c.perUnit((after-before).Seconds()*1e6, float64(report.Total)),
	}, nil
}
