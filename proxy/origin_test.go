package proxy_test

import (
	"io"
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"

	"redrive/capture"
	"redrive/internal/mysqltest"
	"redrive/internal/proxyproto"
	"redrive/internal/wire"
	"redrive/proxy"
)

func mustHeader(source, destination string) proxyproto.Header {
	return proxyproto.Header{Source: netip.MustParseAddrPort(source), Destination: netip.MustParseAddrPort(destination)}
}

func requireHeader(p *proxy.Proxy) {
	p.ProxyProtocolFrom = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}
}

// A client's address comes from the header that a load balancer puts in front, and goes on to the server in another.
func TestProxyProtocol(t *testing.T) {
	server := secured(t)
	v4, v6 := mustHeader("192.0.2.7:40000", "198.51.100.1:3306"), mustHeader("[2001:db8::7]:41000", "[2001:db8::1]:3306")
	tests := []struct {
		name    string
		sent    []byte // nil: none, and none is wanted
		version int    // to the server
		client  string // as recorded; of the test's own socket if empty
		seen    string // by the server
	}{
		{"v1 in, v1 out", v4.AppendV1(nil), 1, "192.0.2.7:40000", "192.0.2.7:40000"},
		{"v2 in, v2 out", v4.AppendV2(nil), 2, "192.0.2.7:40000", "192.0.2.7:40000"},
		{"v2 of IPv6 in, v1 out", v6.AppendV2(nil), 1, "[2001:db8::7]:41000", "2001:db8::7:41000"},
		{"v1 of IPv6 in, v2 out", v6.AppendV1(nil), 2, "[2001:db8::7]:41000", "2001:db8::7:41000"},
		{"v1 in, none out", v4.AppendV1(nil), 0, "192.0.2.7:40000", "127.0.0.1:"},
		{"unknown in, v1 out", []byte("PROXY UNKNOWN\r\n"), 1, "", ""},
		{"local in, v2 out", proxyproto.Header{}.AppendV2(nil), 2, "", ""},
		{"none in, v1 out", nil, 1, "", ""},
		{"none in, v2 out", nil, 2, "", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			set := []func(*proxy.Proxy){backendTLS(server.certificate, server.Addr), func(p *proxy.Proxy) { p.BackendProxyProtocol = tt.version }}
			if tt.sent != nil {
				set = append(set, requireHeader)
			}
			p := start(t, server.Addr, set...)
			front := balancer(t, p.addr, tt.sent)
			var seen string
			db := account{user: mysqltest.User, password: mysqltest.Password}.connect(t, front.addr)
			if err := db.QueryRow("SELECT host FROM information_schema.processlist WHERE id = CONNECTION_ID()").Scan(&seen); err != nil {
				t.Fatal(err)
			}
			own := front.dialed()
			if tt.seen == "" {
				tt.seen = own
			}
			if tt.client == "" {
				tt.client = own
			}
			if !strings.HasPrefix(seen, tt.seen) {
				t.Errorf("the server sees %s, want %s", seen, tt.seen)
			}
			for _, rec := range p.records(t) {
				if rec.Kind == capture.KindSessionStart && rec.Start.Client != tt.client {
					t.Errorf("client %s recorded, want %s", rec.Start.Client, tt.client)
				}
			}
		})
	}
}

// A front passes connections on behind a header.
type front struct {
	addr string
	own  chan string
}

// dialed is the address from which the front reached the proxy.
func (f *front) dialed() string { return <-f.own }

// balancer passes one connection on to addr, with a header in front.
func balancer(t *testing.T, addr string, header []byte) *front {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	f := &front{addr: listener.Addr().String(), own: make(chan string, 1)}
	t.Cleanup(func() { listener.Close() })
	go func() {
		client, err := listener.Accept()
		if err != nil {
			return
		}
		defer client.Close()
		onward, err := net.Dial("tcp", addr)
		if err != nil {
			return
		}
		defer onward.Close()
		f.own <- onward.LocalAddr().String()
		onward.Write(header)
		go func() { io.Copy(onward, client); onward.Close() }()
		io.Copy(client, onward)
	}()
	return f
}

// The header is there before the server has said a word: some wait for it.
func TestHeaderBeforeGreeting(t *testing.T) {
	got := make(chan proxyproto.Header, 1)
	peer := mysqltest.NewPeer(t, func(c *mysqltest.PeerConn) {
		h, err := proxyproto.Read(c.Conn)
		if err != nil {
			t.Error(err)
			return
		}
		got <- h
		c.Accept("8.0.11-TiDB-v8.5.0", wire.Protocol41|wire.SecureConnection|wire.PluginAuth)
	})
	p := start(t, peer.Addr, func(p *proxy.Proxy) { p.BackendProxyProtocol = 2 })
	conn := handshake(t, p.addr)
	if h := <-got; h.Source.String() != conn.LocalAddr().String() || h.Destination.String() != p.addr {
		t.Errorf("header %v, want from %s to %s", h, conn.LocalAddr(), p.addr)
	}
}

// Who must send a header and does not is cut off, with a line in the log; so is who must not and does.
func TestHeadersRefused(t *testing.T) {
	peer := mysqltest.NewPeer(t, func(c *mysqltest.PeerConn) {
		c.Greet("10.11", wire.Protocol41|wire.SecureConnection|wire.PluginAuth)
		expectFarewell(t, c)
	})
	tests := []struct {
		name, sent, log string
		set             func(*proxy.Proxy)
		reason          capture.EndReason
	}{
		{"none", "\x20\x00\x00\x01 a login packet of a client", "no PROXY header", requireHeader, capture.EndRejected},
		{"cut", "PROXY TCP4 192.0.2.7 198.", "cut after 25 bytes", requireHeader, capture.EndRejected},
		{"malformed", "PROXY TCP4 192.0.2.7 198.51.100.1 1 x\r\n", "port", requireHeader, capture.EndRejected},
		{"a health check", "", "", requireHeader, capture.EndClient},
		{"late", "late", "i/o timeout", func(p *proxy.Proxy) { requireHeader(p); p.HeaderTimeout = time.Millisecond }, capture.EndRejected},
		{"unasked", "PROXY TCP4 192.0.2.7 198.51.100.1 1 2\r\n", "--proxy-protocol-from", func(*proxy.Proxy) {}, capture.EndRejected},
		{"unasked, of version 2", "\r\n\r\n\x00\r\nQUIT\n\x20\x00\x00\x00", "--proxy-protocol-from", func(*proxy.Proxy) {}, capture.EndRejected},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var log mysqltest.Printed
			p := start(t, peer.Addr, tt.set, logInto(&log))
			conn, err := net.Dial("tcp", p.addr)
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			if tt.sent != "late" {
				io.WriteString(conn, tt.sent)
				conn.(*net.TCPConn).CloseWrite()
			}
			io.Copy(io.Discard, conn) // until the proxy hangs up
			waitFor(t, "the connection to end", func() bool { return p.Totals().Open == 0 && p.Totals().Connections == 1 })
			ends := 0
			for _, rec := range p.records(t) {
				if rec.Kind == capture.KindSessionEnd {
					if ends++; rec.End.Reason != tt.reason {
						t.Errorf("recorded as %d (%s), want %d", rec.End.Reason, rec.End.Detail, tt.reason)
					}
				}
			}
			if ends != 1 {
				t.Errorf("%d ends recorded, want 1", ends)
			}
			lines := strings.Count(log.String(), "\n")
			if want := min(1, len(tt.log)); lines != want || !strings.Contains(log.String(), tt.log) {
				t.Errorf("%d lines logged, want %d with %q:\n%s", lines, want, tt.log, log.String())
			}
		})
	}
}
