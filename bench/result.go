package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"
)

const mib = 1 << 20

// A shape is a large result: so many rows of so many bytes, each the value of an expression that is cheap for the
// server, so that it is not what is measured.
type shape struct {
	name       string
	rows, size int
	expression string
}

func (s shape) query() string {
	return fmt.Sprintf("SELECT %s FROM %s.seq_1_to_%d", s.expression, schema, s.rows)
}

// shapes are the result that was asked for in rows of 1 MiB, and a quarter of it in rows of 100 bytes.
func (o *options) shapes() []shape {
	const small = 100
	quarter := max(1, o.resultMiB/4)
	return []shape{
		{fmt.Sprintf("%d MiB, rows of 1 MiB", o.resultMiB), o.resultMiB, mib, fmt.Sprintf("SPACE(%d)", mib)},
		{fmt.Sprintf("%d MiB, rows of %d bytes", quarter, small), quarter * mib / small, small, "'" + strings.Repeat("x", small) + "'"},
	}
}

// The figures of a result, as resultColumns has them.
const (
	resultRate = iota
	resultCPU
)

var resultColumns = []column{
	resultRate: {name: "MiB/s", ratio: true, spread: true},
	resultCPU:  {name: "CPU µs per MiB", ratio: true, spread: true},
}

var resultGoals = []goal{{"MiB/s", resultRate, haproxyPath, true, 0.9}}

// result measures how fast one client gets a large result by every way.
func (b *bench) result(ctx context.Context, w io.Writer) error {
	contenders, err := b.startContenders()
	defer stopAll(contenders)
	if err != nil {
		return err
	}
	t := &table{levels: "result", columns: resultColumns, goals: resultGoals}
	for _, s := range b.shapes() {
		rows := t.add(s.name, contenders)
		err := b.inTurn(len(contenders), func(round, i int) error {
			figures, err := fetch(contenders[i], s)
			if err != nil {
				return fmt.Errorf("%s by %s: %w", s.name, contenders[i].path, err)
			}
			rows[i].record(figures...)
			fmt.Fprintf(b.log, "%s, round %d of %d, %s: %.0f MiB/s\n", s.name, round+1, b.rounds, contenders[i].path, figures[resultRate])
			return ctx.Err()
		})
		if err != nil {
			return err
		}
	}
	err = t.takeNotes("", contenders)
	fmt.Fprintf(w, "### Large results\n\nOne client reads it; medians of %d alternating rounds.\n%s\n\n", b.rounds, legend)
	t.write(w)
	return err
}

// fetch reads the result once, by a new session.
func fetch(c *contender, s shape) ([]float64, error) {
	session, err := logIn(c.addr, make([]byte, mib))
	if err != nil {
		return nil, err
	}
	defer session.quit()
	before, err := c.cpu()
	if err != nil {
		return nil, err
	}
	start := time.Now()
	outcome, err := session.query(s.query())
	elapsed := time.Since(start)
	after, cpuErr := c.cpu()
	switch {
	case err != nil || cpuErr != nil:
		return nil, errors.Join(err, cpuErr)
	case outcome.Rows != uint64(s.rows):
		return nil, fmt.Errorf("%d rows came, want %d", outcome.Rows, s.rows)
	}
	size := float64(outcome.ReplyBytes) / mib
	return []float64{size / elapsed.Seconds(), c.perUnit((after-before).Seconds()*1e6, size)}, nil
}
