package proxy_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"testing"

	"github.com/go-mysql-org/go-mysql/mysql"
	"github.com/go-mysql-org/go-mysql/server"
	driver "github.com/go-sql-driver/mysql"

	"redrive/capture"
	"redrive/internal/client"
	"redrive/internal/mysqltest"
	"redrive/internal/wire"
	"redrive/proxy"
)

// oneRow answers every query with one row.
type oneRow struct{ server.EmptyHandler }

func (oneRow) UseDB(string) error { return nil }

func (oneRow) HandleQuery(query string) (*mysql.Result, error) {
	set, err := mysql.BuildSimpleResultset([]string{"query"}, [][]any{{query}}, false)
	return mysql.NewResult(set), err
}

func peerTLS(p *proxy.Proxy) { p.BackendTLS = &tls.Config{InsecureSkipVerify: true} }

// The plugins that hand over the password itself when the server has not seen it before, which is how each login at
// these servers goes: their caches are empty. MariaDB 10.11 has neither plugin, hence go-mysql's server.
func TestPasswordsByRSA(t *testing.T) {
	const password = "Cached-not-4712"
	certificate := mysqltest.NewCertificate(t)
	for _, plugin := range []string{wire.PluginCachingSHA2, wire.PluginSHA256, wire.PluginNative} {
		peer := mysqltest.NewPeer(t, func(c *mysqltest.PeerConn) {
			c.Serve(mysqltest.Account{User: "u", Password: password, Plugin: plugin, Handler: oneRow{}})
		})
		for _, clientSecure := range []bool{false, true} {
			for _, serverSecure := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s, TLS of client %t, of server %t", plugin, clientSecure, serverSecure), func(t *testing.T) {
					var log mysqltest.Printed
					set := []func(*proxy.Proxy){logInto(&log)}
					a := account{user: "u", password: password, schema: "app"}
					if clientSecure {
						set = append(set, clientTLS(certificate))
						a.tls = &tls.Config{RootCAs: certificate.Roots, ServerName: "localhost"}
					}
					if serverSecure {
						set = append(set, peerTLS)
					}
					p := start(t, peer.Addr, set...)
					checkLogin(t, a, p.addr)
					ours := client.Config{Address: p.addr, User: a.user, Password: password, TLS: a.tls}
					if clientSecure {
						ours.TLSMode = client.TLSRequired
					}
					conn, err := client.Dial(t.Context(), ours)
					if err != nil {
						t.Fatalf("by our own client: %v", err)
					}
					query(t, conn, "SELECT 1")
					conn.Close()
					wrong := a
					wrong.password = "wrong-" + password
					if err := wrong.connect(t, p.addr).Ping(); err == nil {
						t.Error("a wrong password was let in")
					}
					waitForRejected(t, p, 1)
					checkNoSecret(t, p, &log, password)
					if n := p.Totals(); n.Opaque != 0 || n.Rejected != 1 {
						t.Errorf("%d sessions not followed, %d rejected, want 0 and 1", n.Opaque, n.Rejected)
					}
				})
			}
		}
	}
}

// checkLogin logs in and runs a query.
func checkLogin(t *testing.T, a account, addr string) {
	t.Helper()
	db := a.connect(t, addr)
	defer db.Close()
	var got string
	if err := db.QueryRow("SELECT 'through'").Scan(&got); err != nil || got != "SELECT 'through'" {
		t.Errorf("the query gives %q, %v", got, err)
	}
}

// checkNoSecret looks for a password where it must not be.
func checkNoSecret(t *testing.T, p *running, log *mysqltest.Printed, password string) {
	t.Helper()
	for _, rec := range p.records(t) {
		if text := fmt.Sprintf("%q", fmt.Sprintf("%+v", rec)); bytes.Contains([]byte(text), []byte(password)) {
			t.Errorf("a password is in the record %s", text)
		}
	}
	if bytes.Contains(p.file.Bytes(), []byte(password)) || bytes.Contains([]byte(log.String()), []byte(password)) {
		t.Errorf("a password is in the file or the log:\n%s", log.String())
	}
}

// A client on a Unix socket takes it for safe and sends the password itself; the server is reached by plain TCP.
func TestPasswordFromUnixSocket(t *testing.T) {
	const password = "Local-4713"
	peer := mysqltest.NewPeer(t, func(c *mysqltest.PeerConn) {
		c.Serve(mysqltest.Account{User: "u", Password: password, Plugin: wire.PluginCachingSHA2, Handler: oneRow{}})
	})
	for _, set := range [][]func(*proxy.Proxy){nil, {peerTLS}} {
		p := startUnix(t, peer.Addr, set...)
		checkLogin(t, account{user: "u", password: password, network: "unix"}, p.addr)
	}
}

// startUnix runs a proxy that listens on a Unix socket.
func startUnix(t *testing.T, backend string, set ...func(*proxy.Proxy)) *running {
	t.Helper()
	listener, err := net.Listen("unix", filepath.Join(t.TempDir(), "s"))
	if err != nil {
		t.Fatal(err)
	}
	return startOn(t, listener, backend, set...)
}

// Unix sockets on both sides, and IPv6.
func TestSocketsAndIPv6(t *testing.T) {
	backend := mysqltest.Shared(t)
	a := account{user: mysqltest.User, password: mysqltest.Password}
	onUnix := startUnix(t, backend.Socket, dialUnix(backend.Socket))
	a.network = "unix"
	if err := a.connect(t, onUnix.addr).Ping(); err != nil {
		t.Errorf("over two Unix sockets: %v", err)
	}
	listener, err := net.Listen("tcp", "[::1]:0")
	if err != nil {
		t.Fatal(err)
	}
	inner := startOn(t, listener, backend.Addr)
	outer := start(t, inner.addr) // reaches a backend by IPv6
	a.network = ""
	if err := a.connect(t, outer.addr).Ping(); err != nil {
		t.Errorf("over IPv6: %v", err)
	}
	for _, rec := range inner.records(t) {
		if rec.Kind == capture.KindSessionStart && !bytes.HasPrefix([]byte(rec.Start.Client), []byte("[::1]:")) {
			t.Errorf("client %q recorded, want one at [::1]", rec.Start.Client)
		}
	}
}

// A backend's name may stand for several addresses: those that do not answer are passed over.
func TestBackendOfSeveralAddresses(t *testing.T) {
	backend := mysqltest.Shared(t)
	_, port, _ := net.SplitHostPort(backend.Addr)
	resolver := resolveTo("127.0.0.9", "127.0.0.1") // nobody listens at the first
	p := start(t, "db.example:"+port, func(p *proxy.Proxy) {
		p.Dial = func(ctx context.Context) (net.Conn, error) {
			d := net.Dialer{Resolver: resolver}
			return d.DialContext(ctx, "tcp", "db.example:"+port)
		}
	})
	if err := (account{user: mysqltest.User, password: mysqltest.Password}).connect(t, p.addr).Ping(); err != nil {
		t.Error(err)
	}
}

// A server that is gone before its OK, or refuses before its greeting, is heard.
func TestServersThatRefuse(t *testing.T) {
	caps := wire.Protocol41 | wire.SecureConnection | wire.PluginAuth
	certificate := mysqltest.NewCertificate(t)
	for name, script := range map[string]func(*mysqltest.PeerConn){
		"before the greeting":     func(c *mysqltest.PeerConn) { c.Send([]byte("\x17\x00\x00\x00\xff\x10\x04Too many connections")) },
		"with an odd sequence id": func(c *mysqltest.PeerConn) { c.Send([]byte("\x17\x00\x00\x01\xff\x10\x04Too many connections")) },
		"after the client's answer ": func(c *mysqltest.PeerConn) {
			c.Greet("8.0.36", caps)
			c.ReadPacket()
			c.SendPacket([]byte("\xff\x10\x04Too many connections"))
		},
	} {
		p := start(t, mysqltest.NewPeer(t, script).Addr, clientTLS(certificate))
		var refused *driver.MySQLError
		if err := (account{user: "u"}).connect(t, p.addr).Ping(); !errors.As(err, &refused) || refused.Number != 1040 {
			t.Errorf("%s: %v, want error 1040", name, err)
		}
		waitForRejected(t, p, 1)
		for _, rec := range p.records(t) {
			if rec.Kind == capture.KindSessionEnd && (rec.End.Reason != capture.EndRejected || rec.End.Errno != 1040) {
				t.Errorf("%s: recorded as %d with error %d, want rejected with 1040", name, rec.End.Reason, rec.End.Errno)
			}
		}
	}
}
