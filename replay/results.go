package replay

import (
	"cmp"
	"slices"
	"sync"
	"time"

	"redrive/capture"
	"redrive/internal/stats"
)

// maxReasons bounds the reasons given for lost sessions.
const maxReasons = 5

// fate is what became of a command.
type fate byte

const (
	fateReplayed fate = iota
	fateSkipped
	fateLost
	fateUnreached
)

// results gathers a Result from all sessions.
type results struct {
	mu     sync.Mutex
	r      Result
	clocks stats.Clocks
	groups map[Difference]int // where in r.Differences what has this in common is counted
}

// captured counts a statement that was read, for its session and for the copies.
func (r *results) captured(s *capture.Statement, copies int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.account(s, 0).Captured++
	r.account(s, 1).Captured += uint64(copies)
}

// count gives a statement its fate in one session.
func (r *results) count(s *capture.Statement, copy uint32, f fate, reason string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	a := r.account(s, copy)
	switch f {
	case fateReplayed:
		a.Replayed++
	case fateSkipped:
		a.Skipped++
		if a.Reasons == nil {
			a.Reasons = map[string]uint64{}
		}
		a.Reasons[reason]++
	case fateLost:
		a.Lost++
	case fateUnreached:
		a.Unreached++
	}
}

func (r *results) account(s *capture.Statement, copy uint32) *Account {
	switch {
	case s.RunsSQL() && copy == 0:
		return &r.r.Statements
	case copy == 0:
		return &r.r.Commands
	case s.RunsSQL():
		return &r.r.Copies.Statements
	}
	return &r.r.Copies.Commands
}

func (r *results) opened() {
	r.mu.Lock()
	r.r.Sessions.Opened++
	r.mu.Unlock()
}

// refused counts a session that never came to be; when the replay was stopped that is nobody's fault.
func (r *results) refused(err error, stopped bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !stopped {
		r.r.Sessions.Refused++
		r.reason(err)
	}
}

// lost counts a session that ended before its time.
func (r *results) lost(err error, stopped bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !stopped {
		r.r.Sessions.Lost++
		r.reason(err)
	}
}

func (r *results) reason(err error) {
	list := &r.r.Sessions.Reasons
	if len(*list) < maxReasons && !slices.Contains(*list, err.Error()) {
		*list = append(*list, err.Error())
	}
}

func (r *results) copyError() {
	r.mu.Lock()
	r.r.Copies.Errors++
	r.mu.Unlock()
}

func (r *results) paused(d time.Duration) {
	r.mu.Lock()
	r.r.Paused += d
	r.mu.Unlock()
}

// timed takes an answered statement's times.
func (r *results) timed(s *capture.Statement, prev time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.clocks.Record(s, prev)
}

// result is what was gathered, once all sessions have ended.
func (r *results) result() *Result {
	r.mu.Lock()
	defer r.mu.Unlock()
	result := r.r
	result.Version = ResultVersion
	result.Service, result.Response = r.clocks.Service.Times(), r.clocks.Response.Times()
	result.Wait, result.Lag = r.clocks.Wait.Times(), r.clocks.Lag.Times()
	slices.SortStableFunc(result.Differences, func(a, b Difference) int {
		return cmp.Or(slices.Index(kinds, a.Kind)-slices.Index(kinds, b.Kind), cmp.Compare(b.Count, a.Count))
	})
	return &result
}
