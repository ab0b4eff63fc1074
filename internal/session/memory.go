package session

import (
	"redrive/internal/wire"
)

// An account is a follower as the wire.Account that its buffers take from: Memory, with a sum of what this follower
// holds, so that all can be given back whatever happens.
type account Follower

func (f *Follower) account() wire.Account { return (*account)(f) }

// Take takes n bytes from Memory.
func (a *account) Take(n int) bool {
	if !a.Memory.Take(n) {
		return false
	}
	a.held += n
	return true
}

// Give gives n bytes back to it.
func (a *account) Give(n int) {
	a.held -= n
	a.Memory.Give(n)
}
