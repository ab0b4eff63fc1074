package capture

import (
	"sync"
	"time"
)

// A Lane is a way into a Recorder with a lock and a block of its own: event loops that have one each share nothing from
// statement to statement. It is safe for concurrent use. All records of one session go through one lane.
type Lane struct {
	r *Recorder

	mu       sync.Mutex
	enc      *encoder // nil once the Recorder is closed
	off      cause    // why nothing is stored; stored: it is
	closed   bool
	unbegun  openSet // open statements whose begin found no room
	shedding shedding
	gaps     [causes]Gap // what was shed since the last gap record
	outage   string      // what the last error said
	ledger   Ledger
	charged  int // bytes taken for the encoder, beside its block

	// Read by others without the lock, under the Recorder's.
	earliest instant // place in start order of the earliest record in the open block
	waits    instant // earliest start in unbegun
	first    instant // earliest Done or At of the records in the open block, or being stored
	arrivals arrivals

	queue []*block // to be written, oldest first; under the Recorder's lock

	_ [64]byte // lanes side by side share no cache line
}

func newLane(r *Recorder) *Lane {
	l := &Lane{r: r, enc: newEncoder(), unbegun: openSet{}, shedding: shedding{txns: map[uint64]uint64{}}}
	l.waits.set(never)
	l.arrivals.oldest.set(never)
	l.emptied()
	return l
}

// Statement stores a statement that is done, or sheds it. Each call counts as one forwarded.
func (l *Lane) Statement(s *Statement) {
	l.lock(s.Done)
	defer l.mu.Unlock()
	if l.closed {
		return
	}
	id := command{s.Session, s.Number}
	begun := l.enc.begun.has(id)
	kept, why := l.admitStatement(s, begun)
	if l.closed {
		return
	}
	l.ledger.Forwarded++
	if why != stored {
		l.shed(s, why)
	} else {
		l.announce(s.Done)
		l.enc.statement(kept)
		l.ledger.Stored++
		l.shedding.kept(s)
		l.note()
	}
	if _, waited := l.unbegun.remove(id); waited {
		l.noteWaits()
	}
}

// Begin stores that a statement is open. One that finds no room is left out without a trace, as its end tells the same;
// until then the horizon waits for it.
func (l *Lane) Begin(s *Statement) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return
	}
	why := l.off
	if why == stored && l.shedding.began(s.Session) {
		why = full
	}
	if why == stored {
		why = l.admit(sizeOfStatement(s), true)
	}
	switch {
	case l.closed:
	case why != stored:
		l.unbegun.add(opening{command{s.Session, s.Number}, s.Started()})
		l.waits.lower(s.Started())
	default:
		l.enc.beginStatement(s)
		l.note()
	}
}

// SessionStart stores a login that succeeded, or the state of a session that joined.
func (l *Lane) SessionStart(s *SessionStart) {
	size := len(s.User) + len(s.Schema) + len(s.ServerVersion) + len(s.Client)
	for _, a := range s.Attributes {
		size += len(a.Name) + len(a.Value)
	}
	for _, p := range s.Prepared {
		size += len(p.Types) + len(p.Text) + 16
	}
	l.lock(s.At)
	defer l.mu.Unlock()
	if l.admitSession(size, s.At) {
		l.announce(s.At)
		l.enc.sessionStart(s)
		l.note()
	}
}

// SessionEnd stores the end of a connection.
func (l *Lane) SessionEnd(s *SessionEnd) {
	l.lock(s.At)
	defer l.mu.Unlock()
	admitted := l.admitSession(len(s.Detail), s.At)
	if l.closed {
		return
	}
	if s.Reason == EndOpaque {
		l.ledger.Opaque++
	}
	l.shedding.over(s.Session)
	if admitted {
		l.announce(s.At)
		l.enc.sessionEnd(s)
		l.note()
	} else {
		delete(l.enc.begun, s.Session)
	}
	if len(l.unbegun) > 0 {
		delete(l.unbegun, s.Session)
		l.noteWaits()
	}
}

func (l *Lane) admitSession(size int, at time.Duration) bool {
	if l.closed {
		return false
	}
	why := l.admit(size, true)
	if l.closed || why == stored {
		return !l.closed
	}
	l.gaps[why].add(&Gap{From: at, To: at, Sessions: 1})
	return false
}

// admitStatement makes room for a statement, or for the beginning of one that is too large.
func (l *Lane) admitStatement(s *Statement, begun bool) (*Statement, cause) {
	if l.off != stored {
		return nil, l.off
	}
	whole := l.r.opts.OnFull == ShedTransactions
	if whole && l.shedding.of(s) {
		return nil, full
	}
	size := sizeOfStatement(s)
	if l.fits(size) {
		return s, stored
	}
	reserved := begun || keeps(s) || whole && s.Place > 1
	why := l.admit(size, reserved)
	if why == large {
		s = shorten(s, l.r.kept)
		why = l.admit(sizeOfStatement(s), reserved)
	}
	return s, why
}

// admit makes room for a record with size bytes of byte strings, or says why it cannot. Waiting for room, it lets go of
// the lock meanwhile.
func (l *Lane) admit(size int, reserved bool) cause {
	for alone := false; ; {
		switch {
		case l.closed:
			return stopped
		case l.off != stored:
			return l.off
		case l.fits(size):
			return stored
		case cost(size) > l.r.most:
			return large
		}
		if size >= blockSize && l.enc.block.info.Records > 0 {
			l.cut() // a block of its own is not copied when it grows
			continue
		}
		if l.take(size, reserved) {
			return stored
		}
		switch l.r.opts.OnFull {
		case StopRecording:
			l.r.stop()
			l.off = stopped
			return stopped
		case Block:
			if alone && size > maxKept {
				return large // who holds the rest of the account may be waiting for us
			}
			if alone {
				l.charge(l.need(size))
				return stored
			}
			l.cut()
			l.mu.Unlock()
			waited := l.r.wait()
			l.mu.Lock()
			if waited == released {
				return full
			}
			alone = waited == nothingToWaitFor
		default:
			if l.r.pending.Load() == 0 {
				l.cut() // or it would wait for the time to write
			}
			return full
		}
	}
}

// fits reports whether there is room for a record without taking any.
func (l *Lane) fits(size int) bool {
	return l.off == stored && l.need(size) <= 0
}

// need is how many bytes the block must be charged more before a record is stored.
func (l *Lane) need(size int) int {
	b := l.enc.block
	return blockCost + 2*(b.size+recordCost) + cost(size) - b.charged
}

// cost is what byte strings may take: columns grow to the double, but for large ones.
func cost(size int) int {
	if size < largeBytes {
		return 2 * size
	}
	return size
}

// take takes room for a record from the account, and some more for the next ones where there is plenty.
func (l *Lane) take(size int, reserved bool) bool {
	need := l.need(size)
	scaffold := max(0, l.enc.scaffold()-l.charged)
	reserved = reserved && cost(size) <= l.r.reserved/4 // a large one must not take it from all others
	if l.r.take(need+scaffold+l.r.step, false) {
		need += l.r.step
	} else if !l.r.take(need+scaffold, reserved) {
		return false
	}
	l.charged += scaffold
	l.enc.block.charged += need
	return true
}

// charge takes room that there may not be.
func (l *Lane) charge(n int) {
	l.r.force(n)
	l.enc.block.charged += n
}

// note publishes what the block holds since a record was stored, and hands it on when it is full.
func (l *Lane) note() {
	l.earliest.lower(l.enc.block.info.Earliest)
	if l.enc.full() {
		l.cut()
	}
}

// emptied publishes that the block is empty.
func (l *Lane) emptied() {
	l.earliest.set(never)
	l.first.set(never)
}

// noteWaits publishes for what the horizon has to wait.
func (l *Lane) noteWaits() {
	oldest := l.unbegun.oldest()
	if oldest == none {
		oldest = never
	}
	l.waits.set(oldest)
}

// shed counts a statement that is not stored.
func (l *Lane) shed(s *Statement, why cause) {
	l.enc.begun.remove(command{s.Session, s.Number})
	l.ledger.Shed++
	g := Gap{From: s.Started(), To: s.Done, Statements: 1}
	if l.r.opts.OnFull == ShedTransactions && l.shedding.shed(s) {
		g.Cut = 1
	}
	l.gaps[why].add(&g)
}

// noteGaps stores what was shed, if anything was; behind a recording's end it is told at once, when it is closed.
func (l *Lane) noteGaps() {
	for why := range l.gaps {
		if cause(why) == stopped && !l.closed {
			continue
		}
		if g := l.takeGap(cause(why)); !g.empty() {
			l.enc.gap(&g)
		}
	}
}

// takeGap is what was shed for a cause, which from here on is told.
func (l *Lane) takeGap(why cause) Gap {
	g := l.gaps[why]
	l.gaps[why] = Gap{}
	g.Reason = reasons[why]
	if why == failed && l.outage != "" {
		g.Reason += ": " + l.outage
	}
	return g
}

// cut hands the open block, if it has records, on to be written.
func (l *Lane) cut() {
	if l.enc.block.info.Records == 0 {
		l.emptied() // a record that was announced was shed
		return
	}
	l.noteGaps()
	l.r.enqueue(l)
}

// flush hands on what there is, also if that is no more than a gap and there is room to tell of it.
func (l *Lane) flush() {
	if l.closed || l.off != stored {
		return
	}
	if l.enc.block.info.Records == 0 && (l.fits(0) || l.take(0, false)) {
		l.noteGaps()
	}
	l.cut()
}
