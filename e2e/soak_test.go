package e2e_test

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"redrive/internal/mysqltest"
)

// A proxy under mixed load for long takes no more of the machine in the end than near the beginning: sysbench with text and
// with prepared statements, clients that come and go, clients that are killed in the midst of a result, large results, and
// files that are rotated meanwhile. No client meets an error, every file is whole, and the account is right.
func TestSoak(t *testing.T) {
	length := pick(20*time.Second, 10*time.Minute)
	server := mysqltest.Shared(t)
	o := prepareOLTP(t, server)
	dir := t.TempDir()
	control := filepath.Join(dir, "control.sock")
	files := []string{filepath.Join(dir, "soak-1.rdt")}
	p := launch{lean: true}.start(t, "--backend", server.Addr, "--out", files[0], "--control", control)
	m := startMeter(t, server)

	s := &soak{t: t, addr: p.addr, schema: o.schema}
	until, stop := context.WithTimeout(t.Context(), length)
	defer stop()
	for _, work := range []func() error{s.sysbench("disable"), s.sysbench("auto"), s.visit, s.visit, s.killed, s.large} {
		s.workers.Go(func() { s.repeat(until, work) })
	}
	var samples []usage
	tick := time.NewTicker(length / 100)
	defer tick.Stop()
	for n := 1; until.Err() == nil; n++ {
		select {
		case <-tick.C:
			samples = append(samples, p.measure(t))
		case <-until.Done():
		}
		if n%10 == 0 && until.Err() == nil {
			files = append(files, filepath.Join(dir, fmt.Sprintf("soak-%d.rdt", len(files)+1)))
			mustRedrive(t, "proxy", "record", "rotate", "--control", control, "--out", files[len(files)-1])
		}
	}
	s.workers.Wait()
	l := settleWhole(t, p, m)
	var stored uint64
	for _, file := range files {
		stored += countFile(t, file).statements
		verify(t, file)
	}
	if stored != l.Stored {
		t.Errorf("%d files hold %d statements, the ledgers say %d", len(files), stored, l.Stored)
	}
	t.Logf("%d commands in %d files; %d runs of sysbench, %d visits, %d clients killed, %d large results", stored, len(files), s.runs.Load(), s.visits.Load(), s.kills.Load(), s.results.Load())
	for name, n := range map[string]*atomic.Int64{"runs of sysbench": &s.runs, "visits": &s.visits, "clients killed": &s.kills, "large results": &s.results} {
		if n.Load() == 0 {
			t.Errorf("no %s: the load was not mixed", name)
		}
	}
	compareFifths(t, samples)
}

// compareFifths asks that what the proxy takes is the same in the second fifth and in the last.
func compareFifths(t *testing.T, samples []usage) {
	t.Helper()
	fifth := len(samples) / 5
	if fifth < 5 {
		t.Fatalf("%d samples are too few", len(samples))
	}
	early, late := samples[fifth:2*fifth], samples[len(samples)-fifth:]
	for _, c := range []struct {
		what  string
		of    func(usage) int
		spare int // what comes and goes with the load
	}{
		{"bytes resident", func(u usage) int { return u.rss }, 24 << 20},
		{"files open", func(u usage) int { return u.files }, 8},
		{"threads", func(u usage) int { return u.threads }, 4},
	} {
		before, after := median(early, c.of), median(late, c.of)
		t.Logf("%s: %d in the second fifth, %d in the last", c.what, before, after)
		if after > before+c.spare {
			t.Errorf("%s: %d in the second fifth, %d in the last", c.what, before, after)
		}
	}
}

func median(samples []usage, of func(usage) int) int {
	values := make([]int, len(samples))
	for i, u := range samples {
		values[i] = of(u)
	}
	slices.Sort(values)
	return values[len(values)/2]
}

// A soak is the load of TestSoak, with counts of what was done.
type soak struct {
	t            *testing.T
	addr, schema string
	workers      sync.WaitGroup

	runs, visits, kills, results atomic.Int64
}

// repeat does the same work again and again. The first error is the last: one is too many.
func (s *soak) repeat(until context.Context, work func() error) {
	for until.Err() == nil {
		if err := work(); err != nil {
			s.t.Errorf("a client met an error: %v", err)
			return
		}
	}
}

func (s *soak) sysbench(mode string) func() error {
	args := append(mysqltest.SysbenchArgs(s.addr, s.schema), oltpOptions...)
	args = append(args, "--threads=2", "--time=3", "--db-ps-mode="+mode, "oltp_read_write", "run")
	return func() error {
		report, err := mysqltest.Sysbench(s.t.Context(), args...)
		if err == nil && report.Reconnects > 0 {
			err = fmt.Errorf("sysbench had to reconnect %d times", report.Reconnects)
		}
		s.runs.Add(1)
		return err
	}
}

func (s *soak) visit() error {
	s.visits.Add(1)
	time.Sleep(rand.N(10 * time.Millisecond))
	return visit(s.t.Context(), s.addr)
}

// killed has a client vanish, logged in or within a result, whose first bytes prove that the server has the command.
func (s *soak) killed() error {
	conn, err := rawLogin(s.t.Context(), s.addr)
	if err != nil {
		return err
	}
	defer hangUp(conn)
	s.kills.Add(1)
	time.Sleep(rand.N(50 * time.Millisecond))
	if rand.IntN(3) == 0 {
		return nil
	}
	if _, err := conn.Write(packet("SELECT REPEAT('x', 8000000)")); err != nil {
		return err
	}
	_, err = io.CopyN(io.Discard, conn, rand.Int64N(4_000_000)+100)
	return err
}

// large reads a result of some MiB, slowly every now and then.
func (s *soak) large() error {
	const rows = 32
	resume := make(chan struct{})
	time.AfterFunc(rand.N(500*time.Millisecond), func() { close(resume) })
	got, err := readSlowly(s.t, s.addr, rows, func() {}, resume)
	if err == nil && got != largeHash() {
		err = fmt.Errorf("a result of hash %s, want %s", got, largeHash())
	}
	s.results.Add(1)
	return err
}

var largeHash = sync.OnceValue(func() string { return resultHash(32) })
