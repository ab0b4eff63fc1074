package proxy

import (
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"time"

	"redrive/capture"
)

// portable relays by two goroutines a connection, on any system and whatever its sides are: sockets or TLS.
type portable struct{ *conn }

func (r portable) carry() {
	var uploads sync.WaitGroup
	uploads.Go(r.upload)
	r.download()
	uploads.Wait()
	r.closeBoth()
	r.end()
}

// hangUp interrupts the goroutine that reads from the server. It does the rest, as it alone knows whether the client has all
// of what came before.
func (r portable) hangUp() {
	r.server.SetReadDeadline(time.Now())
	if r.insisted {
		r.client.SetWriteDeadline(time.Now().Add(lastWords))
	}
}

// A chunk is what one read delivered, while it is being passed on.
type chunk struct {
	data       []byte
	at         time.Duration
	fromClient bool
}

// upload passes on what the client sends.
func (r portable) upload() {
	err := r.passUploads()
	if r.isParted() {
		return
	}
	r.note(err, capture.EndClient)
	switch {
	case err == nil || errors.Is(err, errRead):
		closeWrite(r.server) // the client has said all it will: it may still be waiting for its answer
	default: // the server does not read any more; what it says is passed on by download
		r.server.SetReadDeadline(time.Now().Add(lastWords))
		io.Copy(io.Discard, r.client) // until download ends: hanging up on a client that still sends could cost it the answer
	}
}

func (r portable) passUploads() error {
	if r.needsGuard() {
		return r.passGuarded()
	}
	return r.pump(r.server, r.client, true)
}

// download passes on what the server sends.
func (r portable) download() {
	err := r.pump(r.client, r.server, false)
	for r.goesOn(err) {
		err = r.pump(r.client, r.server, false)
	}
	if r.isParted() {
		r.part(err == nil || errors.Is(err, errRead))
		return
	}
	r.note(err, capture.EndServer)
	if err != nil && !errors.Is(err, errRead) {
		r.closeBoth() // the client is gone: the server need not work on for nobody
		return
	}
	closeWrite(r.client)
	r.client.SetReadDeadline(time.Now().Add(lastWords)) // it has nobody to talk to any more
}

// goesOn reports whether it was hangUp that interrupted reading, too late to part. If not, and we hang up, the connection is
// parted from here on.
func (r portable) goesOn(err error) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.look()
	switch {
	case !r.stopped:
		return false
	case r.mayPart():
		r.parted = true // from here on nothing is passed on to a server that is told QUIT
		return false
	case !errors.Is(err, os.ErrDeadlineExceeded):
		return false
	}
	r.server.SetReadDeadline(time.Time{})
	return true
}

func (r portable) isParted() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.parted
}

// part ends a connection that we hang up on. whole says that the client has all of what came from the server.
func (r portable) part(whole bool) {
	var toClient, toServer []byte
	r.mu.Lock()
	if whole {
		toClient, toServer = r.parting()
	}
	r.mu.Unlock()
	if len(toServer) > 0 {
		r.server.SetWriteDeadline(time.Now().Add(lastWords))
		r.server.Write(toServer)
	}
	r.server.Close()
	if len(toClient) > 0 {
		r.client.Write(toClient)
	}
	hearOut(r.client)
}

// errRead marks the errors of pump that are the reading side's.
var errRead = errors.New("read")

// pump passes bytes on until from ends.
func (c *conn) pump(to, from net.Conn, fromClient bool) error {
	in := newInlet(from)
	defer in.release()
	for {
		data, err := in.read()
		if len(data) > 0 {
			if err := c.pass(to, data, fromClient); err != nil {
				return err
			}
		}
		in.release()
		if err != nil {
			return readError(err)
		}
	}
}

// pass forwards one chunk and shows it to the follower.
func (c *conn) pass(to net.Conn, data []byte, fromClient bool) error {
	at, ok := c.publish(data, fromClient)
	if !ok {
		return nil
	}
	_, err := to.Write(data)
	written := c.proxy.Clock.Now()

	c.mu.Lock()
	defer c.mu.Unlock()
	ours := c.pending.data != nil && c.pending.fromClient == fromClient // nobody came by meanwhile
	switch {
	case fromClient && ours:
		c.pending.data = nil
		c.showClient(data, at, written)
	case fromClient:
		c.follower.Passed(written)
	case ours:
		c.look()
	}
	if stalled := written - at; !fromClient && stalled > time.Millisecond {
		c.follower.Stalled(stalled)
		c.active = written
	}
	c.writing = c.writing && fromClient
	return err
}

// publish puts a chunk in the place of the one that is pending, which the follower is shown first: so it sees chunks
// in the order they were read, whichever goroutine comes by, and no answer before its question.
// It reports false for what came too late to be passed on.
func (c *conn) publish(data []byte, fromClient bool) (at time.Duration, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.parted {
		return 0, false
	}
	c.look()
	at = c.proxy.Clock.Now()
	c.pending = chunk{data, at, fromClient}
	c.writing = c.writing || !fromClient
	return at, true
}

// look shows the follower the pending chunk, if there is one. Call it with mu held.
func (c *conn) look() {
	p := c.pending
	c.pending.data = nil
	switch {
	case p.data == nil:
	case p.fromClient:
		c.showClient(p.data, p.at, 0)
	default:
		c.showServer(p.data, p.at)
	}
}
