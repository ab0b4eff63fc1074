package proxy

import (
	"bufio"
	"crypto/tls"

	"redrive/internal/wire"
)

// needsGuard reports whether a client entrusts to TLS what would go on in clear. Its login has been taken care of; a
// change of user would be another.
func (c *conn) needsGuard() bool {
	_, clientTLS := c.client.(*tls.Conn)
	_, serverTLS := c.server.(*tls.Conn)
	return clientTLS && !serverTLS && !isLocal(c.server)
}

// passGuarded passes on what the client sends, packet by packet, but for changes of user: they are refused.
func (c *conn) passGuarded() error {
	r := bufio.NewReaderSize(c.client, bufferSize)
	for {
		head, err := peekCommand(r)
		if err != nil {
			if len(head) > 0 {
				c.pass(c.server, head, true)
			}
			return readError(err)
		}
		length := wire.HeaderLen + payloadLen(head)
		if len(head) > wire.HeaderLen && head[wire.HeaderLen-1] == 0 && head[wire.HeaderLen] == wire.ComChangeUser && !c.uploading() {
			if !c.quiet() { // the error would be read as the answer to another command
				return c.hangUpOnUserChange()
			}
			if err := c.refuseUserChange(); err != nil {
				return err
			}
			if _, err := r.Discard(length); err != nil {
				return readError(err)
			}
			continue
		}
		if err := c.passBytes(r, length); err != nil {
			return err
		}
	}
}

// peekCommand looks at a packet's header and the first byte behind it, if the packet has one.
func peekCommand(r *bufio.Reader) ([]byte, error) {
	head, err := r.Peek(wire.HeaderLen)
	if err != nil || payloadLen(head) == 0 {
		return head, err
	}
	return r.Peek(wire.HeaderLen + 1)
}

func payloadLen(header []byte) int { return int(header[0]) | int(header[1])<<8 | int(header[2])<<16 }

// passBytes passes on n bytes as they come.
func (c *conn) passBytes(r *bufio.Reader, n int) error {
	for n > 0 {
		if _, err := r.Peek(1); err != nil {
			return readError(err)
		}
		data, _ := r.Peek(min(n, r.Buffered()))
		if err := c.pass(c.server, data, true); err != nil {
			return err
		}
		r.Discard(len(data))
		n -= len(data)
	}
	return nil
}

// quiet reports whether the client has the word: what it sends is a command, and not of a file it was asked for.
func (c *conn) quiet() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.look()
	return c.follower.Quiet()
}

// uploading reports whether what the client sends is of a file that it was asked for, and no command.
func (c *conn) uploading() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.look()
	return c.lost == "" && c.follower.Uploading()
}

// hangUpOnUserChange ends a connection on which a change of user can be neither passed nor refused in its turn.
func (c *conn) hangUpOnUserChange() error {
	c.proxy.Logger.Warn("change of user refused by hanging up: --backend-ssl-mode required encrypts that connection",
		"session", c.id, "client", c.origin)
	c.client.Close()
	return nil
}

func (c *conn) refuseUserChange() error {
	e := wire.Error{Errno: 1105, SQLState: "HY000", Message: "redrive proxy: a change of user may send a password in clear to the server: --backend-ssl-mode required encrypts that connection"}
	packet, _ := wire.AppendPacket(nil, 1, wire.AppendError(nil, &e))
	c.proxy.Logger.Warn("change of user refused", "session", c.id, "client", c.origin, "error", e.Message)
	_, err := c.client.Write(packet)
	return err
}
