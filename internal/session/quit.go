package session

import "redrive/internal/wire"

// Quit appends the packet, framed if the session is compressed, by which the server may be told now that the session ends:
// one that is closed without counts as aborted. It reports false, and appends nothing, where it would not be understood: in
// the midst of a command.
func (f *Follower) Quit(dst []byte) ([]byte, bool) {
	if !f.Quiet() {
		return dst, false
	}
	packet, _ := wire.AppendPacket(nil, 0, []byte{wire.ComQuit})
	if f.client.frames == nil {
		return append(dst, packet...), true
	}
	return wire.AppendFrame(dst, 0, packet), true
}
