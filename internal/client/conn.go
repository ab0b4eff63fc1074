package client

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"redrive/internal/wire"
)

const (
	readSize    = 16 << 10
	keptWrite   = 1 << 20         // a larger write buffer is given back after use
	partingTime = 1 * time.Second // how long a server may take to accept a QUIT, or to explain a write it refused
)

// Times are when things happened to a command, by the clock of Config.Now. First and Done are 0 without a reply.
type Times struct {
	Sent  time.Duration // return of the write that took the command's last byte
	First time.Duration // return of the read that brought the first byte of the reply proper
	Done  time.Duration // return of the read that brought the last
}

// A Conn is a session on a server. It belongs to one goroutine; only Close and the context given to Dial may end it
// from elsewhere. After an error of Do it is of no further use.
type Conn struct {
	Login  *Login // what the login brought: greeting, capabilities, status
	Dialed time.Duration
	Ready  time.Duration // the server's OK

	conn    net.Conn
	ctx     context.Context // whose end ends the connection
	release func() bool
	now     func() time.Duration
	offer   []byte // for the next command
	command Command
	read    []byte
	rest    []byte // read beyond the reply: the server's parting words
	write   []byte
}

// Capabilities are those negotiated at login.
func (c *Conn) Capabilities() wire.Capabilities { return c.Login.Capabilities }

// LocalAddr is our end of the connection.
func (c *Conn) LocalAddr() net.Addr { return c.conn.LocalAddr() }

// SetDeadline bounds everything that follows; the zero time lifts it. Past it, Do fails.
func (c *Conn) SetDeadline(t time.Time) error { return c.conn.SetDeadline(t) }

// Do sends one command (its payload, command byte included, of any length) and skims its whole reply. The reply is
// valid until the next command. An ERR from the server is in the reply's Outcome; an error means that the connection is
// lost, and then the reply and the times hold what had come until then. A file that the server asks for is answered
// by the one offered, or an empty one: see Offer and Reply.AskedFile. In steady state Do allocates nothing.
func (c *Conn) Do(payload []byte) (*wire.Reply, Times, error) {
	t, err := c.Send(payload)
	if err == nil {
		err = c.Finish(&t)
	}
	return c.Reply(), t, err
}

// Offer names the file that answers the server's request for one (LOCAL INFILE) by the next command. It must not change
// until that command is done.
func (c *Conn) Offer(file []byte) { c.offer = file }

// Send is the first half of Do, for those who want to know Sent before the reply is there.
func (c *Conn) Send(payload []byte) (t Times, err error) {
	if len(payload) == 0 {
		return t, errors.New("a command without a byte")
	}
	c.command.Begin(payload, c.Login.Capabilities)
	c.command.Offer(c.offer)
	c.offer = nil
	if len(c.rest) > 0 {
		return t, c.parting()
	}
	if err := c.send(&t); err != nil {
		return t, c.lost(err)
	}
	return t, nil
}

// Finish is the second half of Do: it skims the reply and completes the times.
func (c *Conn) Finish(t *Times) error {
	for !c.command.Done() {
		if err := c.receive(t); err != nil {
			return c.lost(err)
		}
		if err := c.send(t); err != nil { // an empty file, if one is asked for
			return c.lost(err)
		}
	}
	return nil
}

// Reply is what has come of the reply to the command sent last.
func (c *Conn) Reply() *wire.Reply { return &c.command.Reply }

// send writes what the command has to send. Sent is the command's own last byte, not that of an empty file.
func (c *Conn) send(t *Times) error {
	for c.command.Sending() {
		c.write = c.command.AppendNext(c.write[:0])
		if _, err := c.conn.Write(c.write); err != nil {
			return c.refused(t, err)
		}
	}
	if t.Sent == 0 {
		t.Sent = c.now()
	}
	if cap(c.write) > keptWrite {
		c.write = nil
	}
	return nil
}

// refused looks for the reason of a failed write: a server that does not want a packet (it may be too long) says so
// and closes, before the packet has been sent in full. That ERR is the command's reply; the next command will fail.
func (c *Conn) refused(t *Times, cause error) error {
	if c.ctx.Err() != nil || c.conn.SetReadDeadline(time.Now().Add(partingTime)) != nil {
		return cause
	}
	for !c.command.Reply.Done() {
		if c.receive(t) != nil {
			return cause
		}
	}
	c.command.Abandon()
	return nil
}

// receive reads once and feeds the command.
func (c *Conn) receive(t *Times) error {
	n, err := c.conn.Read(c.read)
	at := c.now()
	if n > 0 {
		reply := &c.command.Reply
		rest, lost := c.command.Feed(c.read[:n])
		if t.First == 0 && reply.Begun() {
			t.First = at
		}
		if lost != nil {
			return lost
		}
		if reply.Done() {
			t.Done = at
			c.rest = rest
			return nil // an error of this read will be met again by the next
		}
	}
	return err
}

// lost is the error of a command during which the connection was lost: why we hung up, rather than that a closed socket
// was read.
func (c *Conn) lost(err error) error {
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return fmt.Errorf("%s: connection lost: %w", wire.CommandName(c.command.Code), cmp.Or(context.Cause(c.ctx), err))
}

// parting is the error of a session that the server ended while nothing was asked.
func (c *Conn) parting() error {
	if len(c.rest) > wire.HeaderLen && c.rest[wire.HeaderLen] == 0xFF {
		return fmt.Errorf("the server ended the session: %w", wire.ParseError(c.rest[wire.HeaderLen:]))
	}
	return fmt.Errorf("%w: %d bytes from the server that no command asked for", wire.ErrLost, len(c.rest))
}

// LastError is the ERR that came in the last reply, nil if none did. Its message may hold literals of the statement.
func (c *Conn) LastError() *wire.Error { return c.command.Reply.Err() }

// Query runs a COM_QUERY with this text.
func (c *Conn) Query(text string) (*wire.Reply, Times, error) {
	return c.Do(wire.AppendQuery(nil, []byte(text), nil, c.Login.Capabilities))
}

// Prepare prepares a statement. A *wire.Error is the server's refusal; after another error the connection is lost.
func (c *Conn) Prepare(text string) (wire.Prepared, Times, error) {
	reply, t, err := c.Do(append([]byte{wire.ComStmtPrepare}, text...))
	if err != nil {
		return wire.Prepared{}, t, err
	}
	if e := c.LastError(); e != nil {
		return wire.Prepared{}, t, e
	}
	return reply.Prepared, t, nil
}

// Close says COM_QUIT and closes the socket.
func (c *Conn) Close() error {
	if c.release() { // else the context has closed it already
		_ = c.conn.SetWriteDeadline(time.Now().Add(partingTime))
		_, _ = c.conn.Write([]byte{1, 0, 0, 0, wire.ComQuit}) // the server may be gone
	}
	return c.conn.Close()
}
