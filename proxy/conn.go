package proxy

import (
	"context"
	"crypto/tls"
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

// lastWords is what a side gets yet when the end has begun: a server that stopped reading, to say why, and a client, to take
// what it was told.
const lastWords = time.Second

// A conn is one client with its connection to the backend.
type conn struct {
	proxy    *Proxy
	id       uint64
	lane     int // of recorders, and number of the loop that is to carry it
	accepted time.Duration
	ends     proxyproto.Header // of the connection as the client sees it
	origin   string            // the client's address

	mu               sync.Mutex // guards what follows
	client           net.Conn   // replaced when TLS begins
	server           net.Conn   // nil until dialed; replaced when TLS begins
	undial           func()     // ends dialing; nil before it
	follower         session.Follower
	pending          chunk             // bytes on their way that the follower has not been shown; of the portable relay
	recorder         *capture.Recorder // the recording it takes part in; nil for none
	next             *capture.Recorder // the one it should be in: it changes over between two commands
	number           uint64            // of the last command that was done
	totals           Totals
	loggedIn         bool
	secretStatements map[uint32]bool // ids of prepared statements that may bear a password
	lost             string          // why the follower gave up
	relay            relay           // what carries it once it has logged in; nil before
	active           time.Duration   // when bytes last came, or went to a client that had not taken them
	writing          bool            // there are bytes on their way to the client
	stopped          bool            // we hang up
	insisted         bool            // … whatever it is at
	why              string          // … for people
	parted           bool            // … and have begun to: nothing is passed on any more
	whole            bool            // the follower keeps long commands, as they are recorded
	ended            error           // the first error of a socket, if it was not an end
	closer           capture.EndReason
}

// run logs the client in and hands the connection over to a relay, which ends it.
func (c *conn) run() {
	if !c.open() {
		c.client.Close()
		c.proxy.forget(c)
		return
	}
	if !c.logIn() {
		c.giveUp()
		c.end()
		return
	}
	c.mu.Lock()
	stopped := c.stopped
	if !stopped {
		c.relay = c.proxy.relayFor(c)
	}
	c.mu.Unlock()
	if stopped {
		c.quit()
		c.end()
		return
	}
	c.relay.carry()
}

// open finds out whose connection this is, and opens the one to the backend. It reports false if there is none.
func (c *conn) open() bool {
	if err := c.findOrigin(); err != nil {
		c.reject(err)
		return false
	}
	c.follower.Handler = c
	c.follower.MaxStatement, c.follower.KeepFiles, c.follower.Memory = c.proxy.MaxStatement, c.proxy.KeepFiles, c.proxy.Memory
	c.whole = true
	server, err := c.dial()
	if err != nil {
		c.refuse(err)
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.server = server
	return true
}

// end records the end of a connection whose sides have both ended, and gives back what it held.
func (c *conn) end() {
	c.finish()
	c.proxy.forget(c)
}

// quit ends a session of a client that we hung up on before it was relayed.
func (c *conn) quit() {
	c.mu.Lock()
	toServer, _ := c.follower.Quit(nil)
	c.mu.Unlock()
	c.server.SetWriteDeadline(time.Now().Add(lastWords))
	c.server.Write(toServer)
	c.closeBoth()
}

func (c *conn) closeBoth() {
	c.client.Close()
	c.server.Close()
}

// giveUp ends a login that failed.
func (c *conn) giveUp() {
	c.server.Close()
	hearOut(c.client)
}

// dial connects to the backend, and tells it whose connection this is if it wants to know.
func (c *conn) dial() (net.Conn, error) {
	ctx, cancel := context.WithTimeout(context.Background(), c.proxy.dialTimeout())
	defer cancel()
	c.mu.Lock()
	c.undial = cancel
	if c.stopped { // before there was anything to end
		cancel()
	}
	c.mu.Unlock()
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
	c.warn(&c.proxy.logins.unreached, "backend not reached", "backend", c.proxy.Backend, "error", cause)
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

// closeSocket closes a connection without the last words of TLS, which would wait for a peer that does not read.
func closeSocket(conn net.Conn) {
	if secured, ok := conn.(*tls.Conn); ok {
		conn = secured.NetConn()
	}
	conn.Close()
}

// hearOut closes a client's connection once it has ended its side, or lastWords are over: to close with bytes of its unread
// would make the end a reset, and cost it what it was told.
func hearOut(client net.Conn) {
	defer client.Close()
	closeWrite(client)
	client.SetReadDeadline(time.Now().Add(lastWords))
	io.Copy(io.Discard, client)
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
	c.noteLocked(err, closer)
}

func (c *conn) noteLocked(err error, closer capture.EndReason) {
	if c.closer == 0 {
		c.closer = closer
		c.ended = err
	}
}

// drain hangs up as soon as the connection is idle or while it has not logged in, or in any case if it is late.
func (c *conn) drain(late bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.look()
	if late || c.idle() {
		c.hangUp(whyDrained, late)
	}
}

const whyDrained = "the proxy ended"

// idle reports whether nobody loses by the end of the connection. Call it with mu held.
func (c *conn) idle() bool {
	return c.lost == "" && (c.relay == nil && !c.loggedIn || c.follower.Idle())
}

// hangUp ends the connection, soon: if it is still idle then, or whatever it is at if we insist. Call it with mu held.
func (c *conn) hangUp(why string, insist bool) {
	if c.stopped && (c.insisted || !insist) {
		return
	}
	c.stopped, c.why, c.insisted = true, why, insist
	if c.relay != nil {
		c.relay.hangUp()
		return
	}
	closeSocket(c.client) // its login takes leave of the server, in a way that is not held against our host
	switch {
	case c.server != nil && insist:
		c.server.Close()
	case c.server == nil && c.undial != nil:
		c.undial()
	}
}

// mayPart reports whether a connection that is to be hung up on can be now. If it has taken up work since, it goes on. Call it
// with mu held.
func (c *conn) mayPart() bool {
	if !c.insisted && !c.idle() {
		c.stopped = false
	}
	return c.stopped
}

// shutdown is what a client is told in the place of the answer that it waits for in vain.
var shutdown = wire.Error{Errno: 1053, SQLState: "08S01", Message: "redrive proxy: shutting down"}

// parting is what a connection that we end gets yet: an error for a client that waits for an answer, where one can be
// put in, and a QUIT for a server that waits for a command, so that it does not take the session for aborted. Call it
// with mu held, with nothing on its way to either side.
func (c *conn) parting() (toClient, toServer []byte) {
	if c.lost != "" || !c.loggedIn {
		return nil, nil
	}
	toServer, _ = c.follower.Quit(nil)
	toClient, _ = c.follower.Interrupt(nil, &shutdown)
	return toClient, toServer
}
