package client_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"log/slog"
	"math/big"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-mysql-org/go-mysql/mysql"
	"github.com/go-mysql-org/go-mysql/server"

	"redrive/internal/client"
	"redrive/internal/mysqltest"
	"redrive/internal/wire"
)

func TestConfigHidesThePassword(t *testing.T) {
	config := client.Config{Address: "db:3306", User: "u", Password: secret}
	var log bytes.Buffer
	slog.New(slog.NewTextHandler(&log, nil)).Info("config", "value", config, "pointer", &config)
	encoded, err := json.Marshal(config)
	if err != nil {
		t.Fatal(err)
	}
	shown := []string{config.String(), log.String(), string(encoded)}
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d"} {
		shown = append(shown, fmt.Sprintf(verb, config), fmt.Sprintf(verb, &config))
	}
	hexed := fmt.Sprintf("%x", secret)
	for _, s := range shown {
		if strings.Contains(s, secret) || strings.Contains(s, hexed) {
			t.Errorf("the password shows in %q", s)
		}
		if !strings.Contains(s, "u@db:3306") {
			t.Errorf("%q does not name the account", s)
		}
	}
}

func TestParseTLSMode(t *testing.T) {
	for text, want := range map[string]client.TLSMode{
		"disabled": client.TLSDisabled, "PREFERRED": client.TLSPreferred, "required": client.TLSRequired,
		"verify-ca": client.TLSVerifyCA, "VERIFY_CA": client.TLSVerifyCA, "verify_identity": client.TLSVerifyIdentity,
	} {
		if got, err := client.ParseTLSMode(text); got != want || err != nil {
			t.Errorf("ParseTLSMode(%q) = %v, %v, want %v", text, got, err, want)
		}
	}
	if _, err := client.ParseTLSMode("on"); err == nil || !strings.Contains(err.Error(), "verify-identity") {
		t.Errorf("ParseTLSMode(on) fails with %v, want the modes named", err)
	}
}

// What the server sends is the same whether it comes at once or byte by byte.
func TestLoginByteByByte(t *testing.T) {
	config := client.Config{User: "u", Password: secret, Schema: "s"}
	login := client.NewLogin(&config)
	feed := func(b []byte) (sent []byte) {
		for i := range b {
			send, err := login.Feed(b[i : i+1])
			if err != nil {
				t.Fatal(err)
			}
			sent = append(sent, send...)
		}
		return sent
	}
	sent := feed(greetingPacket(serverCaps, "mysql_native_password"))
	if len(sent) < wire.HeaderLen || sent[3] != 1 {
		t.Fatalf("answer to the greeting % x, want a packet numbered 1", sent)
	}
	h, err := wire.ParseHandshakeResponse(sent[wire.HeaderLen:], serverCaps)
	if err != nil {
		t.Fatal(err)
	}
	if h.User != "u" || h.Schema != "s" || h.Plugin != "mysql_native_password" || h.Collation != 45 {
		t.Errorf("answer %q, schema %q, plugin %q, collation %d; want u, s, mysql_native_password, 45", h.User, h.Schema, h.Plugin, h.Collation)
	}
	if h.Capabilities&^serverCaps != 0 {
		t.Errorf("asked for %x, which the server does not offer", h.Capabilities&^serverCaps)
	}
	if more := feed(okPacket(2, wire.OK{Status: 2})); len(more) != 0 || !login.Done() || login.Status != 2 {
		t.Errorf("after the OK: %d bytes to send, done %v, status %d; want 0, true, 2", len(more), login.Done(), login.Status)
	}
	if login.Greeting.ConnectionID != 7 || login.Greeting.ServerVersion != "8.0.99-test" {
		t.Errorf("connection %d of %q, want 7 of 8.0.99-test", login.Greeting.ConnectionID, login.Greeting.ServerVersion)
	}
}

func TestLoginRefusals(t *testing.T) {
	switchTo := func(plugin string) []byte {
		return packet(2, append(append([]byte{0xFE}, plugin...), "\x00abcdefghijklmnopqrst\x00"...))
	}
	native := greetingPacket(serverCaps, "mysql_native_password")
	tests := []struct {
		name   string
		config client.Config
		feeds  [][]byte
		want   string
	}{
		{"unknown plugin", client.Config{}, [][]byte{native, switchTo("dialog")}, `"dialog", which is not supported`},
		{"scramble of before 4.1", client.Config{}, [][]byte{native, packet(2, []byte{0xFE})}, "mysql_old_password"},
		{"password in clear over plain TCP", client.Config{Password: secret}, [][]byte{native, switchTo("mysql_clear_password")}, "only done over TLS"},
		{"password in clear over a socket", client.Config{Network: "unix", Password: secret}, [][]byte{native, switchTo("mysql_clear_password")}, "only done over TLS"},
		{"short nonce", client.Config{}, [][]byte{native, switchTo("client_ed25519")}, "21 bytes of nonce"},
		{"a key that is none", client.Config{}, [][]byte{greetingPacket(serverCaps, "caching_sha2_password"), packet(2, []byte("\x01-----BEGIN"))}, "not PEM"},
		{"too many connections", client.Config{}, [][]byte{packet(0, []byte("\xff\x10\x04Too many connections"))}, "error 1040: Too many connections"},
		{"not MySQL", client.Config{}, [][]byte{packet(0, []byte("SSH-2.0"))}, "protocol version 83"},
		{"no end", client.Config{}, [][]byte{packet(0, make([]byte, 2<<20))}, "packet of more than"},
		{"empty packet", client.Config{}, [][]byte{packet(0, nil)}, "empty packet"},
		{"TLS not offered", client.Config{TLSMode: client.TLSRequired}, [][]byte{native}, "does not offer it"},
		{"nonsense for an answer", client.Config{}, [][]byte{native, packet(2, []byte("what?"))}, "beginning with 77"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			login := client.NewLogin(&test.config)
			var err error
			for i, b := range test.feeds {
				if err != nil {
					t.Fatalf("feed %d: %v", i, err)
				}
				_, err = login.Feed(b)
			}
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error %v, want one with %q", err, test.want)
			}
			if err != nil && strings.Contains(err.Error(), secret) {
				t.Errorf("the password shows in %q", err)
			}
		})
	}
}

func FuzzLogin(f *testing.F) {
	f.Add(greetingPacket(serverCaps, "caching_sha2_password"), packet(2, []byte{1, 4}), true)
	f.Add(greetingPacket(serverCaps|wire.SSL, "x"), okPacket(2, wire.OK{}), false)
	f.Fuzz(func(t *testing.T, first, second []byte, tls bool) {
		config := client.Config{User: "u", Password: secret}
		if tls {
			config.TLSMode = client.TLSRequired
		}
		login := client.NewLogin(&config)
		for _, b := range [][]byte{first, second} {
			send, err := login.Feed(b)
			if err != nil {
				return
			}
			if bytes.Contains(send, []byte(secret)) {
				t.Fatal("the password went out in clear")
			}
			if login.WantsTLS() {
				return
			}
		}
	})
}

type ownCertificate struct {
	certificate tls.Certificate
	publicKey   []byte // PEM
}

// certificate is a server's certificate, its own authority, for the name db.example.
var certificate = sync.OnceValue(func() ownCertificate {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		panic(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), DNSNames: []string{"db.example"},
		IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		panic(err)
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		panic(err)
	}
	public, err := x509.MarshalPKIXPublicKey(&key.PublicKey)
	if err != nil {
		panic(err)
	}
	return ownCertificate{
		certificate: tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key, Leaf: leaf},
		publicKey:   pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: public}),
	}
})

// provider is a store of passwords other than go-mysql's own, for which its server never asks a full authentication.
type provider struct{}

func (provider) CheckUsername(user string) (bool, error)    { return user == "u", nil }
func (provider) GetCredential(string) (string, bool, error) { return secret, true, nil }

// serveGoMySQL plays a server by go-mysql's server package: MariaDB knows neither caching_sha2_password nor
// sha256_password.
func serveGoMySQL(t *testing.T, plugin string) string {
	t.Helper()
	own := certificate()
	s := server.NewServer("8.0.12", mysql.DEFAULT_COLLATION_ID, plugin, own.publicKey, &tls.Config{Certificates: []tls.Certificate{own.certificate}})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var running sync.WaitGroup
	running.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			running.Go(func() {
				defer c.Close()
				conn, err := s.NewCustomizedConn(c, provider{}, server.EmptyHandler{})
				for err == nil {
					err = conn.HandleCommand()
				}
			})
		}
	})
	t.Cleanup(func() { l.Close(); running.Wait() })
	return l.Addr().String()
}

func TestLoginAtGoMySQL(t *testing.T) {
	trusted := x509.NewCertPool()
	trusted.AddCert(certificate().certificate.Leaf)
	for _, plugin := range []string{mysql.AUTH_NATIVE_PASSWORD, mysql.AUTH_CACHING_SHA2_PASSWORD, mysql.AUTH_SHA256_PASSWORD} {
		for _, mode := range []client.TLSMode{client.TLSDisabled, client.TLSPreferred, client.TLSRequired, client.TLSVerifyCA} {
			t.Run(plugin+" "+mode.String(), func(t *testing.T) {
				address := serveGoMySQL(t, plugin)
				config := client.Config{Address: address, User: "u", Password: secret, TLSMode: mode, TLS: &tls.Config{RootCAs: trusted}}
				for _, round := range []string{"full", "fast"} { // the second login finds caching_sha2_password's cache warm
					conn, err := client.Dial(t.Context(), config)
					if err != nil {
						t.Fatalf("%s: %v", round, err)
					}
					if reply, _, err := conn.Do([]byte{wire.ComPing}); err != nil || reply.Outcome.Errno != 0 {
						t.Errorf("%s: ping: %v, %v", round, err, conn.LastError())
					}
					conn.Close()
				}
				config.Password = "wrong"
				if _, err := client.Dial(t.Context(), config); refusal(t, err).Errno != 1045 {
					t.Errorf("wrong password: %v, want error 1045", err)
				}
			})
		}
	}
}

func TestTLSVerification(t *testing.T) {
	address := serveGoMySQL(t, mysql.AUTH_NATIVE_PASSWORD)
	trusted := x509.NewCertPool()
	trusted.AddCert(certificate().certificate.Leaf)
	config := client.Config{Address: address, User: "u", Password: secret, TLSMode: client.TLSVerifyCA}
	if _, err := client.Dial(t.Context(), config); err == nil || !strings.Contains(err.Error(), "unknown authority") {
		t.Errorf("verify-ca without the authority: %v, want it named unknown", err)
	}
	config.TLSMode, config.TLS = client.TLSVerifyIdentity, &tls.Config{RootCAs: trusted}
	if _, err := client.Dial(t.Context(), config); err == nil || !strings.Contains(err.Error(), "127.0.0.1") {
		t.Errorf("verify-identity of a certificate for another name: %v, want the name", err)
	}
	config.TLS.ServerName = "db.example"
	conn, err := client.Dial(t.Context(), config)
	if err != nil {
		t.Fatalf("verify-identity of the certificate's own name: %v", err)
	}
	conn.Close()
}

func TestLoginAtMariaDB(t *testing.T) {
	s := mysqltest.Shared(t)
	schema := s.Schema(t)
	s.CreateUser(t, "plain", secret)
	s.CreateUser(t, "nobody", "")
	s.Exec(t, "INSTALL SONAME 'auth_ed25519'", "CREATE OR REPLACE USER signer@'%' IDENTIFIED VIA ed25519 USING PASSWORD('"+secret+"')",
		"GRANT ALL ON *.* TO signer@'%'")
	t.Cleanup(func() { s.Exec(t, "DROP USER signer@'%'", "UNINSTALL SONAME 'auth_ed25519'") })

	tests := []struct {
		name   string
		config client.Config
		errno  uint16
	}{
		{"native", client.Config{Address: s.Addr, User: "plain", Password: secret, Schema: schema}, 0},
		{"native, Unix socket", client.Config{Network: "unix", Address: s.Socket, User: "plain", Password: secret, Schema: schema}, 0},
		{"no password", client.Config{Address: s.Addr, User: "nobody", Schema: schema}, 0},
		{"ed25519", client.Config{Address: s.Addr, User: "signer", Password: secret, Schema: schema}, 0},
		{"preferred TLS that is not offered", client.Config{Address: s.Addr, User: "plain", Password: secret, Schema: schema, TLSMode: client.TLSPreferred}, 0},
		{"wrong password", client.Config{Address: s.Addr, User: "plain", Password: "wrong"}, 1045},
		{"wrong password, ed25519", client.Config{Address: s.Addr, User: "signer", Password: "wrong"}, 1045},
		{"unknown schema", client.Config{Address: s.Addr, User: "plain", Password: secret, Schema: "no_such"}, 1049},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			test.config.Attributes = []wire.Attribute{{Name: "program_name", Value: "redrive-test"}}
			conn, err := client.Dial(t.Context(), test.config)
			if test.errno != 0 {
				if e := refusal(t, err); e.Errno != test.errno {
					t.Errorf("error %v, want %d", e, test.errno)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			if reply, _, err := conn.Query("CREATE TABLE IF NOT EXISTS t (i INT)"); err != nil || reply.Outcome.Errno != 0 {
				t.Errorf("a table in schema %s: %v, %v", schema, err, conn.LastError())
			}
			if conn.Login.Status&wire.StatusAutocommit == 0 || !conn.Capabilities().Has(wire.CacheMetadata) {
				t.Errorf("status %04x, capabilities %x: want autocommit and metadata caching", conn.Login.Status, conn.Capabilities())
			}
		})
	}
}

func TestDialNobody(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
	if _, err := client.Dial(context.Background(), client.Config{Address: l.Addr().String()}); err == nil || !strings.Contains(err.Error(), l.Addr().String()) {
		t.Errorf("Dial of a closed port: %v, want the address", err)
	}
}
