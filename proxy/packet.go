package proxy

import (
	"bytes"
	"errors"
	"io"
	"net"
	"time"

	"redrive/capture"
	"redrive/internal/proxyproto"
	"redrive/internal/wire"
)

// maxLoginPacket bounds what is read of one packet of a login. Attributes may take 64 KiB, tokens some more.
const maxLoginPacket = 1 << 20

var errLong = errors.New("packet too long for a login")

// An arrival is a packet, header included, or what came of it before the error.
type arrival struct {
	data []byte
	at   time.Duration
	err  error
}

// A packetReader reads one packet at a time in a goroutine of its own, and never a byte behind it: that may be TLS.
type packetReader struct {
	conn    net.Conn
	clock   capture.Clock
	in      chan arrival // the packet that was waited for
	reading bool
}

// start waits for a packet, unless it is being waited for already.
func (r *packetReader) start() {
	if r.reading {
		return
	}
	if r.in == nil {
		r.in = make(chan arrival, 1)
	}
	r.reading = true
	go r.read(r.conn)
}

func (r *packetReader) read(conn net.Conn) {
	data, err := readPacket(conn)
	r.in <- arrival{data: data, at: r.clock.Now(), err: err}
}

// stop ends the waiting and gives what has come until then.
func (r *packetReader) stop() arrival {
	if !r.reading {
		return arrival{}
	}
	r.conn.SetReadDeadline(time.Unix(1, 0))
	a := <-r.in
	r.conn.SetReadDeadline(time.Time{})
	r.reading = false
	return a
}

// readPacket reads one packet, header included. After an error it gives what came before that.
func readPacket(r io.Reader) ([]byte, error) {
	var packet bytes.Buffer
	if _, err := io.CopyN(&packet, r, wire.HeaderLen); err != nil {
		return packet.Bytes(), err
	}
	header := packet.Bytes()
	length := int64(header[0]) | int64(header[1])<<8 | int64(header[2])<<16
	if length > maxLoginPacket || proxyproto.Looks(header) {
		return header, errLong
	}
	_, err := io.CopyN(&packet, r, length)
	return packet.Bytes(), err
}
