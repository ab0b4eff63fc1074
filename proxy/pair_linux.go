package proxy

import (
	"fmt"
	"os"
	"syscall"
	"time"

	"redrive/capture"
	"redrive/internal/epoll"
)

// none is the slot of a pair that is in no loop.
const none = -1

// The sides of a pair.
const (
	clientEnd = iota
	serverEnd
)

// A pair is a connection that a loop carries: its two sockets. The loop's goroutine alone touches it, holding conn.mu, which
// nobody holds for long: what others see of the conn is never half of something.
type pair struct {
	conn     *conn
	loop     *loop
	slot     int32
	ends     [2]end
	deadline time.Time // when to close whatever happens; zero: never. All are the same time after they were set
}

// An end is one side of a pair.
type end struct {
	pair     *pair
	fd       int
	unsent   []byte            // bytes for it that its socket had no room for, in held; its peer is not read from meanwhile
	held     *[bufferSize]byte // from the pool, or nil
	since    time.Duration     // when the first of unsent were to be sent
	readable bool              // there may be bytes to be read
	hung     bool              // its peer sends no more, or there is an error: only reading on tells
	ended    bool              // read to its end
	broken   bool              // it takes no more bytes
	queued   bool              // in loop.again
}

func (e *end) isClient() bool { return e == &e.pair.ends[clientEnd] }

func (e *end) peer() *end {
	if e.isClient() {
		return &e.pair.ends[serverEnd]
	}
	return &e.pair.ends[clientEnd]
}

func (p *pair) carry() {
	c := p.conn
	client, err := epoll.Detach(c.client)
	if err == nil {
		var server int
		if server, err = epoll.Detach(c.server); err != nil {
			syscall.Close(client)
		}
		p.ends = [2]end{{pair: p, fd: client}, {pair: p, fd: server}}
	}
	if err != nil {
		c.proxy.Logger.Error("connection lost", "session", c.id, "error", err)
		c.note(err, capture.EndBroken)
		c.closeBoth()
		c.end()
		return
	}
	p.loop.take(p)
}

func (p *pair) hangUp() { p.loop.drop(p) }

// admitted is called when the pair has got its slot.
func (p *pair) admitted() {
	p.conn.mu.Lock()
	if p.ends[clientEnd].broken || p.ends[serverEnd].broken {
		p.conn.hangUp("the event loop does not take it", true)
	}
	stopped := p.conn.stopped
	p.conn.mu.Unlock()
	if stopped { // before it was here to hear of it
		p.hungUp()
	}
}

// happened acts on events on one side. Both sides may have to go on after it.
func (p *pair) happened(e *end, events epoll.Events) {
	c := p.conn
	c.mu.Lock()
	if events&epoll.HungUp != 0 {
		e.hung, e.readable = true, true
	}
	if events&epoll.Readable != 0 {
		e.readable = true
	}
	over := false
	if events&epoll.Writable != 0 && len(e.unsent) > 0 {
		p.flush(e)
		over = p.turn(e.peer())
	}
	over = over || p.turn(e) || p.part()
	if over {
		p.leave()
	}
	c.mu.Unlock()
	if over {
		c.end()
	}
}

// goOn reads on at a side that had more than one turn's worth.
func (p *pair) goOn(e *end) {
	if p.slot != none {
		p.happened(e, 0)
	}
}

// turn passes on what is to be read at one side: one buffer's worth, so that others get theirs. It reports whether the
// pair is over.
func (p *pair) turn(from *end) (over bool) {
	to := from.peer()
	for from.readable && !from.ended && len(to.unsent) == 0 {
		buf := p.loop.buf[:]
		n, errno := epoll.Read(from.fd, buf)
		switch {
		case errno == syscall.EAGAIN:
			from.readable, from.hung = false, false
		case errno != 0:
			p.finish(from, fmt.Errorf("%w: %w", errRead, os.NewSyscallError("read", errno)))
		case n == 0:
			p.finish(from, nil)
		default:
			p.forward(from, to, buf[:n])
			from.readable = from.hung || n == len(buf) // else what comes next makes an event
			if n == len(buf) {
				p.queue(from)
				return p.isOver()
			}
		}
	}
	return p.isOver()
}

func (p *pair) queue(e *end) {
	if !e.queued {
		e.queued = true
		p.loop.again = append(p.loop.again, e)
	}
}

func (p *pair) isOver() bool {
	client, server := &p.ends[clientEnd], &p.ends[serverEnd]
	return client.broken || client.ended && server.ended && len(client.unsent) == 0
}

// forward writes one chunk and shows it to the follower.
func (p *pair) forward(from, to *end, data []byte) {
	if to.broken {
		return // a client that sends to a server that is gone is heard out
	}
	c := p.conn
	at := c.proxy.Clock.Now()
	n, errno := epoll.Write(to.fd, data)
	switch errno {
	case 0:
	case syscall.EAGAIN:
		to.keep(data[n:], at)
	default:
		p.fail(to, os.NewSyscallError("write", errno))
	}
	if !from.isClient() {
		c.showServer(data, at)
		return
	}
	var sent time.Duration
	if len(to.unsent) == 0 {
		sent = c.proxy.Clock.Now()
	}
	c.showClient(data, at, sent)
}

// keep holds on to bytes until the socket has room.
func (e *end) keep(data []byte, since time.Duration) {
	e.pair.conn.writing = e.pair.conn.writing || e.isClient()
	e.held = buffers.Get().(*[bufferSize]byte)
	e.unsent = e.held[:copy(e.held[:], data)]
	e.since = since
}

// flush writes what could not be written before.
func (p *pair) flush(e *end) {
	n, errno := epoll.Write(e.fd, e.unsent)
	e.unsent = e.unsent[n:]
	if errno == syscall.EAGAIN {
		return
	}
	now := p.conn.proxy.Clock.Now()
	e.drop()
	switch {
	case errno != 0:
		p.fail(e, os.NewSyscallError("write", errno))
	case e.isClient():
		p.conn.follower.Stalled(now - e.since)
		p.conn.active, p.conn.writing = now, false
	default:
		p.conn.follower.Passed(now)
	}
	if e.peer().ended {
		p.closeWrite(e)
	}
}

// drop gives the buffer of unsent bytes back.
func (e *end) drop() {
	if e.held != nil {
		buffers.Put(e.held)
		e.held, e.unsent = nil, nil
	}
}

// finish notes that a side has said all it will.
func (p *pair) finish(e *end, err error) {
	e.ended = true
	closer := capture.EndServer
	if e.isClient() {
		closer = capture.EndClient
	}
	p.conn.noteLocked(err, closer)
	if len(e.peer().unsent) == 0 {
		p.closeWrite(e.peer())
	}
}

// closeWrite passes on an end. A client whose server has ended gets some time to read what is left: it has nobody to talk
// to any more.
func (p *pair) closeWrite(e *end) {
	syscall.Shutdown(e.fd, syscall.SHUT_WR)
	if e.isClient() {
		p.wait()
	}
}

// fail notes that a side takes no more bytes. A client that is gone ends the pair; what the server said before it went is
// for the client yet.
func (p *pair) fail(e *end, err error) {
	e.broken = true
	p.conn.noteLocked(err, capture.EndServer)
	if !e.isClient() {
		p.wait()
	}
}

// wait sets the deadline.
func (p *pair) wait() {
	if p.deadline.IsZero() {
		p.deadline = time.Now().Add(lastWords)
		p.loop.waiting = append(p.loop.waiting, p)
	}
}

// leave closes the sockets and leaves the loop. Call it with mu held, and conn.end behind it.
func (p *pair) leave() {
	l := p.loop
	for i := range p.ends {
		e := &p.ends[i]
		e.drop()
		e.ended = true
		syscall.Close(e.fd)
	}
	l.pairs[p.slot] = nil
	l.left = append(l.left, p.slot)
	p.slot = none
}

// hungUp acts on hangUp.
func (p *pair) hungUp() {
	if p.slot == none { // over already, or not yet here
		return
	}
	p.conn.mu.Lock()
	over := p.part()
	if over {
		p.leave()
	}
	p.conn.mu.Unlock()
	if over {
		p.conn.end()
	}
}

// part takes leave of both sides if we are to hang up and can. It reports whether the pair is over.
func (p *pair) part() (over bool) {
	c := p.conn
	if !c.stopped || c.parted || !c.mayPart() {
		return false
	}
	client, server := &p.ends[clientEnd], &p.ends[serverEnd]
	if len(client.unsent) > 0 || client.broken {
		return c.insisted // else when it has all of its answer
	}
	c.parted = true
	toClient, toServer := c.parting()
	if len(server.unsent) == 0 {
		epoll.Write(server.fd, toServer)
	}
	epoll.Write(client.fd, toClient)
	server.drop()
	server.broken, server.ended = true, true
	p.closeWrite(server)
	p.closeWrite(client)
	client.readable = true // what it has sent is heard out: to close with that unread would make the end a reset
	return p.turn(client)
}
