// Package epoll waits for many sockets in one goroutine, at the least cost that Go allows on Linux. In go file
// descriptors, out come the events on them; sockets leave the Go runtime's own poller by Detach.
//
// Waiting for I/O the usual way costs a goroutine switch, and often a thread's, for every message. Here the system call
// is one the scheduler does not see, so the thread that waits is the one that goes on.
package epoll
