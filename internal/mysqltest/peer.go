package mysqltest

import (
	"bytes"
	"errors"
	"io"
	"net"
	"runtime"
	"sync"
	"testing"

	"redrive/internal/wire"
)

// A Peer is a server that does what a script says, on a port of 127.0.0.1. It lasts as long as the test.
type Peer struct {
	Addr string // host:port

	t        testing.TB
	listener net.Listener
	script   func(*PeerConn)
	running  sync.WaitGroup

	mu     sync.Mutex
	closed bool
	conns  []net.Conn
}

// NewPeer starts a peer that runs script on each connection, all of them at the same time, each in a goroutine of
// its own, and closes the connection when script returns:
//
//	peer := mysqltest.NewPeer(t, func(c *mysqltest.PeerConn) {
//		c.Accept("5.7.44", wire.Protocol41|wire.SecureConnection)
//		c.Expect([]byte("\x03SELECT 1"))
//		<-late
//		c.SendPacket([]byte("\xff\x28\x04#42000no")) // and hang up
//	})
//
// A step that cannot be done fails the test and ends the script.
func NewPeer(t testing.TB, script func(*PeerConn)) *Peer {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &Peer{Addr: l.Addr().String(), t: t, listener: l, script: script}
	p.running.Go(p.accept)
	t.Cleanup(p.close)
	return p
}

func (p *Peer) accept() {
	for number := 0; ; number++ {
		conn, err := p.listener.Accept()
		if err != nil || !p.keep(conn) {
			return
		}
		p.running.Go(func() {
			defer conn.Close()
			p.script(&PeerConn{Number: number, Conn: conn, peer: p})
		})
	}
}

// keep notes a connection for close. It reports false when the peer has closed.
func (p *Peer) keep(conn net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		conn.Close()
		return false
	}
	p.conns = append(p.conns, conn)
	return true
}

func (p *Peer) close() {
	p.mu.Lock()
	p.closed = true
	p.listener.Close()
	for _, conn := range p.conns {
		conn.Close()
	}
	p.mu.Unlock()
	p.running.Wait()
}

func (p *Peer) isClosed() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.closed
}

// A PeerConn is one connection of a Peer, for its script. Only the script may use it.
type PeerConn struct {
	Number int      // 0 for the first connection the peer took
	Conn   net.Conn // after a login over TLS the encrypted one

	peer *Peer
	seq  byte // of the packet we send next
}

// fail ends the script. It fails the test too, unless the peer was closed, as it is at the test's end.
func (c *PeerConn) fail(format string, args ...any) {
	if !c.peer.isClosed() {
		c.peer.t.Errorf("scripted peer, connection %d: "+format, append([]any{c.Number}, args...)...)
	}
	runtime.Goexit()
}

// Send sends bytes as they stand.
func (c *PeerConn) Send(raw ...[]byte) {
	for _, b := range raw {
		if _, err := c.Conn.Write(b); err != nil {
			c.fail("send %d bytes: %v", len(b), err)
		}
	}
}

// SendPacket sends one logical packet for each payload, numbered on from the packet read last.
func (c *PeerConn) SendPacket(payloads ...[]byte) {
	for _, payload := range payloads {
		var packet []byte
		packet, c.seq = wire.AppendPacket(nil, c.seq, payload)
		c.Send(packet)
	}
}

// Next reads one logical packet. It reports false when the client hung up in front of it.
func (c *PeerConn) Next() (payload []byte, ok bool) {
	for {
		var header [wire.HeaderLen]byte
		_, err := io.ReadFull(c.Conn, header[:])
		if len(payload) == 0 && isHangUp(err) {
			return nil, false
		}
		if err != nil {
			c.fail("read a packet: %v", err)
		}
		n := int(header[0]) | int(header[1])<<8 | int(header[2])<<16
		c.seq = header[3] + 1
		part := make([]byte, n)
		if _, err := io.ReadFull(c.Conn, part); err != nil {
			c.fail("read a packet of %d bytes: %v", n, err)
		}
		payload = append(payload, part...)
		if n < wire.MaxPayload {
			return payload, true
		}
	}
}

// isHangUp: a client that closes with bytes unread resets the connection.
func isHangUp(err error) bool {
	var op *net.OpError
	return err == io.EOF || errors.As(err, &op) && !errors.Is(err, net.ErrClosed)
}

// ReadPacket reads one logical packet.
func (c *PeerConn) ReadPacket() []byte {
	payload, ok := c.Next()
	if !ok {
		c.fail("the client hung up; want a packet")
	}
	return payload
}

// Expect reads one logical packet, which must be payload.
func (c *PeerConn) Expect(payload []byte) {
	if got := c.ReadPacket(); !bytes.Equal(got, payload) {
		c.fail("got packet %q, want %q", got, payload)
	}
}

// ExpectHangUp waits until the client hangs up, which it must do before it sends anything more.
func (c *PeerConn) ExpectHangUp() {
	if got, ok := c.Next(); ok {
		c.fail("got packet %q, want the client to hang up", got)
	}
}
