package proxy

import (
	"crypto/tls"
	"time"
)

// A relay passes on the bytes of a connection that has logged in, and shows them to its follower: forwards first, looks
// afterwards.
type relay interface {
	// carry passes on what both sides send until both have ended, and then ends the connection. It may return before.
	carry()
	// hangUp has the relay end the connection if it mayPart. It is called with the connection's mu held, also before carry,
	// and does not wait.
	hangUp()
}

// relayFor chooses what carries a connection: an event loop where it can, which takes sockets and nothing in between.
func (p *Proxy) relayFor(c *conn) relay {
	_, clientTLS := c.client.(*tls.Conn)
	_, serverTLS := c.server.(*tls.Conn)
	if clientTLS || serverTLS || len(p.loops) == 0 {
		return portable{c}
	}
	return p.loops.relay(c)
}

// showClient shows the follower what the client sent, read at a time and written by sent; 0 if not all of it is written yet.
// Call it with mu held.
func (c *conn) showClient(data []byte, at, sent time.Duration) {
	c.active = at
	c.totals.BytesIn += uint64(len(data))
	c.join(at)
	if recorded := c.recorder != nil || c.next != nil; recorded != c.whole {
		c.keep(recorded)
	}
	c.follower.FromClient(data, at, sent)
}

// unrecorded is how much the follower keeps of a command that nobody records: enough to know what it is, and to tell a
// recording that begins later of the statements that are prepared.
const unrecorded = 64 << 10

// keep has the follower keep whole commands or not, from the next one on.
func (c *conn) keep(whole bool) {
	if c.loggedIn && !c.follower.Quiet() {
		return
	}
	c.whole, c.follower.MaxStatement = whole, c.proxy.MaxStatement
	if limit := c.proxy.MaxStatement; !whole && (limit == 0 || limit > unrecorded) {
		c.follower.MaxStatement = unrecorded
	}
}

// showServer shows the follower what the server sent. Call it with mu held.
func (c *conn) showServer(data []byte, at time.Duration) {
	c.active = at
	c.totals.BytesOut += uint64(len(data))
	c.follower.FromServer(data, at)
	c.leave()
	if c.proxy.draining.Load() && c.relay != nil && c.idle() {
		c.hangUp(whyDrained, false) // now, as the client may begin something new at any moment
	}
}
