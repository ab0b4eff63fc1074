package proxy_test

import (
	"crypto/tls"
	"net"
	"strings"
	"testing"

	"redrive/internal/mysqltest"
	"redrive/internal/wire"
)

// A change of user may carry the password that the client trusts to TLS: it does not go on in clear, whatever it comes in
// one piece with and in however many pieces it comes; what stands around it does.
func TestUserChangeIsNotSentInClear(t *testing.T) {
	const secret = "Changed-4715"
	certificate := mysqltest.NewCertificate(t)
	offer := wire.Protocol41 | wire.SecureConnection | wire.PluginAuth
	closing := []byte{wire.ComStmtClose, 1, 0, 0, 0}
	ok := []byte("\x00\x00\x00\x02\x00\x00\x00")
	peer := mysqltest.NewPeer(t, func(c *mysqltest.PeerConn) {
		c.Accept("8.0.36", offer)
		c.Expect(closing)
		c.Expect([]byte{wire.ComPing})
		c.SendPacket(ok)
		c.Next()
	})
	var commands []byte
	for _, payload := range [][]byte{closing, append([]byte("\x11other\x00\x0c"+secret+"app\x00\x2d\x00mysql_clear_password\x00"), 0)} {
		packet, _ := wire.AppendPacket(nil, 0, payload)
		commands = append(commands, packet...)
	}
	for _, piece := range []int{len(commands), 1, 4, 11} {
		var log mysqltest.Printed
		p := start(t, peer.Addr, clientTLS(certificate), logInto(&log))
		secured := securedLogin(t, p.addr, certificate, offer)
		for rest := commands; len(rest) > 0; rest = rest[min(piece, len(rest)):] {
			secured.Write(rest[:min(piece, len(rest))]) // a record of TLS each
		}
		if refused := wire.ParseError(readPacket(t, secured)); refused.Errno != 1105 || !strings.Contains(refused.Message, "--backend-ssl-mode") {
			t.Errorf("in pieces of %d: answered by %+v, want 1105 that names --backend-ssl-mode", piece, refused)
		}
		send(secured, 0, []byte{wire.ComPing})
		if answer := readPacket(t, secured); answer[0] != 0 {
			t.Errorf("in pieces of %d: the session goes on with %q, want OK", piece, answer)
		}
		secured.Close()
		checkNoSecret(t, p, &log, secret)
	}
}

// Behind a command that has no answer yet a change of user can be refused by no packet: the connection ends.
func TestUserChangePipelined(t *testing.T) {
	const secret = "Changed-4716"
	certificate := mysqltest.NewCertificate(t)
	offer := wire.Protocol41 | wire.SecureConnection | wire.PluginAuth
	behind := make(chan []byte, 1)
	peer := mysqltest.NewPeer(t, func(c *mysqltest.PeerConn) {
		c.Accept("8.0.36", offer)
		c.Expect([]byte{wire.ComPing})
		more, _ := c.Next()
		behind <- more
	})
	var log mysqltest.Printed
	p := start(t, peer.Addr, clientTLS(certificate), logInto(&log))
	secured := securedLogin(t, p.addr, certificate, offer)
	commands, _ := wire.AppendPacket(nil, 0, []byte{wire.ComPing})
	commands, _ = wire.AppendPacket(commands, 0, append([]byte("\x11other\x00\x0c"+secret+"app\x00\x2d\x00mysql_clear_password\x00"), 0))
	secured.Write(commands)
	if more := <-behind; len(more) > 0 {
		t.Errorf("the server got %q behind the ping, want the connection to end", more)
	}
	checkNoSecret(t, p, &log, secret)
	if !strings.Contains(log.String(), "--backend-ssl-mode") {
		t.Errorf("the log does not tell why: %s", log.String())
	}
}

// securedLogin logs in over TLS at a peer that takes anybody.
func securedLogin(t *testing.T, addr string, certificate *mysqltest.Certificate, offer wire.Capabilities) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	readPacket(t, conn)
	h := wire.HandshakeResponse{Capabilities: offer | wire.SSL, User: "u", Plugin: wire.PluginNative}
	send(conn, 1, h.AppendSSLRequest(nil))
	secured := tls.Client(conn, &tls.Config{RootCAs: certificate.Roots, ServerName: "localhost"})
	send(secured, 2, h.Append(nil))
	readPacket(t, secured)
	return secured
}
