package e2e_test

import (
	"io"
	"net"
	"slices"
	"sync"
	"testing"
)

// A tap forwards the connections of a listener of its own to a server and keeps what passes, without looking at it.
type tap struct {
	addr     string // where it listens
	target   string
	listener net.Listener
	open     sync.WaitGroup

	mu    sync.Mutex
	conns []*tapped // in the order they came in
}

// A tapped connection is all the bytes of it.
type tapped struct {
	fromClient, fromServer []byte
}

// startTap starts a tap in front of target; it ends with the test.
func startTap(t *testing.T, target string) *tap {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &tap{addr: listener.Addr().String(), target: target, listener: listener}
	p.open.Go(p.accept)
	t.Cleanup(func() {
		listener.Close()
		p.open.Wait()
	})
	return p
}

func (p *tap) accept() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		c := &tapped{}
		p.mu.Lock()
		p.conns = append(p.conns, c)
		p.mu.Unlock()
		p.open.Go(func() { p.forward(c, client) })
	}
}

func (p *tap) forward(c *tapped, client net.Conn) {
	defer client.Close()
	server, err := net.Dial("tcp", p.target)
	if err != nil {
		return
	}
	defer server.Close()
	var up sync.WaitGroup
	up.Go(func() { c.fromClient = pass(server, client) })
	c.fromServer = pass(client, server)
	up.Wait()
}

// pass forwards until from ends, and returns what it forwarded.
func pass(to, from net.Conn) (all []byte) {
	defer to.(*net.TCPConn).CloseWrite()
	for {
		all = slices.Grow(all, 64<<10)
		n, err := from.Read(all[len(all):cap(all)])
		chunk := all[len(all) : len(all)+n]
		all = all[:len(all)+n]
		if err != nil {
			return all
		}
		if _, err := to.Write(chunk); err != nil {
			io.Copy(io.Discard, from) // hear it out
			return all
		}
	}
}

// stop waits for the connections to end and returns them.
func (p *tap) stop() []*tapped {
	p.listener.Close()
	p.open.Wait()
	return p.conns
}
