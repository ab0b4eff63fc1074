package capture

import (
	"fmt"
	"time"
)

// Disorder is how far the records of a file may be from done order: the threads of a writer read their clocks a moment
// before they store.
const Disorder = time.Second

// maxProblems is how many problems of a file are told one by one.
const maxProblems = 20

// A Verification is what a whole reading of a file found.
type Verification struct {
	Records  [KindGap + 1]uint64 // by kind
	Blocks   int
	Whole    int64    // bytes up to which the file is whole
	Clean    bool     // it has its end
	Err      error    // where and why reading ended, if not at a clean end
	Problems []string // what contradicts FORMAT.md in what could be read; at most the first 20
	Further  int      // problems not in Problems
}

// OK reports whether the file is whole and consistent.
func (v *Verification) OK() bool { return v.Err == nil && len(v.Problems) == 0 }

// Verify reads all of r and checks what FORMAT.md promises beyond the bytes' integrity, which reading checks by itself:
// done order, begins and their ends, block headers, horizons, and the ledger.
func Verify(r *Reader) *Verification {
	v := verifier{r: r, open: map[command]time.Duration{}, places: places{}, floor: -1}
	for r.Next() {
		v.record(r.Record())
	}
	v.endBlock()
	v.report.Whole, v.report.Err = r.Offset(), r.Err()
	if l, ok := r.Ledger(); ok {
		v.report.Clean = true
		v.ledger(l)
	}
	return &v.report
}

type verifier struct {
	r        *Reader
	report   Verification
	head     BlockInfo                 // of the block at hand, as its header says
	seen     BlockInfo                 // and as its records say
	open     map[command]time.Duration // begins without an end, with their starts
	places   places
	floor    time.Duration // the horizon promised by the blocks before
	lastDone time.Duration
	shed     uint64 // statements, as the gaps say
}

func (v *verifier) problem(format string, args ...any) {
	if len(v.report.Problems) >= maxProblems {
		v.report.Further++
		return
	}
	v.report.Problems = append(v.report.Problems, fmt.Sprintf(format, args...))
}

func (v *verifier) record(rec *Record) {
	if v.report.Blocks == 0 || v.head.Offset != v.r.Block().Offset {
		v.endBlock()
		v.head = v.r.Block()
		v.seen = BlockInfo{Offset: v.head.Offset, Horizon: v.head.Horizon, Earliest: none, LastDone: none, OldestOpen: none}
		v.report.Blocks++
	}
	v.report.Records[rec.Kind]++
	v.seen.Records++
	if rec.Kind == KindGap {
		v.shed += rec.Gap.Statements
		return
	}
	v.pair(rec)
	v.note(rec.Place(), doneOf(rec))
	if place := v.places.place(rec); place < v.floor {
		v.problem("offset %d: a %s stands at %v in start order, an earlier block promised none before %v", v.head.Offset, rec.Kind, place, v.floor)
	}
}

// doneOf is what done order sorts by; none for a begin.
func doneOf(rec *Record) time.Duration {
	switch rec.Kind {
	case KindStatement:
		return rec.Statement.Done
	case KindSessionStart:
		return rec.Start.At
	case KindSessionEnd:
		return rec.End.At
	}
	return none
}

func (v *verifier) note(place, done time.Duration) {
	if v.seen.Earliest == none || place < v.seen.Earliest {
		v.seen.Earliest = place
	}
	v.seen.LastDone = max(v.seen.LastDone, done)
	if done > 0 && done+Disorder < v.lastDone {
		v.problem("offset %d: a record done at %v comes after one done at %v", v.head.Offset, done, v.lastDone)
	}
	v.lastDone = max(v.lastDone, done)
}

// pair matches begins with their ends.
func (v *verifier) pair(rec *Record) {
	id := command{rec.Statement.Session, rec.Statement.Number}
	switch rec.Kind {
	case KindBegin:
		if _, twice := v.open[id]; twice {
			v.problem("offset %d: statement %d.%d begins twice", v.head.Offset, id.session, id.number)
		}
		v.open[id] = rec.Statement.Started()
	case KindStatement:
		_, begun := v.open[id]
		if begun != rec.Statement.Flags.Has(Begun) {
			v.problem("offset %d: statement %d.%d: flag Begun %v, begin record %v", v.head.Offset, id.session, id.number, !begun, begun)
		}
		delete(v.open, id)
	case KindSessionEnd:
		for id := range v.open {
			if id.session == rec.End.Session {
				delete(v.open, id)
			}
		}
	}
}

// endBlock compares the block's header with its records, if the block was read to its end.
func (v *verifier) endBlock() {
	if v.report.Blocks == 0 || v.seen.Records != v.head.Records {
		return
	}
	for _, started := range v.open {
		if v.seen.OldestOpen == none || started < v.seen.OldestOpen {
			v.seen.OldestOpen = started
		}
	}
	if v.seen != v.head {
		v.problem("offset %d: the block's header says earliest %d, last done %d, oldest open %d; its records %d, %d, %d", v.head.Offset,
			v.head.Earliest, v.head.LastDone, v.head.OldestOpen, v.seen.Earliest, v.seen.LastDone, v.seen.OldestOpen)
	}
	v.floor = max(v.floor, v.head.Horizon)
}

func (v *verifier) ledger(l Ledger) {
	if stored := v.report.Records[KindStatement]; l.Stored != stored {
		v.problem("ledger: %d stored, the file has %d", l.Stored, stored)
	}
	if l.Shed != v.shed {
		v.problem("ledger: %d shed, the gap records tell of %d", l.Shed, v.shed)
	}
	if l.Stored+l.Shed+l.Unfinished != l.Forwarded {
		v.problem("ledger: stored %d + shed %d + unfinished %d is not forwarded %d", l.Stored, l.Shed, l.Unfinished, l.Forwarded)
	}
	if open := uint64(len(v.open)); open > l.Unfinished+l.Shed {
		v.problem("ledger: %d begins without an end, but %d unfinished and %d shed", open, l.Unfinished, l.Shed)
	}
}
