package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"redrive/internal/mysqltest"
)

// SIGHUP under load: every statement is in exactly one of the files, which all verify, and the ledgers add up.
func TestRotateUnderLoad(t *testing.T) {
	server := mysqltest.Shared(t)
	dir := t.TempDir()
	file := filepath.Join(dir, "run.rdt")
	p := startProxy(t, server.Addr, "--out", file)
	const threads = 4
	var sent [threads]int
	var total atomic.Int64
	var stop atomic.Bool
	var running sync.WaitGroup
	for thread := range threads {
		db := connect(t, p.addr, nil)
		running.Go(func() {
			for ; !stop.Load(); sent[thread]++ {
				if _, err := db.Exec(statement(thread, sent[thread])); err != nil {
					t.Errorf("thread %d: %v", thread, err)
					return
				}
				total.Add(1)
			}
		})
	}
	busy := func(n int) {
		t.Helper()
		until := total.Load() + int64(n)
		p.until(t, "load", func() bool { return t.Failed() || total.Load() >= until })
	}
	busy(200)
	p.process.Signal(syscall.SIGHUP)
	p.rotations(t, 1)
	busy(200)
	moved := filepath.Join(dir, "yesterday.rdt")
	if err := os.Rename(file, moved); err != nil {
		t.Fatal(err)
	}
	p.process.Signal(syscall.SIGHUP)
	p.rotations(t, 2)
	busy(200)
	p.process.Signal(syscall.SIGHUP)
	p.rotations(t, 3)
	busy(200)
	stop.Store(true)
	running.Wait()
	p.process.Signal(syscall.SIGTERM)
	if err := p.process.Wait(); err != nil {
		t.Errorf("the proxy: %v\n%s", err, p.text())
	}

	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var names, got, want []string
	for _, entry := range entries {
		texts := verified(t, filepath.Join(dir, entry.Name()))
		if len(texts) < 100 {
			t.Errorf("%s has %d statements only", entry.Name(), len(texts))
		}
		names, got = append(names, entry.Name()), append(got, texts...)
	}
	if files := []string{"run-000002.rdt", "run-000003.rdt", "run.rdt", "yesterday.rdt"}; !slices.Equal(names, files) {
		t.Errorf("files %q, want %q", names, files)
	}
	for thread, n := range sent {
		for i := range n {
			want = append(want, statement(thread, i))
		}
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("%d statements in the files, want the %d that were sent, each once", len(got), len(want))
	}
	if files, sum := p.ledgers(t); files != 4 || sum.Forwarded != uint64(len(want)) || sum.Stored != sum.Forwarded || sum.Shed+sum.Unfinished != 0 {
		t.Errorf("%d files, ledgers add up to %+v, want 4, and %d commands stored", files, sum, len(want))
	}
}

// statement has a text that no other has.
func statement(thread, i int) string { return fmt.Sprintf("DO %d", thread*1_000_000+i) }

// What is no file on a disk is not rotated, and the recording goes on.
func TestRotationRefused(t *testing.T) {
	server := mysqltest.Shared(t)
	fifo := filepath.Join(t.TempDir(), "fifo")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	reader, err := os.OpenFile(fifo, os.O_RDWR, 0) // holds what is little enough
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	for _, out := range []string{"-", fifo, "/dev/null"} {
		p := startProxy(t, server.Addr, "--out", out)
		db := connect(t, p.addr, nil)
		for range 2 {
			if _, err := db.Exec("DO 1"); err != nil {
				t.Fatal(err)
			}
			p.process.Signal(syscall.SIGHUP)
			p.await(t, "not rotated")
		}
		db.Close()
		p.process.Signal(syscall.SIGTERM)
		if err := p.process.Wait(); err != nil {
			t.Errorf("--out %s: %v\n%s", out, err, p.text())
		}
		if files, sum := p.ledgers(t); files != 1 || sum.Stored < 2 || sum.Stored != sum.Forwarded {
			t.Errorf("--out %s: %d files, ledger %+v, want one with all commands", out, files, sum)
		}
	}
	if info, err := os.Stat("/dev/null"); err != nil || info.Mode().IsRegular() {
		t.Fatalf("/dev/null is %v, %v", info.Mode(), err)
	}
}

func TestNextNames(t *testing.T) {
	for _, tt := range []struct {
		name  string
		there []string
		want  string
	}{
		{"run.rdt", nil, "run.rdt"},
		{"run.rdt", []string{"run.rdt"}, "run-000002.rdt"},
		{"run.rdt", []string{"run.rdt", "run-000002.rdt", "run-000004.rdt"}, "run-000003.rdt"},
		{"run.rdt", []string{"run-000002.rdt"}, "run.rdt"},
		{"v1.2.rdt", []string{"v1.2.rdt"}, "v1.2-000002.rdt"},
		{"run", []string{"run"}, "run-000002"},
		{".run", []string{".run"}, ".run-000002"},
	} {
		dir := t.TempDir()
		for _, name := range tt.there {
			if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		file, err := createNext(filepath.Join(dir, tt.name))
		if err != nil {
			t.Fatal(err)
		}
		file.Close()
		info, err := os.Stat(file.name)
		if filepath.Base(file.name) != tt.want || err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("the next of %s, with %q there: %s, %v, want %s", tt.name, tt.there, file.name, err, tt.want)
		}
	}
	if file, err := createNext(filepath.Join(t.TempDir(), "gone", "run.rdt")); err == nil {
		t.Errorf("made %s in a folder that is not there", file.name)
	}
}
