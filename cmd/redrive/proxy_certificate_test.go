package main

import (
	"crypto/tls"
	"crypto/x509"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/go-sql-driver/mysql"

	"redrive/internal/mysqltest"
)

// SIGHUP reads the certificate anew: new connections are shown it, old ones go on, and a bad one is not taken.
func TestCertificateReload(t *testing.T) {
	server := mysqltest.Shared(t)
	shown, next := mysqltest.NewCertificate(t), mysqltest.NewCertificate(t)
	p := startProxy(t, server.Addr, "--tls-cert", shown.Cert, "--tls-key", shown.Key)
	trusting := func(roots *x509.CertPool) error {
		return connect(t, p.addr, func(c *mysql.Config) { c.TLS = &tls.Config{RootCAs: roots, ServerName: "localhost"} }).Ping()
	}
	old := connect(t, p.addr, func(c *mysql.Config) { c.TLS = &tls.Config{RootCAs: shown.Roots, ServerName: "localhost"} })
	var session int
	if err := old.QueryRow("SELECT CONNECTION_ID()").Scan(&session); err != nil {
		t.Fatal(err)
	}
	check := func(when string, want, other *x509.CertPool) {
		t.Helper()
		if err := trusting(want); err != nil {
			t.Errorf("%s: %v", when, err)
		}
		if err := trusting(other); err == nil || !strings.Contains(err.Error(), "unknown authority") {
			t.Errorf("%s, with the other authority: %v, want it unknown", when, err)
		}
	}
	check("before", shown.Roots, next.Roots)
	replace(t, shown.Cert, next.Cert)
	p.process.Signal(syscall.SIGHUP) // between the two files
	p.await(t, `certificate is kept as it was.*`+shown.Cert+`.*private key does not match`)
	check("with the certificate replaced and not its key", shown.Roots, next.Roots)
	replace(t, shown.Key, next.Key)
	p.process.Signal(syscall.SIGHUP)
	p.await(t, `msg="certificate read"`)
	check("with both replaced", next.Roots, shown.Roots)
	if err := os.WriteFile(shown.Cert, []byte("no certificate"), 0o600); err != nil {
		t.Fatal(err)
	}
	p.process.Signal(syscall.SIGHUP)
	p.await(t, `certificate is kept as it was.*`+shown.Cert+`.*failed to find any PEM data`)
	check("with one that is none", next.Roots, shown.Roots)
	var still int
	if err := old.QueryRow("SELECT CONNECTION_ID()").Scan(&still); err != nil || still != session {
		t.Errorf("the connection from before is session %d, %v, want %d", still, err, session)
	}
	if text := p.text(); strings.Contains(text, "PRIVATE KEY") || strings.Contains(text, "rotated") {
		t.Errorf("printed\n%s", text)
	}
}

// replace puts the contents of another file into a file.
func replace(t *testing.T, file, by string) {
	t.Helper()
	content, err := os.ReadFile(by)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, content, 0o600); err != nil {
		t.Fatal(err)
	}
}

// Towards a server, too, the certificate is the one that was read last; a server that asks for one of other authorities
// gets none.
func TestCertificateForServer(t *testing.T) {
	first, second := mysqltest.NewCertificate(t), mysqltest.NewCertificate(t)
	pair, err := newKeyPair(first.Cert, first.Key)
	if err != nil {
		t.Fatal(err)
	}
	asked := func(by *mysqltest.Certificate) []byte {
		t.Helper()
		request := &tls.CertificateRequestInfo{Version: tls.VersionTLS13, SignatureSchemes: []tls.SignatureScheme{tls.ECDSAWithP256AndSHA256}}
		if by != nil {
			issuer, err := x509.ParseCertificate(by.TLS.Certificate[0])
			if err != nil {
				t.Fatal(err)
			}
			request.AcceptableCAs = [][]byte{issuer.RawIssuer}
		}
		got, err := pair.forServer(request)
		if err != nil || got == nil {
			t.Fatalf("forServer: %v, %v", got, err)
		}
		if len(got.Certificate) == 0 {
			return nil
		}
		return got.Certificate[0]
	}
	if got := asked(nil); string(got) != string(first.TLS.Certificate[0]) {
		t.Error("a server that takes any was not shown the certificate")
	}
	if got := asked(first); string(got) != string(first.TLS.Certificate[0]) {
		t.Error("a server that takes its authority's was not shown the certificate")
	}
	request := &tls.CertificateRequestInfo{Version: tls.VersionTLS13, SignatureSchemes: []tls.SignatureScheme{tls.ECDSAWithP256AndSHA256}, AcceptableCAs: [][]byte{[]byte("another")}}
	if got, err := pair.forServer(request); err != nil || got == nil || len(got.Certificate) > 0 {
		t.Errorf("a server that takes others' only: %v, %v, want a certificate with nothing in it", got, err)
	}
	replace(t, first.Cert, second.Cert)
	replace(t, first.Key, second.Key)
	if err := pair.load(); err != nil {
		t.Fatal(err)
	}
	if got := asked(nil); string(got) != string(second.TLS.Certificate[0]) {
		t.Error("after a change: not the new certificate")
	}
}
