package main

import (
	"bytes"
	"context"
	"errors"
	"net"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"redrive/internal/mysqltest"
)

// Every part runs, in the shortest form there is, and has all its figures.
func TestQuickBench(t *testing.T) {
	binary := filepath.Join(t.TempDir(), "redrive")
	if out, err := exec.Command("go", "build", "-o", binary, "redrive/cmd/redrive").CombinedOutput(); err != nil {
		t.Fatalf("build redrive: %v\n%s", err, out)
	}
	var out, progress bytes.Buffer
	args := strings.Fields("--rounds 1 --round 1s --workloads oltp_point_select --threads 2 --tables 1 --table-size 100 " +
		"--result-mib 4 --rate 50 --idle 20 --min-ratio 0.001 --redrive " + binary)
	if status := run(t.Context(), args, &out, &progress); status != 0 {
		t.Fatalf("status %d\n%s", status, &progress)
	}
	for _, want := range []string{
		`\| 2 \| direct (\| [\d.]+ ){7}\| – \| – \|`, // throughput
		`\| 2 \| HAProxy, TCP mode (\| [\d.]+ ){9}\|`,
		`\| 2 \| redrive proxy, relaying (\| [\d.]+ ){9}\|`,
		`\| 2 \| redrive proxy, recording (\| [\d.]+ ){9}\|`,
		`- threads 2: goal (NOT )?met: `,
		`- threads 2, redrive proxy, recording: \d+ commands forwarded = \d+ stored \+ 0 shed \+ 0 unfinished`,
		`\| 4 MiB, rows of 1 MiB \| HAProxy, TCP mode (\| \S+ ){4}\|`,
		`\| 1 MiB, rows of 100 bytes \| redrive proxy, recording (\| \S+ ){4}\|`,
		`\| 50/s \| direct (\| [\d.]+ ){7}\| 0 \| – \| – \|`, // no error among the connects
		`\| 50/s \| redrive proxy, recording (\| [\d.]+ ){7}\| 0 \| \S+ \| \S+ \|`,
		`\| the most \| HAProxy, TCP mode (\| [\d.]+ ){7}\| 0 \| \S+ \| \S+ \|`,
		`\| 20 \| HAProxy, TCP mode \| \d+ \| \S+ \| \S+ \|`, // memory
		`\| 20 \| redrive proxy, recording \| \d+ \| \S+ \| \S+ \|`,
		`\| oltp_point_select \| [1-9]\d* \| [1-9]\d* \| [\d.]+ \|`, // capture
	} {
		if !regexp.MustCompile(want).MatchString(out.String()) {
			t.Errorf("no line like %s in:\n%s", want, &out)
		}
	}
}

// A slow path shows in an open loop: what waits for its turn counts from when it was due.
func TestChurnCountsFromWhenDue(t *testing.T) {
	server := mysqltest.Start(t)
	start := time.Now()
	all := churn{workers: 1, interval: time.Microsecond, length: 200 * time.Microsecond}.run(t.Context(), server.Addr, start)
	elapsed := time.Since(start)
	if all.done != 200 || all.errors != 0 {
		t.Fatalf("%d connects and %d errors (%v), want 200 and none", all.done, all.errors, all.first)
	}
	if sum := all.logins.Sum(); sum <= elapsed { // from their own starts on, logins one by one cannot take longer than all together
		t.Errorf("200 logins due at once, made one by one, took %v in %v: want waiting to count", sum, elapsed)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if none := (churn{workers: 2, length: time.Hour}).run(ctx, server.Addr, time.Now()); none.done != 0 {
		t.Errorf("%d connects once the bench is cancelled", none.done)
	}
}

func TestChurnCountsErrors(t *testing.T) {
	port, err := mysqltest.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	c := &contender{addr: net.JoinHostPort("127.0.0.1", strconv.Itoa(port))}
	_, err = churn{workers: 1, interval: time.Millisecond, length: 5 * time.Millisecond}.once(t.Context(), c)
	if err == nil || !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("connects to a port where nobody listens: %v, want the refusal", err)
	}
}
