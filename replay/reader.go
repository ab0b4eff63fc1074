package replay

import (
	"context"
	"sync/atomic"
	"time"

	"redrive/capture"
)

// sessionCost is what a session that waits for its turn takes in memory, its goroutine included.
const sessionCost = 8 << 10

// A group is a captured session's player and its copies'.
type group struct {
	members []*actor
	begun   begins
	running atomic.Int32
	end     int // its number among the ends that were read, for turns; set before the queues close, -1 until then
}

type groupKey struct {
	file    int
	session uint64
}

// A reader hands the records of a stream out to sessions. It waits for room in the budget, and for nothing else.
type reader struct {
	*Player
	groups map[groupKey]*group
}

// read plays source to its end, or until ctx ends; the sessions go on by themselves.
func (p *Player) read(ctx context.Context, source *stream) {
	r := &reader{p, make(map[groupKey]*group)}
	for ctx.Err() == nil && source.Next() {
		r.record(ctx, source.Record(), source.Part())
	}
	for _, g := range r.groups {
		g.close()
	}
}

func (r *reader) record(ctx context.Context, rec *capture.Record, part *part) {
	switch rec.Kind {
	case capture.KindSessionStart:
		key := groupKey{part.index, rec.Start.Session}
		if r.groups[key] == nil {
			r.start(ctx, key, &rec.Start, connectTime(&rec.Start)+part.shift)
		}
	case capture.KindSessionEnd:
		r.end(groupKey{part.index, rec.End.Session}, &rec.End, part.shift)
	case capture.KindBegin, capture.KindStatement:
		r.statement(ctx, rec, part)
	}
}

// start begins a session and its copies. at is when the captured one was connected.
func (r *reader) start(ctx context.Context, key groupKey, start *capture.SessionStart, at time.Duration) *group {
	due := r.due(at)
	r.take(ctx, sessionCost, due)
	g := &group{begun: begins{}, end: -1}
	var turn <-chan struct{}
	if r.turns != nil {
		turn = r.turns.follow()
	}
	opening := &item{cost: sessionCost, budget: r.budget}
	opening.holders.Store(int32(r.Scale))
	for copy := range r.Scale {
		s := newActor(r.Player, key, start, uint32(copy))
		s.turn, s.due, s.opening = turn, due, opening
		g.members = append(g.members, s)
	}
	r.groups[key] = g
	r.launch(ctx, g)
	return g
}

// launch runs a group's sessions, and tells the others when the last of them has ended.
func (r *reader) launch(ctx context.Context, g *group) {
	g.running.Store(int32(len(g.members)))
	for _, s := range g.members {
		r.running.Go(func() {
			s.run(ctx)
			if g.running.Add(-1) == 0 && g.end >= 0 {
				r.turns.done(g.end)
			}
		})
	}
}

func (r *reader) statement(ctx context.Context, rec *capture.Record, part *part) {
	s := &rec.Statement
	key := groupKey{part.index, s.Session}
	g := r.groups[key]
	if g == nil { // its start was before the capture, or shed
		start := &capture.SessionStart{Session: s.Session, Schema: string(s.Schema)}
		g = r.start(ctx, key, start, s.Started()+part.shift)
	}
	i := &item{statement: s.Clone(), due: r.due(s.Started() + part.shift), cost: itemCost(s), budget: r.budget}
	switch {
	case g.begun.seen(rec):
		i.act = actCompare
	case rec.Kind == capture.KindBegin:
		i.act = actBegin
		r.rules(i)
	default:
		r.rules(i)
	}
	r.take(ctx, i.cost, i.due)
	g.put(i)
}

// rules says who skips a statement, and counts it: from here on it has one fate in every session.
func (r *reader) rules(i *item) {
	i.skip = skipRule(i.statement)
	if i.skip == "" && r.Scale > 1 {
		i.skipCopy = copySkipRule(i.statement)
	}
	r.result.captured(i.statement, r.Scale-1)
}

// end ends a session at its captured time, but at once where only the recording ended.
func (r *reader) end(key groupKey, end *capture.SessionEnd, shift time.Duration) {
	g := r.groups[key]
	if g == nil {
		return // a login that was refused
	}
	delete(r.groups, key)
	i := &item{act: actEnd, budget: r.budget}
	if endsByClient(end) {
		i.due = r.due(end.At + shift)
	}
	if r.turns != nil {
		g.end = r.turns.end()
	}
	g.put(i)
	g.close()
}

// take waits for room. When ctx ends it goes on without, so that what was counted also gets its fate. At full speed
// waiting is the rule; where there is a schedule it is told of as far as it made what comes next late.
func (r *reader) take(ctx context.Context, cost int, due time.Duration) {
	waited, ok := r.budget.take(ctx, cost, func() bool { return r.Clock.Now() >= due })
	if !ok {
		r.budget.give(-cost)
	}
	if late := min(waited, r.Clock.Now()-due); late > 0 && r.schedule.Paced() {
		r.result.paused(late)
	}
}

func (g *group) put(i *item) {
	i.holders.Store(int32(len(g.members)))
	for _, s := range g.members {
		s.queue.put(i)
	}
}

func (g *group) close() {
	for _, s := range g.members {
		s.queue.close()
	}
}
