package e2e_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	sqlclient "redrive/internal/client"
	"redrive/internal/mysqltest"
	"redrive/internal/wire"
)

// errTooMany is what a server says that has no room for another connection.
const errTooMany = 1040

// As many clients as file descriptors allow are let in and served, while being recorded, and cost little each. One more
// is told so by error 1040, and no other notices; when somebody leaves there is room again.
func TestFaultIdleConnections(t *testing.T) {
	eachRelay(t, func(t *testing.T, relay string) {
		files := pick(1200, hardLimit(t)/2) // this process and the server want as many as the proxy at least
		n := (files - 100) / 2
		server := mysqltest.Start(t, fmt.Sprintf("--max-connections=%d", n+1000), fmt.Sprintf("--open-files-limit=%d", n+4000))
		file := filepath.Join(t.TempDir(), "idle.rdt")
		p := launch{lean: true, files: files}.start(t, "--backend", server.Addr, relay, "--out", file)
		m := startMeter(t, server)
		const few = 20 // that have warmed the proxy up before its memory is looked at
		clients := logInMany(t, p.addr, few)
		before := p.measure(t)
		clients = append(clients, logInMany(t, p.addr, n-few)...)
		t.Logf("%d connections, %d files open of %d", n, p.measure(t).files, files)

		refused := untilRefused(t, p.addr, files/2-n+1)
		runEach(t, clients)
		after := p.measure(t)
		each := (after.rss - before.rss) / (n - few)
		t.Logf("%d KiB each", each>>10)
		if each > 32<<10 {
			t.Errorf("a connection at rest takes %d bytes, want 32 KiB at most", each)
		}
		if refused.Errno != errTooMany {
			t.Errorf("one connection too many is refused by %v, want error %d", refused, errTooMany)
		}
		clients[0].Close()
		soon(t, "there is room again when a client has left", func() bool {
			c, err := sqlclient.Dial(t.Context(), account(p.addr))
			if err == nil {
				clients[0] = c
			}
			return err == nil
		})
		runEach(t, clients)
		for _, c := range clients {
			c.Close()
		}
		settleWhole(t, p, m)
	})
}

// hardLimit is how many files a process may open here.
func hardLimit(t *testing.T) int {
	t.Helper()
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		t.Fatal(err)
	}
	return int(min(limit.Max, 40_000)) // there are no more ports for both legs
}

// logInMany logs n clients in, some at a time, all of which must succeed.
func logInMany(t *testing.T, addr string, n int) []*sqlclient.Conn {
	t.Helper()
	clients := make([]*sqlclient.Conn, n)
	inParallel(n, func(i int) {
		var err error
		if clients[i], err = sqlclient.Dial(t.Context(), account(addr)); err != nil {
			t.Errorf("login %d of %d: %v", i+1, n, err)
		}
	})
	if t.Failed() {
		t.FailNow()
	}
	return clients
}

// runEach runs a statement on each connection, all of which must succeed.
func runEach(t *testing.T, clients []*sqlclient.Conn) {
	t.Helper()
	inParallel(len(clients), func(i int) {
		if err := query(clients[i], "DO 1"); err != nil {
			t.Errorf("connection %d: %v", i+1, err)
		}
	})
}

// inParallel calls f for 0 to n-1, sixteen at a time.
func inParallel(n int, f func(i int)) {
	var wg sync.WaitGroup
	for worker := range 16 {
		wg.Go(func() {
			for i := worker; i < n; i += 16 {
				f(i)
			}
		})
	}
	wg.Wait()
}

// untilRefused logs clients in until one is refused, by at most so many, and says by what.
func untilRefused(t *testing.T, addr string, atMost int) *wire.Error {
	t.Helper()
	var extra []*sqlclient.Conn
	defer func() {
		for _, c := range extra {
			c.Close()
		}
	}()
	for range atMost {
		c, err := sqlclient.Dial(t.Context(), account(addr))
		var refusal *wire.Error
		if errors.As(err, &refusal) {
			return refusal
		}
		if err != nil {
			t.Errorf("a connection too many ends with %v", err)
			return &wire.Error{}
		}
		extra = append(extra, c)
	}
	t.Errorf("%d connections beyond what file descriptors allow, and none refused", atMost)
	return &wire.Error{}
}

// Short connections, thousands a second, are all served, and leave nothing behind: neither descriptors nor threads, nor
// ports of the proxy's host in TIME_WAIT, as it is the server that closes first.
func TestFaultConnectionChurn(t *testing.T) {
	const rate = 2000
	duration := pick(4*time.Second, time.Minute)
	server := mysqltest.Shared(t)
	direct := churn(t, server.Addr, rate, pick(time.Second, 10*time.Second))
	eachRelay(t, func(t *testing.T, relay string) {
		file := filepath.Join(t.TempDir(), "churn.rdt")
		p := launch{lean: true}.start(t, "--backend", server.Addr, relay, "--out", file)
		m := startMeter(t, server)
		churn(t, p.addr, rate, time.Second) // warms it up
		before, waitingBefore := p.measure(t), timeWaits(t, server.Port)
		c := churn(t, p.addr, rate, duration)
		if c.connections < 100 || c.errors > 0 || direct.errors > 0 {
			t.Errorf("%d connections, errors with %d through the proxy, with %d directly; first: %v", c.connections, c.errors, direct.errors, c.first)
		}
		soon(t, "connections are gone", func() bool { return p.measure(t).files <= before.files+4 })
		after, waiting := p.measure(t), timeWaits(t, server.Port)
		t.Logf("%.0f connections a second of %d wanted (%.0f directly), %d in all; files %d → %d, threads %d → %d, RSS %d → %d MiB, %d of our ports in TIME_WAIT",
			c.rate(), rate, direct.rate(), c.connections, before.files, after.files, before.threads, after.threads, before.rss>>20, after.rss>>20, waiting-waitingBefore)
		if after.threads > before.threads+8 || after.rss > before.rss+slack {
			t.Errorf("threads %d → %d, RSS %d → %d MiB: something is left behind", before.threads, after.threads, before.rss>>20, after.rss>>20)
		}
		if left := waiting - waitingBefore; left > c.connections/20 {
			t.Errorf("%d of %d connections to the server are in TIME_WAIT at our end: the proxy has closed before the server", left, c.connections)
		}
		settleWhole(t, p, m)
		if got := sessions(t, file); got < c.connections {
			t.Errorf("%d logins recorded, want at least %d", got, c.connections)
		}
	})
}

// A churned is what became of many short connections.
type churned struct {
	connections, errors int
	first               error
	took                time.Duration
}

func (c churned) rate() float64 { return float64(c.connections) / c.took.Seconds() }

// churn connects at a steady rate, whether or not others have ended, as far as 64 clients at once can keep up: each logs
// in, runs a statement and says QUIT.
func churn(t *testing.T, addr string, rate int, duration time.Duration) (c churned) {
	t.Helper()
	start := time.Now()
	due := make(chan struct{})
	results := make(chan error)
	var workers sync.WaitGroup
	for range 64 {
		workers.Go(func() {
			for range due {
				results <- visit(t.Context(), addr)
			}
		})
	}
	go func() {
		defer close(results)
		defer workers.Wait()
		defer close(due)
		for n := 0; time.Since(start) < duration; n++ {
			time.Sleep(time.Until(start.Add(time.Duration(n) * time.Second / time.Duration(rate))))
			due <- struct{}{}
		}
	}()
	for err := range results {
		c.connections++
		if err != nil {
			c.errors++
			c.first = cmp.Or(c.first, err)
		}
	}
	c.took = time.Since(start)
	return c
}

// visit logs in, runs a statement and quits.
func visit(ctx context.Context, addr string) error {
	conn, err := rawLogin(ctx, addr)
	if err != nil {
		return err
	}
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(time.Minute))
	if _, err := conn.Write(packet("DO 1")); err != nil {
		return err
	}
	var ok [wire.HeaderLen + 1]byte
	rest := make([]byte, 1<<10)
	n, err := conn.Read(rest) // a short packet in one piece
	if err != nil {
		return err
	}
	if copy(ok[:], rest[:n]); n < len(ok) || ok[wire.HeaderLen] != 0 {
		return fmt.Errorf("an answer of %x to DO 1", rest[:n])
	}
	return quit(conn)
}

// timeWaits counts connections to a port of this machine whose clients hold their own port in TIME_WAIT.
func timeWaits(t *testing.T, port int) int {
	t.Helper()
	table, err := os.ReadFile("/proc/net/tcp")
	if err != nil {
		t.Fatal(err)
	}
	remote := fmt.Sprintf("0100007F:%04X", port)
	n := 0
	for line := range strings.Lines(string(table)) {
		if f := strings.Fields(line); len(f) > 3 && f[2] == remote && f[3] == "06" {
			n++
		}
	}
	return n
}

// hangUp closes a socket so that the other side meets a reset.
func hangUp(conn net.Conn) {
	conn.(*net.TCPConn).SetLinger(0)
	conn.Close()
}
