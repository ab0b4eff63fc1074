package proxy

import (
	"crypto/tls"
	"errors"
	"io"
	"net"
	"os"
	"slices"

	"redrive/internal/proxyproto"
	"redrive/internal/wire"
)

const (
	// maxServerPacket bounds what is read of one packet of the server's during a login: a public key, a ticket.
	maxServerPacket = 1 << 20
	// loginBuffer is what one read of a login takes, and enough for nearly all of its packets.
	loginBuffer = 4 << 10
)

var errLong = errors.New("packet too long for a login")

// A packetReader reads one side's packets of a login. From a socket it takes what there is in one read; what lies behind
// the login, or is no packet any more, is left in rest. From TLS it takes no byte behind the packet, as that costs nothing
// there: who reads on does so by rules of his own.
type packetReader struct {
	conn net.Conn
	max  int    // bytes of a payload; longer ones are errLong
	buf  []byte // read so far; what begins at next has not been given out
	next int
	err  error // of the connection, for good
}

// begin sets the reader to the beginning of a connection. It keeps the buffer of the one before.
func (r *packetReader) begin(conn net.Conn, limit int) {
	*r = packetReader{conn: conn, max: limit, buf: r.buf[:0]}
}

// packet waits for a packet and gives it, header included. It is valid, and may be changed, until the next call. After an
// error what came before is in rest; when a deadline was over, a further call goes on behind that.
func (r *packetReader) packet() ([]byte, error) {
	r.buf = append(r.buf[:0], r.rest()...)
	r.next = 0
	if err := r.fill(wire.HeaderLen); err != nil {
		return nil, err
	}
	length := payloadLen(r.buf)
	if length > r.max || proxyproto.Looks(r.buf) {
		return nil, errLong
	}
	if err := r.fill(wire.HeaderLen + length); err != nil {
		return nil, err
	}
	r.next = wire.HeaderLen + length
	return r.buf[:r.next:r.next], nil
}

// rest is what has been read and not been given out.
func (r *packetReader) rest() []byte { return r.buf[r.next:] }

// drop forgets the rest.
func (r *packetReader) drop() { r.next = len(r.buf) }

// fill reads until there are n bytes in the buffer. It grows with what comes, whatever a header promises.
func (r *packetReader) fill(n int) error {
	for len(r.buf) < n {
		if err := r.read(n); err != nil {
			return err
		}
	}
	return nil
}

// read reads once, up to n bytes of TLS, and of a socket what there is.
func (r *packetReader) read(n int) error {
	if r.err != nil {
		return r.err
	}
	if len(r.buf) == cap(r.buf) {
		r.buf = slices.Grow(r.buf, max(loginBuffer, len(r.buf)))
	}
	free := r.buf[len(r.buf):cap(r.buf)]
	if _, encrypted := r.conn.(*tls.Conn); encrypted {
		free = free[:min(len(free), n-len(r.buf))]
	}
	got, err := r.conn.Read(free)
	r.buf = r.buf[:len(r.buf)+got]
	switch {
	case got > 0:
		return nil // an error comes again
	case err == nil:
		return io.ErrNoProgress
	case !errors.Is(err, os.ErrDeadlineExceeded):
		r.err = err
	}
	return err
}

// await waits until there is something to be read, or the connection has ended.
func (r *packetReader) await() error {
	if len(r.rest()) > 0 {
		return nil
	}
	return r.read(len(r.buf) + wire.HeaderLen)
}

// forget clears the buffer, in which passwords may stand, and keeps it if it is a small one.
func (r *packetReader) forget() {
	clear(r.buf[:cap(r.buf)])
	if cap(r.buf) > 4*loginBuffer {
		r.buf = nil
	}
	*r = packetReader{buf: r.buf[:0]}
}
