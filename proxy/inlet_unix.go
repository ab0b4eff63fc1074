//go:build unix

package proxy

import (
	"io"
	"os"
	"syscall"
)

// canTry says that a socket can be read from without waiting.
const canTry = true

// tryRead reads what there is into a buffer of the pool; done is false, and no buffer held, if there is nothing.
func (in *inlet) tryRead(fd uintptr) (done bool) {
	in.buf = buffers.Get().(*[bufferSize]byte)
	for {
		n, err := syscall.Read(int(fd), in.buf[:])
		switch {
		case err == syscall.EINTR:
			continue
		case err == syscall.EAGAIN:
			in.n = 0
			in.release()
			return false
		case err != nil:
			in.err = os.NewSyscallError("read", err)
		case n == 0:
			in.err = io.EOF
		default:
			in.n = n
		}
		return true
	}
}
