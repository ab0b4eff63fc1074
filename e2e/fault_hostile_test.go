package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"redrive/internal/mysqltest"
	"redrive/internal/wire"
	"redrive/proxy"
)

// loginTimeout is short, for the sake of the test.
const loginTimeout = time.Second

// What clients do that are none, each on a connection of its own.
var hostiles = []struct {
	name string
	do   func(conn net.Conn) error
}{
	{"says nothing", outwait},
	{"sends half an answer", saying([]byte{200, 0, 0, 1, 0x85, 0xA6, 0xFF, 0x01}, outwait)},
	{"asks for a web page", saying([]byte("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"), hearOut)},
	{"begins TLS unasked", saying([]byte("\x16\x03\x01\x02\x00\x01\x00\x01\xFC\x03\x03"+strings.Repeat("x", 510)), hearOut)},
	{"talks noise", func(conn net.Conn) error {
		noise := make([]byte, 2000)
		r := rand.NewChaCha8([32]byte{byte(conn.LocalAddr().(*net.TCPAddr).Port)})
		r.Read(noise)
		return saying(noise, hearOut)(conn)
	}},
	{"sends too long an answer", tooLong},
	{"leaves", func(conn net.Conn) error { return conn.Close() }},
	{"leaves at once", func(conn net.Conn) error { hangUp(conn); return nil }},
	{"leaves when greeted", func(conn net.Conn) error {
		if _, err := conn.Read(make([]byte, 1000)); err != nil {
			return err
		}
		hangUp(conn)
		return nil
	}},
}

// Clients that talk something else, stall, leave without a word or never stop cost themselves, and nobody else.
func TestFaultHostileClients(t *testing.T) {
	server := mysqltest.Shared(t)
	eachRelay(t, func(t *testing.T, relay string) {
		file := filepath.Join(t.TempDir(), "hostile.rdt")
		p := startProxy(t, "--backend", server.Addr, relay, "--out", file, "--login-timeout", loginTimeout.String(), "--max-login-packet", "65536")
		m := startMeter(t, server)
		others := hire(t, p.addr, 2, small)
		var acting sync.WaitGroup
		for range pick(8, 100) {
			for _, h := range hostiles {
				acting.Go(func() {
					conn, err := net.Dial("tcp", p.addr)
					if err == nil {
						defer conn.Close()
						conn.SetDeadline(time.Now().Add(time.Minute))
						err = h.do(conn)
					}
					if err != nil {
						t.Errorf("a client that %s: %v", h.name, err)
					}
				})
			}
		}
		acting.Wait()
		if err := visit(t.Context(), p.addr); err != nil {
			t.Errorf("a client that comes afterwards: %v", err)
		}
		if others.dismiss(t) == 0 {
			t.Error("nobody else was served")
		}
		compareFile(t, file, settleWhole(t, p, m))
	})
}

// saying is what sends something first.
func saying(what []byte, then func(net.Conn) error) func(net.Conn) error {
	return func(conn net.Conn) error {
		if _, err := conn.Write(what); err != nil {
			return err
		}
		return then(conn)
	}
}

// hearOut reads until the other side ends the connection.
func hearOut(conn net.Conn) error {
	_, err := io.Copy(io.Discard, conn)
	var late net.Error
	if errors.As(err, &late) && late.Timeout() {
		return errors.New("nobody ends the connection")
	}
	return nil // a reset is an end as well
}

// outwait is hearOut for those who keep the proxy waiting: it ends the connection when they have had their time.
func outwait(conn net.Conn) error {
	began := time.Now()
	if err := hearOut(conn); err != nil {
		return err
	}
	if waited := time.Since(began); waited < loginTimeout*9/10 {
		return fmt.Errorf("the connection is ended after %s, want %s", waited, loginTimeout)
	}
	return nil
}

// tooLong answers the greeting with a packet of a MiB, and wants to be told.
func tooLong(conn net.Conn) error {
	var greeting [1000]byte
	if _, err := conn.Read(greeting[:]); err != nil {
		return err
	}
	answer, _ := wire.AppendPacket(nil, 1, make([]byte, 1<<20))
	go conn.Write(answer) // it may not be read to its end
	b := make([]byte, 1000)
	n, err := io.ReadAtLeast(conn, b, wire.HeaderLen+3)
	if err != nil {
		return fmt.Errorf("not told that the packet is too long: %w", err)
	}
	if e := wire.ParseError(b[wire.HeaderLen:n]); e.Errno != 1153 {
		return fmt.Errorf("told %v, want error 1153", e)
	}
	return hearOut(conn)
}

// A client that sends commands without end and reads no answers is held back, rather than kept in memory; when it reads it
// gets them all. Others are served meanwhile.
func TestFaultFlood(t *testing.T) {
	server := mysqltest.Shared(t)
	n := pick(300_000, 3_000_000)
	eachRelay(t, func(t *testing.T, relay string) {
		p := launch{lean: true}.start(t, "--backend", server.Addr, relay, "--out", filepath.Join(t.TempDir(), "flood.rdt"))
		warm := workFor(t, 500*time.Millisecond, p.addr, 2, small)
		before := p.measure(t).peak
		conn := mustRawLogin(t, p.addr)
		command := packet("DO 1")
		go func() {
			many := []byte(strings.Repeat(string(command), 1000))
			for range n / 1000 {
				if _, err := conn.Write(many); err != nil {
					return // its answers will be missed
				}
			}
		}()
		beside := workFor(t, time.Second, p.addr, 2, small)
		if beside == 0 {
			t.Error("nobody else is served")
		}
		conn.SetReadDeadline(time.Now().Add(5 * time.Minute))
		if got, err := countPackets(conn, n); err != nil {
			t.Errorf("%d answers to %d commands: %v", got, n, err)
		}
		after := p.measure(t).peak
		noCrash(t, p.stop(t))
		t.Logf("%d statements before, %d beside; at most %d MiB resident before, %d MiB after", warm, beside, before>>20, after>>20)
		if after > before+slack {
			t.Errorf("at most %d MiB resident before, %d MiB after: what was sent is kept", before>>20, after>>20)
		}
	})
}

// countPackets reads packets until there are n.
func countPackets(from io.Reader, n int) (got int, err error) {
	var split wire.Splitter
	buf := make([]byte, 64<<10)
	for got < n {
		k, err := from.Read(buf)
		for rest := buf[:k]; ; {
			var p wire.Piece
			var ok bool
			if p, rest, ok = split.Next(rest); !ok {
				break
			}
			if p.Tail {
				got++
			}
		}
		if err != nil {
			return got, err
		}
	}
	return got, nil
}

// Sessions that do nothing are closed after --idle-timeout, in good order, unless they are within a transaction.
func TestFaultIdleTimeout(t *testing.T) {
	const timeout = time.Second
	server := mysqltest.Shared(t)
	eachRelay(t, func(t *testing.T, relay string) {
		file := filepath.Join(t.TempDir(), "idle.rdt")
		p := startProxy(t, "--backend", server.Addr, relay, "--out", file, "--idle-timeout", timeout.String())
		m := startMeter(t, server)
		open := dial(t, p.addr)
		mustQuery(t, open, "BEGIN")
		for range 2 { // so the transaction rests for twice the time
			began := time.Now()
			idle := mustRawLogin(t, p.addr)
			n, err := idle.Read(make([]byte, 1))
			if waited := time.Since(began); n != 0 || !errors.Is(err, io.EOF) || waited < timeout*9/10 {
				t.Errorf("the end of an idle session after %s: %d bytes, %v, want EOF after %s", waited, n, err, timeout)
			}
		}
		mustQuery(t, open, "DO SLEEP(2)", "COMMIT") // an answer may take longer, too
		soon(t, "the session ends when its transaction has", func() bool {
			time.Sleep(timeout) // asking would keep it busy
			return query(open, "DO 1") != nil
		})
		printed := p.stop(t)
		noCrash(t, printed)
		l := readLedger(t, printed)
		m.compareParted(t, l, 3)
		compareFile(t, file, l)
	})
}

// Health checks that connect and leave do not get the proxy's host blocked at a server that counts them (error 1129), as
// they do without a proxy.
func TestFaultHealthChecks(t *testing.T) {
	server := mysqltest.Start(t, "--skip-name-resolve=OFF", "--max-connect-errors=5") // names are resolved only for the count's sake
	from := func(ip string) *net.Dialer { return &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(ip)}} }
	const blocked = 1129
	direct := from("127.0.0.3") // 127.0.0.1 is not counted
	for range 50 {
		probe(t, direct, server.Addr)
	}
	if e := greetingError(t, direct, server.Addr); e == nil || e.Errno != blocked {
		t.Fatalf("after probes past the proxy a login from their host meets %v, want error %d: the test does not bite", e, blocked)
	}
	for _, portable := range []bool{false, true} {
		t.Run(fmt.Sprintf("portable=%t", portable), func(t *testing.T) {
			own := from("127.0.0.4")
			p := &proxy.Proxy{
				Backend: server.Addr, Portable: portable,
				Dial: func(ctx context.Context) (net.Conn, error) { return own.DialContext(ctx, "tcp", server.Addr) },
			}
			addr := serve(t, p)
			for range pick(50, 1000) {
				probe(t, &net.Dialer{}, addr)
			}
			if err := visit(t.Context(), addr); err != nil {
				t.Errorf("a login after 50 probes: %v", err)
			}
			if e := greetingError(t, own, server.Addr); e != nil {
				t.Errorf("the proxy's host meets %v", e)
			}
		})
	}
}

// probe does what a load balancer does to see whether somebody listens: it connects, hears the greeting, and leaves.
func probe(t *testing.T, dialer *net.Dialer, addr string) {
	t.Helper()
	conn, err := dialer.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	conn.SetDeadline(time.Now().Add(time.Minute))
	conn.Read(make([]byte, 1000)) // or the refusal
	conn.Close()
}

// greetingError is the error that a server greets with.
func greetingError(t *testing.T, dialer *net.Dialer, addr string) *wire.Error {
	t.Helper()
	conn, err := dialer.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	b := make([]byte, 1000)
	n, err := io.ReadAtLeast(conn, b, wire.HeaderLen+3)
	if err != nil {
		t.Fatal(err)
	}
	if b[wire.HeaderLen] != 0xFF {
		return nil
	}
	return wire.ParseError(b[wire.HeaderLen:n])
}

// serve runs a proxy in this process until the test's end, and gives its address.
func serve(t *testing.T, p *proxy.Proxy) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- p.Serve(ctx, listener) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return listener.Addr().String()
}
