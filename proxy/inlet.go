package proxy

import (
	"crypto/tls"
	"net"
	"sync"
	"syscall"
)

const (
	// bufferSize is what one read takes at most: large results pass in large writes.
	bufferSize = 64 << 10
	// smallBuffer is what a connection keeps that cannot be asked for bytes without giving it a buffer.
	smallBuffer = 4 << 10
)

var buffers = sync.Pool{New: func() any { return new([bufferSize]byte) }}

// An inlet reads from a connection. It holds a buffer only while there are bytes in it, where the connection can be waited
// for without one; of TLS, a small one.
type inlet struct {
	conn  net.Conn
	raw   syscall.RawConn // nil where conn cannot be waited for
	try   func(fd uintptr) (done bool)
	buf   *[bufferSize]byte // from the pool, or nil
	small []byte
	n     int
	err   error
}

func newInlet(conn net.Conn) *inlet {
	in := &inlet{conn: conn}
	_, encrypted := conn.(*tls.Conn)
	if socket, ok := conn.(syscall.Conn); ok && !encrypted && canTry {
		in.raw, _ = socket.SyscallConn()
		in.try = in.tryRead
	}
	if in.raw == nil {
		in.small = make([]byte, smallBuffer)
	}
	return in
}

// read waits for bytes. They are valid until release, which must follow.
func (in *inlet) read() ([]byte, error) {
	if in.raw != nil {
		in.n, in.err = 0, nil
		if err := in.raw.Read(in.try); err != nil {
			return nil, err
		}
		if in.n <= 0 {
			return nil, in.err
		}
		return in.buf[:in.n], nil
	}
	if in.buf == nil {
		n, err := in.conn.Read(in.small)
		if n == len(in.small) { // there may be more
			in.buf = buffers.Get().(*[bufferSize]byte)
		}
		in.n = n
		return in.small[:n], err
	}
	n, err := in.conn.Read(in.buf[:])
	in.n = n
	return in.buf[:n], err
}

// release gives the buffer back, unless the connection has shown that it delivers much.
func (in *inlet) release() {
	if in.buf != nil && (in.raw != nil || in.n < smallBuffer) {
		buffers.Put(in.buf)
		in.buf = nil
	}
}
