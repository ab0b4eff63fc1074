package epoll

import (
	"fmt"
	"net"
	"syscall"
	"unsafe"
)

// Detach takes a socket out of the runtime's poller: conn is closed, and the file descriptor returned, which is
// non-blocking, is the same connection. The caller closes it.
func Detach(conn net.Conn) (fd int, err error) {
	c, ok := conn.(syscall.Conn)
	if !ok {
		return 0, fmt.Errorf("epoll: a %T has no file descriptor", conn)
	}
	raw, err := c.SyscallConn()
	if err != nil {
		return 0, err
	}
	var errno syscall.Errno
	err = raw.Control(func(own uintptr) {
		var dup uintptr
		dup, _, errno = syscall.Syscall(syscall.SYS_FCNTL, own, syscall.F_DUPFD_CLOEXEC, 0)
		fd = int(dup)
	})
	if err != nil {
		return 0, err
	}
	if errno != 0 {
		return 0, fmt.Errorf("dup: %w", errno)
	}
	if err := conn.Close(); err != nil {
		syscall.Close(fd)
		return 0, err
	}
	return fd, nil
}

// Read reads from a non-blocking socket without the scheduler taking notice, which is what makes it cheap. At the end of
// the stream it returns 0; if there is nothing to read, syscall.EAGAIN.
func Read(fd int, p []byte) (int, syscall.Errno) {
	for {
		n, _, errno := syscall.RawSyscall(syscall.SYS_READ, uintptr(fd), uintptr(unsafe.Pointer(unsafe.SliceData(p))), uintptr(len(p)))
		if errno != syscall.EINTR {
			return int(n), errno
		}
	}
}

// Write writes to a non-blocking socket as much as it takes; errno is syscall.EAGAIN if that was less than all. A peer that
// is gone raises no signal.
func Write(fd int, p []byte) (written int, errno syscall.Errno) {
	for written < len(p) {
		rest := p[written:]
		n, _, errno := syscall.RawSyscall6(syscall.SYS_SENDTO, uintptr(fd), uintptr(unsafe.Pointer(unsafe.SliceData(rest))), uintptr(len(rest)), syscall.MSG_NOSIGNAL, 0, 0)
		switch errno {
		case 0:
			written += int(n)
		case syscall.EINTR:
		default:
			return written, errno
		}
	}
	return written, 0
}
