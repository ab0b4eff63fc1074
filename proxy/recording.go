package proxy

import (
	"time"

	"redrive/capture"
	"redrive/internal/sqltext"
)

// joinGrace is how long a recording that ends waits for commands in flight. It is long enough for each of them to get
// its begin record.
const joinGrace = 2 * openLimit

// Record makes r the recording from here on: a session that is open joins it at its next command, with a record of its
// state. nil ends the recording. The recording before, nil if there was none, gets nothing any more when Record
// returns: the caller closes it, with the number of its commands that are still without an end. One call at a time; it
// takes up to two seconds.
func (p *Proxy) Record(r *capture.Recorder) (before *capture.Recorder, unfinished uint64) {
	p.mu.Lock()
	before = p.recorder
	p.recorder = r
	p.mu.Unlock()
	deadline := time.Now().Add(joinGrace)
	for {
		late := time.Now().After(deadline)
		busy := 0
		p.each(func(c *conn) {
			left, open := c.change(r, late)
			unfinished += open
			if !left {
				busy++
			}
		})
		if busy == 0 {
			return before, unfinished
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// current is the recording that connections should be in.
func (p *Proxy) current() *capture.Recorder {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.recorder
}

// change names the recording the connection should be in. It reports whether the connection has left the one before;
// when it is late it leaves with commands in flight, and tells how many.
func (c *conn) change(to *capture.Recorder, late bool) (left bool, unfinished uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.look()
	c.next = to
	c.leave()
	if c.recorder == nil || c.recorder == to {
		return true, 0
	}
	if !late {
		return false, 0
	}
	unfinished = uint64(c.follower.InFlight())
	if c.follower.Arriving() != 0 {
		unfinished++
	}
	c.endRecording()
	c.enter(c.proxy.Clock.Now()) // what is in flight is unfinished there, and whole here
	return true, unfinished
}

// leave ends the connection's part in a recording that it should not be in any more, if no command is in flight.
func (c *conn) leave() {
	if c.recorder == c.next || c.recorder == nil {
		return
	}
	if c.loggedIn && c.lost == "" && !c.follower.Quiet() {
		return
	}
	c.endRecording()
}

func (c *conn) endRecording() {
	switch {
	case c.lost != "":
		c.record(&capture.SessionEnd{Reason: capture.EndOpaque, Detail: c.lost, Commands: c.number})
	case c.loggedIn:
		c.record(&capture.SessionEnd{Reason: capture.EndStopped, Detail: "the recording ended", Commands: c.number})
	}
	c.recorder = nil
}

// join begins the connection's part in the recording it should be in: before the login as a matter of course, later
// with a record of the session's state, between two commands. at is when the bytes were read that come next.
func (c *conn) join(at time.Duration) {
	if c.recorder != nil || c.next == nil {
		return
	}
	switch {
	case !c.loggedIn:
		c.recorder = c.next
	case c.lost != "":
		c.recorder, c.next = c.next, nil
		c.record(&capture.SessionEnd{Reason: capture.EndOpaque, Detail: c.lost})
		c.recorder = nil
	case c.follower.Quiet():
		c.enter(at)
	}
}

// enter begins the session's part in the recording it should be in, with a record of its state.
func (c *conn) enter(at time.Duration) {
	if c.next == nil {
		return
	}
	c.recorder = c.next
	state := c.follower.State()
	state.At = at
	for i := range state.Prepared {
		if text := &state.Prepared[i].Text; mayBearPassword(*text) {
			*text = sqltext.Normalize(nil, *text)
		}
	}
	c.start(&state)
	c.follower.EachOpen(func(s *capture.Statement) { s.Flags &^= capture.Begun }) // not in this one
}
