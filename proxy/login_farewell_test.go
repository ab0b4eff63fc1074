package proxy_test

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"strings"
	"sync"
	"testing"

	"github.com/go-sql-driver/mysql"

	"redrive/internal/mysqltest"
	"redrive/internal/wire"
	"redrive/proxy"
)

// denied is how a server refuses a login.
var denied = wire.AppendError(nil, &wire.Error{Errno: 1045, SQLState: "28000", Message: "Access denied for user"})

// expectFarewell has a peer that has greeted take the login by which the proxy ends one that was broken off.
func expectFarewell(t *testing.T, c *mysqltest.PeerConn) {
	response, err := wire.ParseHandshakeResponse(c.ReadPacket(), wire.Protocol41)
	if err != nil || !strings.HasPrefix(response.User, "redrive-abandoned-") {
		t.Errorf("the server is sent %+v, %v, want a login that says it was abandoned", response, err)
	}
	c.SendPacket(denied)
	c.ExpectHangUp()
}

// A way to break off a login: what a client does once it has been greeted.
type way struct {
	name string
	do   func(t *testing.T, c net.Conn)
	tls  bool // only where TLS is offered
}

const plainLogin = wire.LongPassword | wire.Protocol41 | wire.SecureConnection | wire.PluginAuth

func answerAs(user string, auth string) []byte {
	h := wire.HandshakeResponse{Capabilities: plainLogin, Collation: 45, User: user, AuthData: []byte(auth), Plugin: wire.PluginNative}
	return frame(1, h.Append(nil))
}

func wishForTLS() []byte {
	return frame(1, (&wire.HandshakeResponse{Capabilities: plainLogin | wire.SSL}).AppendSSLRequest(nil))
}

func sends(b []byte) func(*testing.T, net.Conn) {
	return func(_ *testing.T, c net.Conn) { c.Write(b) }
}

// waits has a client wait until it is hung up on.
func waits(b []byte) func(*testing.T, net.Conn) {
	return func(_ *testing.T, c net.Conn) {
		c.Write(b)
		io.Copy(io.Discard, c)
	}
}

// answersSwitch has a client named signer be asked for another plugin, and give the answer.
func answersSwitch(answer []byte) func(*testing.T, net.Conn) {
	return func(t *testing.T, c net.Conn) {
		c.Write(answerAs("signer", strings.Repeat("x", 20)))
		if asked := readPacket(t, c); asked[0] != wire.AuthSwitch {
			t.Errorf("the server says %q, want it to ask for another plugin", asked)
		}
		if answer != nil {
			waits(answer)(t, c)
		}
	}
}

// ways are those that servers count against the client's host.
var ways = []way{
	{name: "leaves", do: sends(nil)},
	{name: "leaves by RST", do: func(_ *testing.T, c net.Conn) { c.(*net.TCPConn).SetLinger(0) }},
	{name: "says no more", do: func(t *testing.T, c net.Conn) {
		c.(*net.TCPConn).CloseWrite()
		waits(nil)(t, c)
	}},
	{name: "stalls", do: waits(nil)},
	{name: "stalls within a packet", do: waits(answerAs("u", "")[:30])},
	{name: "leaves within a packet", do: sends(answerAs("u", "")[:30])},
	{name: "speaks HTTP", do: waits([]byte("GET / HTTP/1.1\r\nHost: example.org\r\n\r\n"))},
	{name: "speaks TLS unasked", do: waits([]byte("\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03 and so on"))},
	{name: "sends an empty packet", do: waits(frame(1, nil))},
	{name: "sends too little", do: waits(frame(1, []byte("\x01\x02")))},
	{name: "sends garbage", do: waits(frame(1, []byte("\x00\x02\x00\x00garbage without a name that ends in a NUL")))},
	{name: "counts wrong", do: waits(frame(3, answerAs("u", "")[4:]))},
	{name: "sends a password cut off", do: waits(frame(1, answerAs("u", strings.Repeat("x", 20))[4:50]))},
	{name: "sends a scramble too short", do: waits(answerAs(mysqltest.User, "short"))},
	{name: "leaves when asked for another plugin", do: answersSwitch(nil)},
	{name: "stalls when asked for another plugin", do: answersSwitch([]byte{})},
	{name: "counts wrong when asked for another plugin", do: answersSwitch(frame(7, make([]byte, 64)))},
	{name: "has no answer for another plugin", do: answersSwitch(frame(3, nil))},
	{name: "wants TLS and leaves", do: sends(wishForTLS()), tls: true},
	{name: "wants TLS and stalls", do: waits(wishForTLS()), tls: true},
	{name: "wants TLS and sends garbage", do: waits(append(wishForTLS(), "garbage instead of a ClientHello"...)), tls: true},
}

// errBlocked says that the server takes no connections from the host any more.
var errBlocked = errors.New("host blocked")

// breakOff does that, from an address that the server counts for; 127.0.0.1 it does not.
func breakOff(t *testing.T, w way, addr string) error {
	t.Helper()
	conn, err := dialFrom(t.Context(), addr)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if greeting := readPacket(t, conn); greeting[0] == 0xFF && wire.ParseError(greeting).Errno == 1129 {
		return errBlocked
	}
	w.do(t, conn)
	return nil
}

func dialFrom(ctx context.Context, addr string) (net.Conn, error) {
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 2)}}
	return d.DialContext(ctx, "tcp", addr)
}

// Servers block a host from which too many handshakes in a row were broken off, with error 1129. Behind a proxy that would
// be everybody, for the fault of one: so what blocks a host that comes directly must not block the proxy's.
func TestBrokenLoginsDoNotBlockTheHost(t *testing.T) {
	const limit = 3
	certificate := mysqltest.NewCertificate(t)
	server := mysqltest.Start(t, append(certificate.ServerOptions(), "--skip-name-resolve=0", "--performance-schema=ON",
		"--max-connect-errors=3", "--connect-timeout=2")...)
	exec := func(statement string) {
		t.Helper()
		if _, err := server.DB().Exec(statement); err != nil {
			t.Fatal(err)
		}
	}
	exec("INSTALL SONAME 'auth_ed25519'")
	exec("CREATE USER signer@'%' IDENTIFIED VIA ed25519 USING PASSWORD('signer-secret')")
	exec("CREATE USER ''@'%'") // whoever comes without a password is let in
	number := func(query string) (n int) {
		t.Helper()
		if err := server.DB().QueryRow(query).Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	const underWay = "SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE USER = 'unauthenticated user'"
	settle := func() { waitFor(t, "logins to end", func() bool { return number(underWay) == 0 }) }
	flush := func() {
		exec("FLUSH HOSTS")
		refused := way{do: waits(answerAs("somebody", strings.Repeat("x", 20)))}
		if err := breakOff(t, refused, server.Addr); err != nil { // the host's name is looked up, which may take its time
			t.Fatal(err)
		}
		settle()
	}
	const aborted = "SELECT VARIABLE_VALUE FROM information_schema.GLOBAL_STATUS WHERE VARIABLE_NAME = 'Aborted_connects'"
	from127002 := func(p *proxy.Proxy) {
		p.LoginTimeout = 300e6
		p.Dial = func(ctx context.Context) (net.Conn, error) { return dialFrom(ctx, server.Addr) }
	}
	plain := start(t, server.Addr, from127002)
	toTLS := start(t, server.Addr, from127002, clientTLS(certificate), backendTLS(certificate, server.Addr))
	foreign := mysqltest.NewCertificate(t)
	toWrongServer := start(t, server.Addr, from127002, backendTLS(foreign, server.Addr))
	t.Run("trusts the server no more", func(t *testing.T) {
		flush()
		for range limit + 1 {
			conn, err := dialFrom(t.Context(), server.Addr)
			if err != nil {
				t.Fatal(err)
			}
			readPacket(t, conn)
			conn.Write(wishForTLS())
			if err := tls.Client(conn, &tls.Config{RootCAs: foreign.Roots, ServerName: "localhost"}).Handshake(); err == nil {
				t.Error("a certificate of somebody else was taken")
			}
			conn.Close()
		}
		waitFor(t, "the server to block the host", func() bool { return breakOff(t, way{do: sends(nil)}, server.Addr) == errBlocked })
		settle()
		flush()
		for range 2*limit + 1 {
			var refused *mysql.MySQLError
			err := (account{user: mysqltest.User, password: mysqltest.Password}).connect(t, toWrongServer.addr).Ping()
			if !errors.As(err, &refused) || refused.Number != 1105 {
				t.Errorf("error %v, want 1105", err)
			}
		}
		waitFor(t, "all connections to end", func() bool { return toWrongServer.Totals().Open == 0 })
		settle()
		if n := number("SELECT SUM_CONNECT_ERRORS FROM performance_schema.host_cache WHERE IP = '127.0.0.2'"); n != 0 {
			t.Errorf("%d handshakes counted against the host, want none", n)
		}
	})
	for _, w := range ways {
		t.Run(w.name, func(t *testing.T) {
			flush()
			var probes sync.WaitGroup // side by side: some of them have to wait
			for range limit + 1 {
				probes.Go(func() { breakOff(t, w, server.Addr) })
			}
			probes.Wait()
			waitFor(t, "the server to block the host", func() bool { return breakOff(t, way{do: sends(nil)}, server.Addr) == errBlocked })
			for _, p := range []*running{plain, toTLS} {
				if p == plain && w.tls {
					continue
				}
				settle()
				flush()
				before := number(aborted)
				for range 2*limit + 1 {
					probes.Go(func() {
						if err := breakOff(t, w, p.addr); err != nil {
							t.Error(err)
						}
					})
				}
				probes.Wait()
				waitFor(t, "all connections to end", func() bool { return p.Totals().Open == 0 })
				settle()
				if n := number("SELECT SUM_CONNECT_ERRORS FROM performance_schema.host_cache WHERE IP = '127.0.0.2'"); n != 0 {
					t.Errorf("TLS to the server %t: %d handshakes counted against the host, want none", p == toTLS, n)
				}
				if n := number(aborted) - before; n != 2*limit+1 {
					t.Errorf("TLS to the server %t: %d connects aborted, want %d: nobody was to be let in", p == toTLS, n, 2*limit+1)
				}
				if err := (account{user: mysqltest.User, password: mysqltest.Password}).connect(t, p.addr).Ping(); err != nil {
					t.Errorf("afterwards: %v", err)
				}
			}
		})
	}
}
