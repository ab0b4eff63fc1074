package capture

import (
	"slices"
	"time"
)

// A command is the identity of a statement in a file.
type command struct{ session, number uint64 }

// An opening is a statement that is open since its start.
type opening struct {
	command
	started time.Duration
}

// openSet is a set of open statements, by session. It is mostly empty, which costs next to nothing.
type openSet map[uint64][]opening

func (o openSet) add(s opening) { o[s.session] = append(o[s.session], s) }

func (o openSet) has(id command) bool {
	return len(o) > 0 && slices.ContainsFunc(o[id.session], func(s opening) bool { return s.command == id })
}

// remove takes a statement out and returns it, if it was there.
func (o openSet) remove(id command) (s opening, ok bool) {
	if len(o) == 0 {
		return opening{}, false
	}
	of := o[id.session]
	i := slices.IndexFunc(of, func(s opening) bool { return s.command == id })
	if i < 0 {
		return opening{}, false
	}
	s = of[i]
	if of = slices.Delete(of, i, i+1); len(of) == 0 {
		delete(o, id.session)
	} else {
		o[id.session] = of
	}
	return s, true
}

// oldest is the start of the oldest, or none.
func (o openSet) oldest() time.Duration {
	oldest := none
	for _, of := range o {
		for _, s := range of {
			if oldest == none || s.started < oldest {
				oldest = s.started
			}
		}
	}
	return oldest
}
