package proxy_test

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"redrive/capture"
	"redrive/internal/mysqltest"
	"redrive/internal/wire"
	"redrive/proxy"
)

const (
	briefly  = 50 * time.Millisecond
	patience = time.Second // enough to be greeted on a busy machine
)

func loginTimeout(d time.Duration) func(*proxy.Proxy) {
	return func(p *proxy.Proxy) { p.LoginTimeout = d }
}

// checkRejected looks for logins that were all rejected because of that.
func checkRejected(t *testing.T, p *running, n int, errno uint16, why string) {
	t.Helper()
	waitForRejected(t, p, n)
	waitFor(t, "the logins to end at the server", func() bool { return p.Totals().Open == 0 })
	ends := 0
	for _, rec := range p.records(t) {
		if rec.Kind != capture.KindSessionEnd {
			continue
		}
		ends++
		if rec.End.Reason != capture.EndRejected || rec.End.Errno != errno || !strings.Contains(rec.End.Detail, why) {
			t.Errorf("recorded as %d with error %d, %q, want rejected with %d, %q", rec.End.Reason, rec.End.Errno, rec.End.Detail, errno, why)
		}
	}
	if ends != n {
		t.Errorf("%d ends recorded, want %d", ends, n)
	}
}

// A client that keeps the proxy waiting is hung up on, without a word: it would be taken for something else. So do servers.
func TestStalledLogins(t *testing.T) {
	certificate := mysqltest.NewCertificate(t)
	peer := mysqltest.NewPeer(t, func(c *mysqltest.PeerConn) {
		c.Greet("8.0.36", plainLogin)
		expectFarewell(t, c)
	})
	answer := answerAs("u", "")
	trickle := func(t *testing.T, c net.Conn) {
		for _, b := range append(frame(1, make([]byte, 1<<16)), 0)[:1<<12] {
			if _, err := c.Write([]byte{b}); err != nil {
				return
			}
			time.Sleep(time.Millisecond)
		}
	}
	for _, w := range []way{
		{name: "in front of its answer", do: sends(nil)},
		{name: "within it", do: sends(answer[:20])},
		{name: "byte by byte", do: trickle},
		{name: "in front of TLS", do: sends(wishForTLS())},
		{name: "within TLS", do: sends(append(wishForTLS(), "\x16\x03\x01\x02\x00\x01"...))},
	} {
		t.Run(w.name, func(t *testing.T) {
			var log mysqltest.Printed
			p := start(t, peer.Addr, clientTLS(certificate), loginTimeout(patience), logInto(&log))
			conn, err := net.Dial("tcp", p.addr)
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			readPacket(t, conn)
			w.do(t, conn)
			if got, _ := io.ReadAll(conn); len(got) > 0 && got[0] != 21 { // an alert of TLS
				t.Errorf("the client is told %q, want nothing", got)
			}
			if checkRejected(t, p, 1, 0, patience.String()); p.Totals().TimedOut != 1 {
				t.Errorf("%d logins timed out, want 1", p.Totals().TimedOut)
			}
		})
	}
}

// A client that waits for a server that does not answer is told so, in the place of the answer.
func TestServerSlowToLogIn(t *testing.T) {
	for _, greets := range []bool{true, false} {
		peer := mysqltest.NewPeer(t, func(c *mysqltest.PeerConn) {
			if greets {
				c.Greet("8.0.36", plainLogin)
				c.ReadPacket()
			}
			c.ExpectHangUp()
		})
		p := start(t, peer.Addr, loginTimeout(patience))
		conn, err := net.Dial("tcp", p.addr)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		due := byte(0)
		if greets {
			readPacket(t, conn)
			conn.Write(answerAs("u", ""))
			due = 2
		}
		got, _ := io.ReadAll(conn)
		if len(got) < 5 || got[3] != due || wire.ParseError(got[4:]).Errno != 1105 || !strings.Contains(string(got), patience.String()) {
			t.Errorf("the client is told %q, want error 1105 with sequence id %d that names the time", got, due)
		}
		if greets {
			checkRejected(t, p, 1, 1105, "login")
		}
	}
}

// A login that takes its time within the limits gets in, whoever keeps whom waiting.
func TestSlowLogin(t *testing.T) {
	peer := mysqltest.NewPeer(t, func(c *mysqltest.PeerConn) {
		time.Sleep(briefly)
		c.Greet("8.0.36", plainLogin)
		c.ReadPacket()
		time.Sleep(briefly)
		c.SendPacket([]byte("\xfedialog\x00\x04Password: "))
		c.Expect([]byte("open\x00"))
		time.Sleep(briefly)
		c.SendPacket([]byte{0, 0, 0, 2, 0, 0, 0})
		c.Expect([]byte("\x0e"))
	})
	p := start(t, peer.Addr)
	conn, err := net.Dial("tcp", p.addr)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	readPacket(t, conn)
	time.Sleep(briefly) // longer than only the client is listened to
	for _, b := range answerAs("u", "") {
		conn.Write([]byte{b})
	}
	readPacket(t, conn)
	time.Sleep(briefly)
	conn.Write(frame(3, []byte("open\x00")))
	if got := readPacket(t, conn); got[0] != 0 {
		t.Errorf("the login is answered by %q, want OK", got)
	}
	conn.Write(frame(0, []byte("\x0e")))
	conn.Close()
	waitFor(t, "the connection to end", func() bool { return p.Totals().Open == 0 })
	if n := p.Totals(); n.TimedOut+n.Rejected+n.Opaque != 0 {
		t.Errorf("totals %+v", n)
	}
}

// What is no login is refused, where clients expect an answer, and the server hears nothing of it.
func TestNoLogins(t *testing.T) {
	peer := mysqltest.NewPeer(t, func(c *mysqltest.PeerConn) {
		c.Greet("8.0.36", plainLogin)
		expectFarewell(t, c)
	})
	const limit = 1000
	long := answerAs("u", strings.Repeat("x", 20))
	long = frame(1, append(long[4:], make([]byte, limit)...))
	for _, tt := range []struct {
		name  string
		sent  []byte
		errno uint16
		seq   byte
	}{
		{"a long packet", long, 1153, 2},
		{"only the header of one", long[:4], 1153, 2},
		{"the longest", []byte("\xff\xff\xff\x01"), 1153, 2},
		{"HTTP", []byte("GET / HTTP/1.1\r\nHost: example.org\r\n\r\n"), 1156, 1},
		{"a ClientHello", []byte("\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"), 1156, 1},
		{"a sequence id that is not due", frame(2, long[4:]), 1156, 1},
		{"an empty packet", frame(1, nil), 1043, 2},
		{"a wish for TLS cut off", frame(1, wishForTLS()[4:30]), 1043, 2},
		{"a name without an end", frame(1, append(wishForTLS()[4:], "name"...)), 1043, 2},
		{"random bytes", frame(1, bytes.Repeat([]byte{0xA7, 0x13, 0xFE}, 30)), 1043, 2},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := start(t, peer.Addr, func(p *proxy.Proxy) { p.MaxLoginPacket = limit })
			conn, err := net.Dial("tcp", p.addr)
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			readPacket(t, conn)
			conn.Write(tt.sent)
			got, err := io.ReadAll(conn)
			if err != nil || len(got) < 5 || got[3] != tt.seq || wire.ParseError(got[4:]).Errno != tt.errno || wire.ParseError(got[4:]).SQLState != "08S01" {
				t.Errorf("answered by %q, %v, want error %d of state 08S01 with sequence id %d", got, err, tt.errno, tt.seq)
			}
			conn.Close()
			checkRejected(t, p, 1, tt.errno, "redrive proxy")
		})
	}
}

// The longest packet that is allowed passes, and so does what comes in one segment with it.
func TestLongestLogin(t *testing.T) {
	answer := answerAs("u", strings.Repeat("x", 20))
	answer = frame(1, append(answer[4:], bytes.Repeat([]byte{'p'}, 100<<10)...))
	command := append([]byte("\x03SELECT '"), bytes.Repeat([]byte{'q'}, 200<<10)...)
	peer := mysqltest.NewPeer(t, func(c *mysqltest.PeerConn) {
		c.Greet("8.0.36", plainLogin)
		c.Expect(answer[4:])
		c.SendPacket([]byte{0, 0, 0, 2, 0, 0, 0})
		c.Expect(command)
		c.SendPacket(denied)
	})
	p := start(t, peer.Addr, func(p *proxy.Proxy) { p.MaxLoginPacket = len(answer) - 4 })
	conn, err := net.Dial("tcp", p.addr)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	conn.Write(append(answer, frame(0, command)...)) // and ahead of the greeting
	for _, want := range []byte{10, 0, 0xFF} {
		if got := readPacket(t, conn); got[0] != want {
			t.Errorf("answered by %q, want a packet that begins with %X", got, want)
		}
	}
	conn.Close()
	if texts := p.texts(t); len(texts) != 1 || texts[0] != string(command[1:]) {
		t.Errorf("%d texts recorded, want the one sent", len(texts))
	}
}

// A server that lets in whoever comes is not kept: the login that ends one broken off quits.
func TestFarewellThatIsAccepted(t *testing.T) {
	quit := make(chan []byte, 1)
	peer := mysqltest.NewPeer(t, func(c *mysqltest.PeerConn) {
		c.Greet("8.0.36", plainLogin)
		c.ReadPacket()
		c.SendPacket([]byte("\xfecaching_sha2_password\x00" + strings.Repeat("n", 20) + "\x00"))
		if got := c.ReadPacket(); len(got) != 32 {
			t.Errorf("caching_sha2_password is answered by %q, want 32 bytes", got)
		}
		c.SendPacket([]byte("\x01\x04"))
		c.ReadPacket()
		c.SendPacket([]byte{0, 0, 0, 2, 0, 0, 0})
		quit <- c.ReadPacket()
		c.ExpectHangUp()
	})
	p := start(t, peer.Addr)
	conn, err := net.Dial("tcp", p.addr)
	if err != nil {
		t.Fatal(err)
	}
	readPacket(t, conn)
	conn.Close()
	if got := <-quit; !bytes.Equal(got, []byte{wire.ComQuit}) {
		t.Errorf("the server is sent %q, want QUIT", got)
	}
	waitFor(t, "the connection to end", func() bool { return p.Totals().Open == 0 })
}

// However many logins fail, the log has few lines of them, and the ends of all are in the record.
func TestFloodsAreNotLogged(t *testing.T) {
	nobody, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	nobody.Close()
	peer := mysqltest.NewPeer(t, func(c *mysqltest.PeerConn) {
		c.Greet("8.0.36", plainLogin)
		expectFarewell(t, c)
	})
	const clients = 50
	for _, tt := range []struct {
		name, backend string
		do            func(*testing.T, net.Conn)
		count         func(proxy.Totals) uint64
	}{
		{"no backend", nobody.Addr().String(), waits(nil), func(t proxy.Totals) uint64 { return t.Refused }},
		{"stalls", peer.Addr, waits(nil), func(t proxy.Totals) uint64 { return t.Rejected }},
		{"garbage", peer.Addr, waits([]byte("GET / HTTP/1.1\r\n\r\n")), func(t proxy.Totals) uint64 { return t.Rejected }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var log mysqltest.Printed
			p := start(t, tt.backend, loginTimeout(patience), logInto(&log))
			began := time.Now()
			var all sync.WaitGroup
			for range clients {
				all.Go(func() {
					conn, err := net.Dial("tcp", p.addr)
					if err != nil {
						t.Error(err)
						return
					}
					defer conn.Close()
					tt.do(t, conn)
				})
			}
			all.Wait()
			waitFor(t, "all connections to end", func() bool { return p.Totals().Open == 0 && p.Totals().Connections == clients })
			seconds := int(time.Since(began).Seconds()) + 2
			if lines := strings.Count(log.String(), "\n"); lines == 0 || lines > seconds {
				t.Errorf("%d lines logged, want 1 or more, and not more than one a second:\n%s", lines, log.String())
			}
			if n := tt.count(p.Totals()); n != clients {
				t.Errorf("%d counted, want %d: %s", n, clients, fmt.Sprintf("%+v", p.Totals()))
			}
		})
	}
}
