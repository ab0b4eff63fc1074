package main

import (
	"crypto/tls"
	"net"
	"testing"

	"github.com/spf13/pflag"

	"redrive/internal/mysqltest"
	"redrive/proxy"
)

// legsOf is what flags come to.
func legsOf(t *testing.T, args ...string) (*proxyLegOptions, *proxy.Proxy) {
	t.Helper()
	set := pflag.NewFlagSet("test", pflag.ContinueOnError)
	var o proxyLegOptions
	o.addFlags(set)
	if err := set.Parse(args); err != nil {
		t.Fatal(err)
	}
	var p proxy.Proxy
	if err := o.apply(&p, "tcp", "db.example:3306"); err != nil {
		t.Fatalf("%q: %v", args, err)
	}
	return &o, &p
}

func TestProxyLegs(t *testing.T) {
	c := mysqltest.NewCertificate(t)
	show := []string{"--tls-cert", c.Cert, "--tls-key", c.Key}
	tests := []struct {
		name                           string
		args                           []string
		offered, passed, tls, optional bool
		insecure                       bool // nothing verified by crypto/tls itself
		mode, backend                  string
	}{
		{name: "nothing", mode: "withhold", backend: "disabled"},
		{name: "a certificate", args: show, offered: true, tls: true, optional: true, insecure: true, mode: "terminate", backend: "preferred"},
		{name: "a certificate, plain behind", args: append(show[:4:4], "--backend-ssl-mode", "DISABLED"), offered: true, mode: "terminate", backend: "DISABLED"},
		{name: "TLS behind", args: []string{"--backend-ssl-mode", "required"}, tls: true, insecure: true, mode: "withhold", backend: "required"},
		{name: "an authority", args: []string{"--backend-ssl-ca", c.CA}, tls: true, insecure: true, mode: "withhold", backend: "verify-ca"},
		{name: "the name too", args: []string{"--backend-ssl-ca", c.CA, "--backend-ssl-mode", "VERIFY_IDENTITY"}, tls: true, mode: "withhold", backend: "VERIFY_IDENTITY"},
		{name: "passed through", args: []string{"--tls", "passthrough"}, passed: true, mode: "passthrough"},
	}
	for _, tt := range tests {
		o, p := legsOf(t, tt.args...)
		if (p.ClientTLS != nil) != tt.offered || p.PassThrough != tt.passed || (p.BackendTLS != nil) != tt.tls || p.BackendTLSOptional != tt.optional {
			t.Errorf("%s: offered %t, passed %t, TLS behind %t, optional %t", tt.name, p.ClientTLS != nil, p.PassThrough, p.BackendTLS != nil, p.BackendTLSOptional)
		}
		if p.BackendTLS != nil && (p.BackendTLS.InsecureSkipVerify != tt.insecure || p.BackendTLS.ServerName != "db.example") {
			t.Errorf("%s: skips verification %t, name %q", tt.name, p.BackendTLS.InsecureSkipVerify, p.BackendTLS.ServerName)
		}
		settings := map[string]string{}
		o.settings(settings)
		if settings["tls"] != tt.mode || settings["backend-ssl-mode"] != tt.backend {
			t.Errorf("%s: header says %v, want tls %q and backend-ssl-mode %q", tt.name, settings, tt.mode, tt.backend)
		}
	}
}

// A server of old, with TLS 1.0 alone, is reached only by those who ask for it.
func TestLegacyTLS(t *testing.T) {
	c := mysqltest.NewCertificate(t)
	for _, tt := range []struct {
		args []string
		ok   bool
	}{{[]string{"--backend-ssl-mode", "required"}, false}, {[]string{"--backend-ssl-mode", "required", "--backend-ssl-legacy"}, true}} {
		_, p := legsOf(t, tt.args...)
		ours, theirs := net.Pipe()
		old := tls.Server(theirs, &tls.Config{Certificates: []tls.Certificate{c.TLS}, MinVersion: tls.VersionTLS10, MaxVersion: tls.VersionTLS10})
		go func() { old.Handshake(); theirs.Close() }()
		if err := tls.Client(ours, p.BackendTLS).Handshake(); (err == nil) != tt.ok {
			t.Errorf("%q: %v, want it to work: %t", tt.args, err, tt.ok)
		}
		ours.Close()
	}
}

func TestProxyProtocolFlags(t *testing.T) {
	_, p := legsOf(t, "--proxy-protocol-from", "10.1.2.3/8, 192.0.2.7,::1", "--backend-proxy-protocol", "v2")
	var got []string
	for _, n := range p.ProxyProtocolFrom {
		got = append(got, n.String())
	}
	if want := []string{"10.0.0.0/8", "192.0.2.7/32", "::1/128"}; len(got) != 3 || got[0] != want[0] || got[1] != want[1] || got[2] != want[2] {
		t.Errorf("networks %q, want %q", got, want)
	}
	if p.BackendProxyProtocol != 2 {
		t.Errorf("version %d, want 2", p.BackendProxyProtocol)
	}
}
