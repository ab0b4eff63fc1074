package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"redrive/internal/mysqltest"
)

const schema = "sbtest"

// A part is what can be measured for itself. It prints its tables as soon as it has them.
type part struct {
	name    string
	measure func(*bench, context.Context, io.Writer) error
}

func parts() []part {
	return []part{
		{"throughput", (*bench).throughput},
		{"result", (*bench).result},
		{"connects", (*bench).connects},
		{"idle", (*bench).idleMemory},
		{"size", (*bench).size},
	}
}

func partNames() (names []string) {
	for _, p := range parts() {
		names = append(names, p.name)
	}
	return names
}

// A bench is one run's server, folder and settings.
type bench struct {
	*options
	server     *mysqltest.Server
	dir        string
	log        io.Writer // progress
	recordings int       // capture files so far
}

// measure runs the parts that were asked for. What goes wrong in one, or misses a target, does not keep the others
// from being measured.
func measure(ctx context.Context, o *options, stdout, stderr io.Writer) error {
	server, err := mysqltest.Launch("--thread-cache-size=1024", "--innodb-buffer-pool-size=512M")
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
	var errs []error
	for _, p := range parts() {
		if slices.Contains(o.only, p.name) && ctx.Err() == nil {
			errs = append(errs, p.measure(b, ctx, stdout))
		}
	}
	return errors.Join(append(errs, ctx.Err())...)
}

// prepare makes the tables, which all OLTP scripts share.
func (b *bench) prepare(ctx context.Context) error {
	if _, err := b.server.DB().ExecContext(ctx, "CREATE DATABASE "+schema); err != nil {
		return err
	}
	_, err := mysqltest.Sysbench(ctx, append(b.sysbenchArgs(b.server.Addr, 1), "oltp_read_write", "prepare")...)
	return err
}

// sysbenchArgs has rows drawn evenly: where most sessions want the same few, their locks are what is measured.
func (b *bench) sysbenchArgs(addr string, threads int) []string {
	return append(mysqltest.SysbenchArgs(addr, schema),
		fmt.Sprintf("--tables=%d", b.tables), fmt.Sprintf("--table-size=%d", b.tableSize), "--rand-type=uniform",
		fmt.Sprintf("--threads=%d", threads), "--db-ps-mode="+b.psMode)
}

// inTurn calls do for each of n contenders in every round, every second time the other way round: a drift of the
// machine within a round then helps and hurts all alike.
func (b *bench) inTurn(n int, do func(round, i int) error) error {
	for round := range b.rounds {
		for i := range n {
			if round%2 == 1 {
				i = n - 1 - i
			}
			if err := do(round, i); err != nil {
				return err
			}
		}
	}
	return nil
}
