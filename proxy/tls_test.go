package proxy_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"database/sql"
	"errors"
	"log/slog"
	"net"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"redrive/capture"
	"redrive/internal/client"
	"redrive/internal/mysqltest"
	"redrive/internal/wire"
	"redrive/proxy"
)

// account says who logs in through a proxy, and by which means.
type account struct {
	user, password, schema string
	tls                    *tls.Config // nil: plain
	network                string      // tcp if empty
}

// connect is a pool of one connection.
func (a account) connect(t *testing.T, addr string) *sql.DB {
	t.Helper()
	config := mysql.NewConfig()
	config.User, config.Passwd, config.DBName, config.Net, config.Addr = a.user, a.password, a.schema, "tcp", addr
	config.TLS, config.AllowCleartextPasswords = a.tls, true
	if a.network != "" {
		config.Net = a.network
	}
	connector, err := mysql.NewConnector(config)
	if err != nil {
		t.Fatal(err)
	}
	db := sql.OpenDB(connector)
	db.SetMaxOpenConns(1)
	t.Cleanup(func() { db.Close() })
	return db
}

// isSecure logs in and reports whether the server sees TLS. client_ed25519 is done by our own client: go-sql-driver cuts the
// nonce short where it ends in a zero byte, one login in 256, and fails with "malformed packet".
func (a account) isSecure(t *testing.T, addr string) (secure bool, err error) {
	t.Helper()
	if a.user != "signer" {
		var name, cipher string
		err := a.connect(t, addr).QueryRow("SHOW STATUS LIKE 'Ssl_cipher'").Scan(&name, &cipher)
		return cipher != "", err
	}
	config := client.Config{Address: addr, User: a.user, Password: a.password, TLS: a.tls}
	if a.tls != nil {
		config.TLSMode = client.TLSRequired
	}
	conn, err := client.Dial(t.Context(), config)
	if err != nil {
		return false, err
	}
	defer conn.Close()
	reply, _, err := conn.Query("SHOW STATUS WHERE Variable_name = 'Ssl_cipher' AND Value <> ''")
	if err != nil {
		return false, err
	}
	return reply.Outcome.Rows == 1, nil
}

// backendTLS verifies a backend as the command does.
func backendTLS(certificate *mysqltest.Certificate, address string) func(*proxy.Proxy) {
	return func(p *proxy.Proxy) {
		config := client.Config{Network: "tcp", Address: address, TLSMode: client.TLSVerifyIdentity, TLS: &tls.Config{RootCAs: certificate.Roots}}
		p.BackendTLS = config.ClientTLS()
	}
}

func clientTLS(certificate *mysqltest.Certificate) func(*proxy.Proxy) {
	return func(p *proxy.Proxy) { p.ClientTLS = &tls.Config{Certificates: []tls.Certificate{certificate.TLS}} }
}

func optional(p *proxy.Proxy)    { p.BackendTLSOptional = true }
func passThrough(p *proxy.Proxy) { p.PassThrough = true }

// logInto collects what a proxy logs.
func logInto(log *mysqltest.Printed) func(*proxy.Proxy) {
	return func(p *proxy.Proxy) { p.Logger = slog.New(slog.NewTextHandler(log, nil)) }
}

// Either side's connection may be encrypted or not: clients log in, statements pass and are recorded, and both sides are
// encrypted as they were told to be.
func TestTLS(t *testing.T) {
	server := secured(t)
	certificate := server.certificate
	for _, statement := range []string{
		"INSTALL SONAME 'auth_ed25519'",
		"CREATE OR REPLACE USER signer@'%' IDENTIFIED VIA ed25519 USING PASSWORD('signer-secret')",
		"CREATE OR REPLACE USER careful@'%' IDENTIFIED BY 'careful-secret' REQUIRE SSL",
		"CREATE OR REPLACE USER nobody@'%'",
	} {
		if _, err := server.DB().Exec(statement); err != nil {
			t.Fatal(err)
		}
	}
	required := backendTLS(certificate, server.Addr)
	show := clientTLS(certificate)
	verify := &tls.Config{RootCAs: certificate.Roots, ServerName: "localhost"}
	tests := []struct {
		name     string
		set      []func(*proxy.Proxy)
		tls      *tls.Config
		secure   bool // the server's side
		unseen   bool
		careless bool // accounts that require TLS are refused
	}{
		{name: "plain to plain", careless: true},
		{name: "TLS to TLS", set: []func(*proxy.Proxy){show, required}, tls: verify, secure: true},
		{name: "TLS to TLS if offered", set: []func(*proxy.Proxy){show, required, optional}, tls: verify, secure: true},
		{name: "TLS to plain", set: []func(*proxy.Proxy){show}, tls: verify, careless: true},
		{name: "plain to TLS", set: []func(*proxy.Proxy){required}, secure: true},
		{name: "plain to TLS, the client having the choice", set: []func(*proxy.Proxy){show, required}, secure: true},
		{name: "TLS passed through", set: []func(*proxy.Proxy){passThrough}, tls: verify, secure: true, unseen: true},
		{name: "plain passed through", set: []func(*proxy.Proxy){passThrough}, careless: true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p := start(t, server.Addr, tt.set...)
			for _, a := range []account{
				{user: mysqltest.User, password: mysqltest.Password},
				{user: "signer", password: "signer-secret"}, // by a switch to client_ed25519
				{user: "careful", password: "careful-secret"},
				{user: "nobody"},
			} {
				a.tls = tt.tls
				secure, err := a.isSecure(t, p.addr)
				if a.user == "careful" && tt.careless {
					var refused *mysql.MySQLError
					if !errors.As(err, &refused) || refused.Number != 1045 {
						t.Errorf("%s: error %v, want the server's 1045", a.user, err)
					}
					continue
				}
				if err != nil {
					t.Errorf("%s: %v", a.user, err)
				}
				if secure != tt.secure {
					t.Errorf("%s: a cipher at the server: %t, want %t", a.user, secure, tt.secure)
				}
			}
			wrong := account{user: mysqltest.User, password: "wrong", tls: tt.tls}
			var refused *mysql.MySQLError
			if err := wrong.connect(t, p.addr).Ping(); !errors.As(err, &refused) || refused.Number != 1045 {
				t.Errorf("a wrong password: %v, want the server's 1045", err)
			}
			checkRecords(t, p, tt.unseen, tt.careless)
		})
	}
}

// checkRecords looks for the logins of TestTLS.
func checkRecords(t *testing.T, p *running, unseen, careless bool) {
	t.Helper()
	want, rejected, opaque := 4, 1, 0
	if careless {
		want, rejected = 3, 2
	}
	if unseen {
		want, rejected, opaque = 0, 0, 5
	}
	waitForRejected(t, p, rejected)
	logins, statements, ends := 0, 0, map[capture.EndReason]int{}
	for _, rec := range p.records(t) {
		switch rec.Kind {
		case capture.KindSessionStart:
			logins++
		case capture.KindStatement:
			if rec.Statement.RunsSQL() {
				statements++
			}
		case capture.KindSessionEnd:
			ends[rec.End.Reason]++
			if rec.End.Reason == capture.EndRejected && rec.End.Errno != 1045 {
				t.Errorf("rejected with error %d, want 1045", rec.End.Errno)
			}
			if rec.End.Reason == capture.EndOpaque && !strings.Contains(rec.End.Detail, "TLS") {
				t.Errorf("opaque because of %q, want TLS", rec.End.Detail)
			}
		}
	}
	if logins != want || statements != want || ends[capture.EndRejected] != rejected || ends[capture.EndOpaque] != opaque {
		t.Errorf("%d logins and statements %d recorded, want %d; ends %v, want %d rejected, %d opaque", logins, statements, want, ends, rejected, opaque)
	}
	if got := p.Totals(); got.Rejected != uint64(rejected) || got.Opaque != uint64(opaque) {
		t.Errorf("totals %+v, want %d rejected, %d opaque", got, rejected, opaque)
	}
}

// Large values pass both ways over TLS, and so does what the mariadb client does.
func TestTLSBulk(t *testing.T) {
	server := secured(t)
	certificate := server.certificate
	a := account{user: mysqltest.User, password: mysqltest.Password, tls: &tls.Config{RootCAs: certificate.Roots, ServerName: "localhost"}}
	blob := bytes.Repeat([]byte("0123456789abcdef"), 17<<20/16) // over 16 MiB: two packets
	bulk := func(p *running) {
		db := a.connect(t, p.addr)
		defer db.Close()
		var got []byte
		if err := db.QueryRow("SELECT ?", blob).Scan(&got); err != nil || !bytes.Equal(got, blob) {
			t.Errorf("%d bytes came back, %v, want %d", len(got), err, len(blob))
		}
	}
	bulk(start(t, server.Addr, clientTLS(certificate))) // and plain to the server
	p := start(t, server.Addr, clientTLS(certificate), backendTLS(certificate, server.Addr))
	bulk(p)
	tool, err := mysqltest.Tool("mariadb")
	if err != nil {
		t.Fatal(err)
	}
	host, port, _ := net.SplitHostPort(p.addr)
	cmd := exec.Command(tool, "--no-defaults", "-h", host, "-P", port, "-u", mysqltest.User, "--ssl-ca="+certificate.CA, "--ssl-verify-server-cert", "-NBe", "SELECT 'from the client'")
	cmd.Env = append(cmd.Environ(), "MYSQL_PWD="+mysqltest.Password)
	if out, err := cmd.CombinedOutput(); err != nil || strings.TrimSpace(string(out)) != "from the client" {
		t.Errorf("mariadb prints %q, %v", out, err)
	}
	if n := len(p.texts(t)); n < 2 || p.Totals().Opaque != 0 {
		t.Errorf("%d statements recorded, %d sessions not followed, want 2 or more and none", n, p.Totals().Opaque)
	}
}

// A ClientHello in one piece with the wish for TLS reaches TLS.
func TestClientHelloGlued(t *testing.T) {
	certificate := mysqltest.NewCertificate(t)
	peer := mysqltest.NewPeer(t, func(c *mysqltest.PeerConn) { c.Accept("10.11", wire.Protocol41|wire.SecureConnection|wire.PluginAuth) })
	p := start(t, peer.Addr, clientTLS(certificate))
	conn, err := net.Dial("tcp", p.addr)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	greeting, err := wire.ParseGreeting(readPacket(t, conn))
	if err != nil || !greeting.Capabilities.Has(wire.SSL) {
		t.Fatalf("greeting %+v, %v, want one that offers TLS", greeting, err)
	}
	response := wire.HandshakeResponse{Capabilities: greeting.Capabilities, Collation: 45, User: "user@tenant#cluster", Plugin: wire.PluginNative}
	request, _ := wire.AppendPacket(nil, 1, response.AppendSSLRequest(nil))
	secured := tls.Client(&glued{Conn: conn, before: request}, &tls.Config{RootCAs: certificate.Roots, ServerName: "localhost"})
	answer, _ := wire.AppendPacket(nil, 2, response.Append(nil))
	if _, err := secured.Write(answer); err != nil {
		t.Fatal(err)
	}
	header := make([]byte, wire.HeaderLen+1)
	if _, err := secured.Read(header); err != nil || header[3] != 3 || header[4] != 0 {
		t.Errorf("login answered by % X, %v, want an OK with sequence id 3", header, err)
	}
	conn.Close()
	for _, rec := range p.records(t) {
		if rec.Kind == capture.KindSessionStart && rec.Start.User != "user@tenant#cluster" {
			t.Errorf("user %q recorded", rec.Start.User)
		}
	}
}

// glued writes something in front of the first write, in one segment.
type glued struct {
	net.Conn
	before []byte
}

func (g *glued) Write(b []byte) (int, error) {
	if len(g.before) == 0 {
		return g.Conn.Write(b)
	}
	_, err := g.Conn.Write(append(g.before, b...))
	g.before = nil
	return len(b), err
}

// What cannot work is refused with an error that says why, and which flag helps.
func TestRefusedForTLS(t *testing.T) {
	server, foreign := secured(t), mysqltest.NewCertificate(t)
	certificate := server.certificate
	mysql8 := mysqltest.NewPeer(t, func(c *mysqltest.PeerConn) { // MariaDB 10.11 says 1045 to the same
		c.Greet("8.0.36", wire.Protocol41|wire.SecureConnection|wire.PluginAuth|wire.SSL)
		c.ReadPacket()
		c.SendPacket(wire.AppendError(nil, &wire.Error{Errno: 3159, SQLState: "HY000", Message: "Connections using insecure transport are prohibited while --require_secure_transport=ON."}))
	})
	plain := mysqltest.Shared(t)
	asks := func(plugin string) string { // a server of MySQL 8.0, as MariaDB 10.11 lets nobody in by these plugins
		return mysqltest.NewPeer(t, func(c *mysqltest.PeerConn) {
			c.Greet("8.0.36", wire.Protocol41|wire.SecureConnection|wire.PluginAuth)
			c.ReadPacket()
			c.SendPacket(append([]byte("\xfe"+plugin), 0))
			if got := c.ReadPacket(); len(got) < 20 || bytes.Contains(got, []byte(mysqltest.Password)) {
				t.Errorf("the server is sent %q, want something that is no password", got)
			}
			c.SendPacket(denied)
			c.ExpectHangUp()
		}).Addr
	}
	trusting := &tls.Config{InsecureSkipVerify: true}
	tests := []struct {
		name    string
		backend string
		set     []func(*proxy.Proxy)
		tls     *tls.Config
		errno   uint16
		want    []string
	}{
		{"the server wants TLS", mysql8.Addr, nil, nil, 3159, []string{"--require_secure_transport", "--backend-ssl-mode required"}},
		{"the server has no TLS", plain.Addr, []func(*proxy.Proxy){backendTLS(certificate, plain.Addr)}, nil, 1105, []string{"does not offer TLS", "--backend-ssl-mode"}},
		{"the server's certificate is another's", server.Addr, []func(*proxy.Proxy){backendTLS(foreign, server.Addr)}, nil, 1105, []string{server.Addr, "certificate signed by unknown authority"}},
		{"a password in clear onto a plain connection", asks(wire.PluginClear), []func(*proxy.Proxy){clientTLS(certificate)}, trusting, 1105, []string{"mysql_clear_password", "--backend-ssl-mode required"}},
		{"answers to PAM onto a plain connection", asks(wire.PluginDialog), []func(*proxy.Proxy){clientTLS(certificate)}, trusting, 1105, []string{"dialog", "--backend-ssl-mode required"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p := start(t, tt.backend, tt.set...)
			a := account{user: mysqltest.User, password: mysqltest.Password, tls: tt.tls}
			err := a.connect(t, p.addr).Ping()
			var refused *mysql.MySQLError
			if !errors.As(err, &refused) || refused.Number != tt.errno {
				t.Fatalf("error %v, want %d", err, tt.errno)
			}
			for _, want := range tt.want {
				if !strings.Contains(refused.Message, want) {
					t.Errorf("error %q does not say %q", refused.Message, want)
				}
			}
			waitForRejected(t, p, 1)
			for _, rec := range p.records(t) {
				if rec.Kind == capture.KindSessionEnd && (rec.End.Reason != capture.EndRejected || rec.End.Errno != tt.errno) {
					t.Errorf("recorded as %d with error %d (%s), want rejected with %d", rec.End.Reason, rec.End.Errno, rec.End.Detail, tt.errno)
				}
			}
		})
	}
}

// A client that insists on TLS finds none offered, and says so itself; one that begins TLS all the same is told why not.
func TestTLSNotOffered(t *testing.T) {
	p := start(t, mysqltest.Shared(t).Addr)
	a := account{user: mysqltest.User, password: mysqltest.Password, tls: &tls.Config{InsecureSkipVerify: true}}
	if err := a.connect(t, p.addr).Ping(); !errors.Is(err, mysql.ErrNoTLS) {
		t.Errorf("error %v, want %v", err, mysql.ErrNoTLS)
	}
	conn, err := net.Dial("tcp", p.addr)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	readPacket(t, conn)
	response := wire.HandshakeResponse{Capabilities: wire.Protocol41 | wire.SSL}
	request, _ := wire.AppendPacket(nil, 1, response.AppendSSLRequest(nil))
	conn.Write(append(request, "\x16\x03\x01and so on"...))
	if answer := wire.ParseError(readPacket(t, conn)); answer.Errno != 1105 || !strings.Contains(answer.Message, "--tls-cert") {
		t.Errorf("answer %+v, want 1105 that names --tls-cert", answer)
	}
}

// Connections of a client that fails TLS, or goes away before or within its login, come to an end on both sides.
func TestLoginsBrokenOff(t *testing.T) {
	certificate := mysqltest.NewCertificate(t)
	server := mysqltest.Shared(t)
	var log mysqltest.Printed
	p := start(t, server.Addr, clientTLS(certificate), logInto(&log))
	sslRequest, _ := wire.AppendPacket(nil, 1, (&wire.HandshakeResponse{Capabilities: wire.Protocol41 | wire.SSL}).AppendSSLRequest(nil))
	half, _ := wire.AppendPacket(nil, 1, (&wire.HandshakeResponse{Capabilities: wire.Protocol41, User: "u"}).Append(nil))
	for _, sent := range [][]byte{
		nil, half[:3], half[:20], sslRequest, append(sslRequest[:len(sslRequest):len(sslRequest)], "garbage instead of a ClientHello"...),
		[]byte("GET / HTTP/1.1\r\nHost: example.org\r\n\r\n"),
		{0xFF, 0xFF, 0xFF, 0},
	} {
		conn, err := net.Dial("tcp", p.addr)
		if err != nil {
			t.Fatal(err)
		}
		readPacket(t, conn)
		conn.Write(sent)
		conn.Close()
	}
	waitFor(t, "all connections to end", func() bool { return p.Totals().Open == 0 })
	if err := (account{user: mysqltest.User, password: mysqltest.Password}).connect(t, p.addr).Ping(); err != nil {
		t.Errorf("afterwards: %v", err)
	}
	if !strings.Contains(log.String(), "TLS with the client") {
		t.Errorf("the log does not tell of the TLS that failed:\n%s", log.String())
	}
}

// waitForRejected waits until so many logins were recorded as rejected: a proxy that is stopped before would record that.
func waitForRejected(t *testing.T, p *running, n int) {
	t.Helper()
	waitFor(t, "logins to be rejected", func() bool { return p.Totals().Rejected == uint64(n) })
}

func waitFor(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for ctx := t.Context(); !ok(); {
		select {
		case <-ctx.Done():
			t.Fatalf("gave up waiting for %s", what)
		case <-time.After(time.Millisecond):
		}
	}
}

// dialUnix reaches a backend by its Unix socket.
func dialUnix(path string) func(*proxy.Proxy) {
	return func(p *proxy.Proxy) {
		p.Dial = func(ctx context.Context) (net.Conn, error) {
			var d net.Dialer
			return d.DialContext(ctx, "unix", path)
		}
	}
}
