package main

import (
	"context"
	"fmt"
	"io"
	"time"
)

// settling is what processes get to give back memory they no longer need before their size is read.
const settling = 2 * time.Second

// The figures of connections at rest, as idleColumns has them.
const (
	idleNone = iota
	idleEach
)

var idleColumns = []column{
	idleNone: {name: "KiB without any"},
	idleEach: {name: "KiB per connection", digits: 1, ratio: true, spread: true},
}

var idleGoals = []goal{{"KiB per connection", idleEach, "", false, 32}}

// idleMemory measures what a connection at rest takes of the memory of the process in the middle.
func (b *bench) idleMemory(ctx context.Context, w io.Writer) error {
	t := &table{levels: "connections", columns: idleColumns, goals: idleGoals}
	for round := range b.rounds {
		if err := b.idleRound(ctx, t, round); err != nil {
			return fmt.Errorf("idle connections: %w", err)
		}
	}
	fmt.Fprintf(w, "### Memory of idle connections\n\nResident memory of the process in the middle with connections that have run one small statement "+
		"each, less that without; medians of %d rounds, each with new processes. What the kernel keeps for sockets is not in it.\n%s\n\n", b.rounds, legend)
	t.write(w)
	return nil
}

// idleRound measures all contenders once. They are started anew: processes keep what they once had.
func (b *bench) idleRound(ctx context.Context, t *table, round int) error {
	contenders, err := b.startContenders()
	defer stopAll(contenders)
	if err != nil {
		return err
	}
	contenders = contenders[1:] // the direct way has nothing to measure
	if round == 0 {
		t.add(fmt.Sprint(b.idle), contenders)
	}
	before := make([]int64, len(contenders))
	for i, c := range contenders {
		if before[i], err = c.sizeUnused(); err != nil {
			return fmt.Errorf("%s: %w", c.path, err)
		}
		for range b.idle {
			s, err := c.used()
			if err != nil {
				return fmt.Errorf("%s: %w", c.path, err)
			}
			defer s.conn.Close()
		}
	}
	select {
	case <-time.After(settling):
	case <-ctx.Done():
		return ctx.Err()
	}
	for i, c := range contenders {
		after, err := c.resident()
		if err != nil {
			return fmt.Errorf("%s: %w", c.path, err)
		}
		each := float64(after-before[i]) / 1024 / float64(b.idle)
		t.rows[i].record(float64(before[i])/1024, each)
		fmt.Fprintf(b.log, "idle, round %d of %d, %s: %.1f KiB per connection\n", round+1, b.rounds, c.path, each)
	}
	return nil
}

// used is a session that has run a statement.
func (c *contender) used() (*session, error) {
	s, err := logIn(c.addr, make([]byte, connectBuffer))
	if err != nil {
		return nil, err
	}
	if _, err := s.query(smallQuery); err != nil {
		s.conn.Close()
		return nil, err
	}
	return s, nil
}

// sizeUnused is the process's size without connections, but after a first one: what that alone needs is nobody's.
func (c *contender) sizeUnused() (int64, error) {
	s, err := c.used()
	if err != nil {
		return 0, err
	}
	if err := s.quit(); err != nil {
		return 0, err
	}
	return c.resident()
}
