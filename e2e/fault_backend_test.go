package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	sqlclient "redrive/internal/client"
	"redrive/internal/mysqltest"
	"redrive/internal/wire"
)

// When a server is killed and comes back, clients of the proxy meet errors only while there is no server; who comes in
// between is told why, and a login works as soon as one past the proxy does.
func TestFaultBackendRestart(t *testing.T) {
	eachRelay(t, func(t *testing.T, relay string) {
		server := newBackend(t)
		file := filepath.Join(t.TempDir(), "restart.rdt")
		p := startProxy(t, "--backend", server.Addr, relay, "--out", file)
		var answered, sent uint64
		for range pick(1, 5) {
			a, s := restartUnderLoad(t, server, p.addr)
			answered, sent = answered+a, sent+s
		}
		printed := p.stop(t)
		noCrash(t, printed)
		l := readLedger(t, printed)
		compareFile(t, file, l)
		if l.Shed != 0 {
			t.Errorf("%d commands shed", l.Shed)
		}
		if l.Forwarded < answered || l.Forwarded > sent {
			t.Errorf("%d commands forwarded, %d answered, %d sent by clients", l.Forwarded, answered, sent)
		}
	})
}

func restartUnderLoad(t *testing.T, server *backend, addr string) (answered, sent uint64) {
	t.Helper()
	w := &witness{addr: addr, stop: make(chan struct{})}
	var watching sync.WaitGroup
	for range 4 {
		watching.Go(w.watch)
	}
	end := sync.OnceFunc(func() {
		close(w.stop)
		watching.Wait()
	})
	defer end()
	soon(t, "clients work", func() bool { return w.answered.Load() > 200 })

	killed := time.Now()
	server.process.Kill()
	soon(t, "a client is told that there is no server", func() bool { return w.told.Load() > 0 })
	server.start(t)
	soon(t, "a login past the proxy works", func() bool { return visit(t.Context(), server.Addr) == nil })
	back := time.Now()
	if err := visit(t.Context(), addr); err != nil {
		t.Errorf("a login past the proxy works, and one through it does not: %v", err)
	}
	resumed := w.answered.Load()
	soon(t, "clients work again", func() bool { return w.answered.Load() > resumed+200 })
	end()
	for _, e := range w.errors {
		if e.ended.Before(killed) || e.began.After(back) {
			t.Errorf("an error at a time when there was a server: %v", e.err)
		}
		var told *wire.Error
		if errors.As(e.err, &told) && e.dialing && (told.Errno != 1105 || !strings.Contains(told.Message, server.Addr)) {
			t.Errorf("a client is refused by %v, want error 1105 that names %s", told, server.Addr)
		}
	}
	t.Logf("%d statements, %d errors in the %s without a server, %d clients told why",
		w.answered.Load(), len(w.errors), back.Sub(killed).Round(time.Millisecond), w.told.Load())
	return w.answered.Load() + 2, w.sent.Load() + 2 // with those of visit
}

// A witness is clients that log in, run statements until they meet an error, and log in again.
type witness struct {
	addr     string
	stop     chan struct{}
	sent     atomic.Uint64 // commands, QUITs among them
	answered atomic.Uint64
	told     atomic.Uint64 // logins refused by an error that says why

	mu     sync.Mutex
	errors []met
}

// A met error, and during what.
type met struct {
	began, ended time.Time // of the whole try: where the session was there before, of the statement
	dialing      bool
	err          error
}

func (w *witness) watch() {
	for {
		began := time.Now()
		c, err := sqlclient.Dial(context.Background(), account(w.addr))
		if err != nil {
			w.note(met{began, time.Now(), true, err})
			select {
			case <-w.stop:
				return
			case <-time.After(10 * time.Millisecond):
			}
			continue
		}
		if w.work(c) {
			return
		}
	}
}

// work runs statements until an error, or until it is to stop.
func (w *witness) work(c *sqlclient.Conn) (stopped bool) {
	defer c.Close()
	w.sent.Add(1) // the QUIT
	for {
		select {
		case <-w.stop:
			return true
		default:
		}
		began := time.Now()
		w.sent.Add(1)
		if err := query(c, "DO 1"); err != nil {
			w.note(met{began, time.Now(), false, err})
			return false
		}
		w.answered.Add(1)
	}
}

func (w *witness) note(m met) {
	var refusal *wire.Error
	if m.dialing && errors.As(m.err, &refusal) {
		w.told.Add(1)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.errors = append(w.errors, m)
}

// A backend is a server that can be killed and started again.
type backend struct {
	*mysqltest.Server
	process *mysqltest.Process // the one that runs
	args    []string           // its command line
}

func newBackend(t *testing.T) *backend {
	t.Helper()
	b := &backend{Server: mysqltest.Start(t)}
	b.process = b.Server.Process()
	line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", b.process.Pid()))
	if err != nil {
		t.Fatal(err)
	}
	b.args = strings.Split(strings.TrimSuffix(string(line), "\x00"), "\x00")
	return b
}

// start starts the server again, as it was, and does not wait until it is ready.
func (b *backend) start(t *testing.T) {
	t.Helper()
	var err error
	if b.process, err = mysqltest.Spawn(exec.Command(b.args[0], b.args[1:]...)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.process.Kill)
}
