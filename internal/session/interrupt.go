package session

import (
	"redrive/internal/wire"
)

// Interrupt ends the wait for a reply that is not over: it appends to dst the packet, framed if the session is
// compressed, by which the client may be told e now, in the place of the rest of the reply. It reports false, and appends
// nothing, where no client expects an ERR: in the midst of a packet, among column definitions, while the client's turn is
// not over (it sends a file, or is asked in an authentication), or with no reply to wait for.
//
// After it the connection must be closed. What the server still sends must not reach the client; the follower ignores it.
// Close then tells of the command as cut off (capture.Cut) with e's number.
func (f *Follower) Interrupt(dst []byte, e *wire.Error) ([]byte, bool) {
	if !f.interruptible() {
		return dst, false
	}
	c := f.oldest
	f.interrupted = true
	o := &c.reply.Outcome
	o.Errno = e.Errno
	o.SQLState = [5]byte{}
	copy(o.SQLState[:], e.SQLState)
	o.Results++
	told := *e
	switch {
	case !f.caps.Has(wire.Protocol41):
		told.SQLState = ""
	case len(told.SQLState) != len(o.SQLState):
		told.SQLState = "HY000"
	}
	packet, _ := wire.AppendPacket(nil, c.next, wire.AppendError(nil, &told))
	if f.server.frames == nil {
		return append(dst, packet...), true
	}
	return wire.AppendFrame(dst, c.frame, packet), true
}

func (f *Follower) interruptible() bool {
	if f.stage != stageCommands || f.interrupted || f.uploading || f.inFlight == 0 || !f.server.atBoundary() {
		return false
	}
	c := f.oldest
	switch {
	case c.parting != 0: // the session has ended already
		return false
	case c.code == wire.ComChangeUser:
		return !f.asked
	}
	return !wire.LeavesProtocol(c.code) && c.reply.TakesError()
}
