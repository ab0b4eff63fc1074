package proxy

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"

	"redrive/capture"
	"redrive/internal/proxyproto"
	"redrive/internal/session"
	"redrive/internal/wire"
)

// bufferSize is what one read takes at most: large results pass in large writes.
const bufferSize = 32 << 10

// lastWords is how long the server is listened to after it stopped reading: why it did is often still on its way.
const lastWords = time.Second

// A conn is one client with its connection to the backend.
type conn struct {
	proxy    *Proxy
	id       uint64
	accepted time.Duration
	ends     proxyproto.Header // of the connection as the client sees it
	origin   string            // the client's address

	mu               sync.Mutex // guards what follows
	client           net.Conn   // replaced when TLS begins
	server           net.Conn   // nil until dialed; replaced when TLS begins
	follower         session.Follower
	pending          chunk             // bytes on their way that the follower has not been shown
	recorder         *capture.Recorder // the recording it takes part in; nil for none
	next             *capture.Recorder // the one it should be in: it changes over between two commands
	number           uint64            // of the last command that was done
	totals           Totals
	loggedIn         bool
	secretStatements map[uint32]bool // ids of prepared statements that may bear a password
	lost             string          // why the follower gave up
	stopped          bool            // we hung up
	ended            error           // the first error of a socket, if it was not an end
	closer           capture.EndReason
}

// A chunk is what one read delivered, while it is being passed on.
type chunk struct {
	data       []byte
	at         time.Duration
	fromClient bool
}

// run relays until both sides have ended, and records the end.
func (c *conn) run() {
	defer c.client.Close()
	if err := c.findOrigin(); err != nil {
		c.reject(err)
		return
	}
	c.follower.Handler = c
	c.follower.MaxStatement, c.follower.KeepFiles = c.proxy.MaxStatement, c.proxy.KeepFiles
	server, err := c.dial()
	if err != nil {
		c.refuse(err)
		return
	}
	defer server.Close()
	c.mu.Lock()
	c.server = server
	stopped := c.stopped
	c.mu.Unlock()
	if stopped {
		return
	}
	if c.logIn() {
		c.relay()
	} else {
		c.hangUp()
	}
	c.finish()
}

// relay passes on what both sides send until both have ended.
func (c *conn) relay() {
	var uploads sync.WaitGroup
	uploads.Go(c.upload)
	c.download()
	uploads.Wait()
}

// hangUp ends a login that failed. The client is heard out: to close with bytes of its unread could cost it our answer.
func (c *conn) hangUp() {
	c.server.Close()
	closeWrite(c.client)
	c.client.SetReadDeadline(time.Now().Add(lastWords))
	io.Copy(io.Discard, c.client)
}

// dial connects to the backend, and tells it whose connection this is if it wants to know.
func (c *conn) dial() (net.Conn, error) {
	ctx, cancel := context.WithTimeout(context.Background(), c.proxy.dialTimeout())
	defer cancel()
	server, err := c.proxy.Dial(ctx)
	if err != nil || c.proxy.BackendProxyProtocol == 0 {
		return server, err
	}
	// Some servers wait for it before they greet: so at once, and in one piece.
	if _, err := server.Write(c.proxyHeader()); err != nil {
		server.Close()
		return nil, fmt.Errorf("send the PROXY header: %w", err)
	}
	return server, nil
}

// refuse tells the client, in place of a greeting, that the backend cannot be reached. Silence would make drivers
// report a lost connection and people search the wrong host.
func (c *conn) refuse(cause error) {
	message := fmt.Sprintf("redrive proxy: cannot reach the backend %s: %v", c.proxy.Backend, cause)
	c.proxy.Logger.Warn("backend not reached", "session", c.id, "backend", c.proxy.Backend, "error", cause)
	// The client's capabilities are not known yet, hence no SQLSTATE.
	packet, _ := wire.AppendPacket(nil, 0, wire.AppendError(nil, &wire.Error{Errno: 1105, Message: message}))
	c.client.SetWriteDeadline(time.Now().Add(lastWords))
	c.client.Write(packet)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.totals.Refused++
	c.record(&capture.SessionEnd{Reason: capture.EndBroken, Errno: 1105, Detail: message})
	c.recorder, c.next = nil, nil // nothing comes after the end
}

// upload passes on what the client sends.
func (c *conn) upload() {
	err := c.passUploads()
	c.note(err, capture.EndClient)
	switch {
	case err == nil || errors.Is(err, errRead):
		closeWrite(c.server) // the client has said all it will: it may still be waiting for its answer
	default: // the server does not read any more; what it says is passed on by download
		c.server.SetReadDeadline(time.Now().Add(lastWords))
		io.Copy(io.Discard, c.client) // until download ends: hanging up on a client that still sends could cost it the answer
	}
}

func (c *conn) passUploads() error {
	if c.needsGuard() {
		return c.passGuarded()
	}
	return c.pump(c.server, c.client, true)
}

// download passes on what the server sends.
func (c *conn) download() {
	err := c.pump(c.client, c.server, false)
	c.note(err, capture.EndServer)
	if err != nil && !errors.Is(err, errRead) {
		c.server.Close() // the client is gone: the server need not work on for nobody
		c.client.Close()
		return
	}
	closeWrite(c.client)
	c.client.SetReadDeadline(time.Now().Add(lastWords)) // it has nobody to talk to any more
}

// errRead marks the errors of pump that are the reading side's.
var errRead = errors.New("read")

// pump passes bytes on until from ends. Forwards first, looks afterwards.
func (c *conn) pump(to, from net.Conn, fromClient bool) error {
	buf := make([]byte, bufferSize)
	for {
		n, err := from.Read(buf)
		if n > 0 {
			if err := c.pass(to, buf[:n], fromClient); err != nil {
				return err
			}
		}
		if err != nil {
			return readError(err)
		}
	}
}

// pass forwards one chunk and shows it to the follower.
func (c *conn) pass(to net.Conn, data []byte, fromClient bool) error {
	at := c.publish(data, fromClient)
	_, err := to.Write(data)
	written := c.proxy.Clock.Now()

	c.mu.Lock()
	defer c.mu.Unlock()
	if fromClient {
		c.totals.BytesIn += uint64(len(data))
		if c.pending.fromClient && c.pending.data != nil {
			c.join(c.pending.at)
			c.follower.FromClient(data, c.pending.at, written)
			c.pending.data = nil
		} else {
			c.follower.Passed(written)
		}
		return err
	}
	c.totals.BytesOut += uint64(len(data))
	if !c.pending.fromClient {
		c.look()
	}
	if stalled := written - at; stalled > time.Millisecond {
		c.follower.Stalled(stalled)
	}
	return err
}

// publish puts a chunk in the place of the one that is pending, which the follower is shown first: so it sees chunks
// in the order they were read, whichever goroutine comes by, and no answer before its question.
func (c *conn) publish(data []byte, fromClient bool) time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.look()
	at := c.proxy.Clock.Now()
	c.pending = chunk{data, at, fromClient}
	return at
}

// look shows the follower the pending chunk, if there is one. Call it with mu held.
func (c *conn) look() {
	p := c.pending
	c.pending.data = nil
	switch {
	case p.data == nil:
	case p.fromClient:
		c.join(p.at)
		c.follower.FromClient(p.data, p.at, 0)
	default:
		c.follower.FromServer(p.data, p.at)
		c.leave()
	}
}

func closeWrite(conn net.Conn) {
	if half, ok := conn.(interface{ CloseWrite() error }); ok {
		half.CloseWrite()
		return
	}
	conn.Close()
}

// note keeps which side ended first, and why.
func (c *conn) note(err error, closer capture.EndReason) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closer == 0 {
		c.closer = closer
		c.ended = err
	}
}

// drain hangs up if the connection is idle or has not logged in, or in any case if it is late.
func (c *conn) drain(late bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.look()
	idle := c.lost == "" && (!c.loggedIn || c.follower.Idle())
	if c.stopped || !late && !idle {
		return
	}
	c.stopped = true
	c.client.Close()
	if c.server != nil {
		c.server.Close()
	}
}
