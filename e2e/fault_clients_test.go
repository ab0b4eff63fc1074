package e2e_test

import (
	"context"
	"encoding/base64"
	"fmt"
	"math/rand/v2"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	sqlclient "redrive/internal/client"
	"redrive/internal/mysqltest"
	"redrive/internal/wire"
)

// account is the administrator's at an address.
func account(addr string) sqlclient.Config {
	return sqlclient.Config{Address: addr, User: mysqltest.User, Password: mysqltest.Password, DialTimeout: time.Minute}
}

// dial logs in, which must succeed.
func dial(t *testing.T, addr string) *sqlclient.Conn {
	t.Helper()
	c, err := sqlclient.Dial(t.Context(), account(addr))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// query runs a statement; the server's refusal is an error too.
func query(c *sqlclient.Conn, text string) error {
	if _, _, err := c.Query(text); err != nil {
		return err
	}
	if e := c.LastError(); e != nil {
		return e
	}
	return nil
}

// mustQuery is query for statements that must succeed.
func mustQuery(t *testing.T, c *sqlclient.Conn, texts ...string) {
	t.Helper()
	for _, text := range texts {
		if err := query(c, text); err != nil {
			t.Fatalf("%.80s: %v", text, err)
		}
	}
}

// quit says QUIT and waits until the other side has closed, as a client does that is not to keep a port in TIME_WAIT.
func quit(conn net.Conn) error {
	if _, err := conn.Write([]byte{1, 0, 0, 0, wire.ComQuit}); err != nil {
		return err
	}
	conn.SetReadDeadline(time.Now().Add(time.Minute))
	if n, _ := conn.Read(make([]byte, 1)); n > 0 {
		return fmt.Errorf("an answer to QUIT")
	}
	return conn.Close()
}

// rawLogin logs in and hands over the bare socket: for those who do what no client should, or look at its end.
func rawLogin(ctx context.Context, addr string) (net.Conn, error) {
	var d net.Dialer
	conn, err := d.DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, err
	}
	config := account(addr)
	login := sqlclient.NewLogin(&config)
	conn.SetDeadline(time.Now().Add(time.Minute))
	buf := make([]byte, 4<<10)
	for !login.Done() {
		n, err := conn.Read(buf)
		if err != nil {
			conn.Close()
			return nil, fmt.Errorf("log in: %w", err)
		}
		answer, err := login.Feed(buf[:n])
		if err == nil {
			_, err = conn.Write(answer)
		}
		if err != nil {
			conn.Close()
			return nil, fmt.Errorf("log in: %w", err)
		}
	}
	return conn, conn.SetDeadline(time.Time{})
}

// mustRawLogin is rawLogin that must succeed; the socket is closed at the test's end.
func mustRawLogin(t *testing.T, addr string) net.Conn {
	t.Helper()
	conn, err := rawLogin(t.Context(), addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn
}

// packet is one command as it goes over the wire.
func packet(text string) []byte {
	b, _ := wire.AppendPacket(nil, 0, append([]byte{wire.ComQuery}, text...))
	return b
}

// A crew is clients that run statements in a closed loop, each on a session of its own.
type crew struct {
	done    atomic.Uint64 // statements answered
	cancel  func()
	members sync.WaitGroup
	failed  atomic.Pointer[error] // the first error
}

// hire lets n clients run what statement gives them, until dismiss.
func hire(t *testing.T, addr string, n int, statement func(r *rand.Rand) string) *crew {
	t.Helper()
	stop := make(chan struct{})
	c := &crew{cancel: sync.OnceFunc(func() { close(stop) })}
	t.Cleanup(c.cancel)
	var ready sync.WaitGroup
	for i := range n {
		ready.Add(1)
		c.members.Go(func() {
			if err := c.work(addr, uint64(i), statement, stop, ready.Done); err != nil {
				c.failed.CompareAndSwap(nil, &err)
			}
		})
	}
	ready.Wait() // logins are no part of what is measured
	return c
}

func (c *crew) work(addr string, seed uint64, statement func(r *rand.Rand) string, stop <-chan struct{}, ready func()) error {
	conn, err := sqlclient.Dial(context.Background(), account(addr))
	ready()
	if err != nil {
		return err
	}
	r := rand.New(rand.NewPCG(1, seed))
	for {
		select {
		case <-stop:
			return conn.Close()
		default:
		}
		if err := query(conn, statement(r)); err != nil {
			conn.Close()
			return err
		}
		c.done.Add(1)
	}
}

// dismiss ends the crew's work, which must have gone without an error, and says how much it did.
func (c *crew) dismiss(t *testing.T) uint64 {
	t.Helper()
	c.cancel()
	c.members.Wait()
	if err := c.failed.Load(); err != nil {
		t.Errorf("a client met an error: %v", *err)
	}
	return c.done.Load()
}

// workFor has a crew work for a while.
func workFor(t *testing.T, d time.Duration, addr string, n int, statement func(r *rand.Rand) string) uint64 {
	t.Helper()
	c := hire(t, addr, n, statement)
	time.Sleep(d)
	return c.dismiss(t)
}

// small is a statement that costs the server nothing.
func small(r *rand.Rand) string { return fmt.Sprintf("DO %d", r.Uint32()) }

// noise is text that does not compress, even where a piece of it comes a second time some MiB later.
var noise = sync.OnceValue(func() string {
	b := make([]byte, 48<<20)
	rand.NewChaCha8([32]byte{1}).Read(b)
	return base64.StdEncoding.EncodeToString(b)
})

// bulky is a statement of 16 KiB of noise.
func bulky(r *rand.Rand) string {
	const size = 16 << 10
	at := r.IntN(len(noise())-size) / size * size
	return "DO '" + noise()[at:at+size] + "'"
}
