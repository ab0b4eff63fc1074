package main

import (
	"os/exec"
	"path/filepath"
	"regexp"
	"syscall"
	"testing"

	"redrive/internal/mysqltest"
)

// The recording can be started, rotated and stopped by hand, and by SIGHUP in between; status tells of memory and
// connections, too.
func TestProxyRecord(t *testing.T) {
	server := mysqltest.Shared(t)
	dir := t.TempDir()
	control := filepath.Join(dir, "control.sock")
	p := startProxy(t, server.Addr, "--control", control, "--memory-limit", "48MiB")
	first, second := connect(t, p.addr, nil), connect(t, p.addr, nil)
	statement := func(text string) {
		t.Helper()
		if _, err := first.Exec(text); err != nil {
			t.Fatal(err)
		}
	}
	steer := func(want string, args ...string) {
		t.Helper()
		out, err := exec.Command("redrive", append([]string{"proxy", "record", "--control", control}, args...)...).CombinedOutput()
		if err != nil || !regexp.MustCompile("^"+want+"$").Match(out) {
			t.Errorf("record %q: %v, printed\n%swant\n%s", args, err, out, want)
		}
	}
	statement("DO 1")
	if err := second.Ping(); err != nil {
		t.Fatal(err)
	}
	steer("not recording\n0B of 48MiB of memory used; 2 connections open\n", "status")
	p.process.Signal(syscall.SIGHUP) // nothing to rotate
	one, two := filepath.Join(dir, "one.rdt"), filepath.Join(dir, "two.rdt")
	steer("recording into "+one+"\n", "start", "--out", one)
	statement("DO 2")
	second.Close()
	p.until(t, "a connection less", func() bool {
		out, err := exec.Command("redrive", "proxy", "record", "status", "--control", control).Output()
		return err != nil || regexp.MustCompile(`1 connection open\n$`).Match(out)
	})
	steer("recording into "+one+": [12] commands stored, 0 shed\n[0-9.]+([KM]i)?B of 48MiB of memory used; 1 connection open\n", "status")
	p.process.Signal(syscall.SIGHUP)
	p.rotations(t, 1)
	statement("DO 3")
	steer("closed "+filepath.Join(dir, "one-000002.rdt")+": 1 commands forwarded = 1 stored \\+ 0 shed \\+ 0 unfinished\nrecording into "+two+"\n", "rotate", "--out", two)
	statement("DO 4")
	p.process.Signal(syscall.SIGHUP) // the name goes by the last that was given
	p.rotations(t, 2)
	statement("DO 5")
	steer("closed "+filepath.Join(dir, "two-000002.rdt")+": 1 commands forwarded = 1 stored \\+ 0 shed \\+ 0 unfinished\nnot recording\n", "stop")
	statement("DO 6")
	p.process.Signal(syscall.SIGTERM)
	if err := p.process.Wait(); err != nil {
		t.Errorf("the proxy: %v\n%s", err, p.text())
	}
	for file, want := range map[string]string{"one.rdt": "DO 2", "one-000002.rdt": "DO 3", "two.rdt": "DO 4", "two-000002.rdt": "DO 5"} {
		if got := verified(t, filepath.Join(dir, file)); len(got) != 1 || got[0] != want {
			t.Errorf("%s has %q, want %s", file, got, want)
		}
	}
}
