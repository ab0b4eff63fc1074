package main

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"redrive/internal/mysqltest"
)

// The first signal drains: an open transaction may end. The second does not wait for it, and the file ends clean all the
// same.
func TestSignals(t *testing.T) {
	server := mysqltest.Shared(t)
	for _, tt := range []struct {
		name string
		args []string
		send []os.Signal // the first of them only when nobody is let in any more, if there is --time
	}{
		{"two signals", nil, []os.Signal{syscall.SIGTERM, syscall.SIGINT}},
		{"its time, then a signal", []string{"--time", "1s"}, []os.Signal{syscall.SIGTERM}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "run.rdt")
			p := startProxy(t, server.Addr, append(tt.args, "--out", file, "--drain-timeout", "1h")...)
			db := connect(t, p.addr, nil)
			tx, err := db.Begin()
			if err != nil {
				t.Fatal(err)
			}
			if len(tt.send) > 1 {
				p.process.Signal(tt.send[0])
			}
			p.drained(t)
			if _, err := tx.Exec("DO 1"); err != nil {
				t.Errorf("within a transaction, while the proxy drains: %v", err)
			}
			p.process.Signal(tt.send[len(tt.send)-1])
			p.await(t, "told a second time to end")
			if err := p.process.Wait(); err != nil {
				t.Errorf("the proxy: %v\n%s", err, p.text())
			}
			if err := tx.Commit(); err == nil {
				t.Error("the transaction could still be committed")
			}
			if got, want := strings.Join(verified(t, file), "; "), "START TRANSACTION; DO 1"; got != want {
				t.Errorf("recorded %q, want %q", got, want)
			}
			if t.Failed() {
				t.Log(p.text())
			}
			if files, sum := p.ledgers(t); files != 1 || sum.Forwarded != sum.Stored || sum.Stored != 2 {
				t.Errorf("%d files, ledger %+v, want 1 with two commands", files, sum)
			}
		})
	}
}

// A transaction that ends in time ends the drain, without an error.
func TestDrain(t *testing.T) {
	server := mysqltest.Shared(t)
	file := filepath.Join(t.TempDir(), "run.rdt")
	p := startProxy(t, server.Addr, "--out", file, "--drain-timeout", "1h")
	idle, busy := connect(t, p.addr, nil), connect(t, p.addr, nil)
	if err := idle.Ping(); err != nil {
		t.Fatal(err)
	}
	tx, err := busy.Begin()
	if err != nil {
		t.Fatal(err)
	}
	p.process.Signal(syscall.SIGTERM)
	p.drained(t)
	if err := tx.Commit(); err != nil {
		t.Errorf("commit while the proxy drains: %v", err)
	}
	if err := p.process.Wait(); err != nil {
		t.Errorf("the proxy: %v\n%s", err, p.text())
	}
	if got, want := strings.Join(verified(t, file), "; "), "START TRANSACTION; COMMIT"; got != want {
		t.Errorf("recorded %q, want %q", got, want)
	}
}

// heldFIFO is a pipe to record into that is open, and that nobody reads from until the test does.
func heldFIFO(t *testing.T) (path string, reader *os.File) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "fifo")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	reader, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { reader.Close() })
	return path, reader
}

// Whoever reads our file may have stopped: then closing it takes for ever, and a third signal kills.
func TestThirdSignal(t *testing.T) {
	server := mysqltest.Shared(t)
	fifo, _ := heldFIFO(t)
	p := startProxy(t, server.Addr, "--out", fifo, "--drain-timeout", "1h")
	db := connect(t, p.addr, nil)
	if _, err := db.Exec("DO LENGTH('" + incompressible(300_000) + "')"); err != nil {
		t.Fatal(err)
	}
	tx, err := db.Begin()
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback()
	p.process.Signal(syscall.SIGTERM)
	p.drained(t)
	p.process.Signal(syscall.SIGTERM)
	p.await(t, `relayed \d+ connections`) // all that is left is the file
	p.process.Signal(syscall.SIGTERM)
	if err := p.process.Wait(); killedBy(err) != syscall.SIGTERM {
		t.Errorf("the proxy ended with %v, want it killed\n%s", err, p.text())
	}
}

// With --on-full block clients wait for the file, but no drain does: when its time is over what finds no room is shed.
func TestDrainWhileBlocked(t *testing.T) {
	server := mysqltest.Shared(t)
	fifo, reader := heldFIFO(t)
	control := filepath.Join(t.TempDir(), "control.sock")
	p := startProxy(t, server.Addr, "--out", fifo, "--control", control, "--on-full", "block", "--memory-limit", "1MiB", "--drain-timeout", "1s")
	db := connect(t, p.addr, nil)
	text := "DO LENGTH('" + incompressible(100_000) + "')"
	ended := make(chan error, 1)
	var did atomic.Int64
	go func() {
		for range 10_000 { // a thousand times what there is room for
			if _, err := db.Exec(text); err != nil {
				ended <- err
				return
			}
			did.Add(1)
		}
		ended <- nil
	}()
	direct := connect(t, server.Addr, nil)
	for before := int64(-1); did.Load() != before; { // until it is held up for as long as another one does 300 past the proxy
		before = did.Load()
		for range 300 {
			if _, err := direct.Exec(text); err != nil {
				t.Fatal(err)
			}
		}
		select {
		case err := <-ended:
			t.Fatalf("a client was not held up by a file that nobody reads: %v", err)
		default:
		}
	}
	if out, err := exec.Command("redrive", "proxy", "record", "status", "--control", control).CombinedOutput(); err != nil || !strings.Contains(string(out), "1 connection open") {
		t.Errorf("record status, while a client waits: %v, %q", err, out)
	}
	p.process.Signal(syscall.SIGTERM)
	p.await(t, `relayed \d+ connections`)
	if err := <-ended; err == nil {
		t.Errorf("the client could do all its statements while the proxy drained:\n%s", p.text())
	}
	go io.Copy(io.Discard, reader)
	if err := p.process.Wait(); err == nil && !strings.Contains(p.text(), " 0 shed") || killedBy(err) != 0 {
		t.Errorf("the proxy: %v\n%s", err, p.text())
	}
	if files, sum := p.ledgers(t); files != 1 || sum.Forwarded != sum.Stored+sum.Shed+sum.Unfinished || sum.Stored == 0 {
		t.Errorf("%d files, ledger %+v", files, sum)
	}
}
