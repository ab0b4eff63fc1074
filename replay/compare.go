package replay

import (
	"strings"

	"redrive/capture"
	"redrive/internal/sqltext"
	"redrive/internal/wire"
)

// Kinds of differences, in the order reports list them.
const (
	newError      = "new error"
	vanishedError = "vanished error"
	changedError  = "changed error"
	rowsDiffer    = "rows"
	affectedRows  = "affected rows"
)

var kinds = []string{newError, vanishedError, changedError, rowsDiffer, affectedRows}

const (
	maxDifferences = 100 // told apart; further ones are in the totals alone
	maxText        = 200 // bytes of a digest text in one
)

// incomparable marks records that do not say how the statement ended.
const incomparable = capture.Unanswered | capture.Cut | capture.NoOutcome | capture.Unparsed

// compareTo compares what came of an item with the capture. Of a statement sent at its begin the captured outcome is
// yet to be read.
func (a *actor) compareTo(i *item, replayed *capture.Outcome) {
	if i.act == actBegin {
		a.begun[i.statement.Number] = *replayed
		return
	}
	a.compare(i.statement, replayed)
}

// compareBegun compares a statement that was sent at its begin, now that its captured outcome is here.
func (a *actor) compareBegun(s *capture.Statement) {
	if replayed, sent := a.begun[s.Number]; sent {
		delete(a.begun, s.Number)
		a.compare(s, &replayed)
	}
}

func (a *actor) compare(s *capture.Statement, replayed *capture.Outcome) {
	if s.Flags&incomparable != 0 || !wire.HasReply(s.Command) {
		return
	}
	a.result.mu.Lock()
	defer a.result.mu.Unlock()
	r := &a.result.r
	r.Compared++
	before := r.Errors.New + r.Errors.Vanished + r.Errors.Changed + r.Rows + r.Affected
	a.compareErrors(s, replayed)
	if s.Outcome.Errno == 0 && replayed.Errno == 0 {
		a.compareCounts(s, replayed)
	}
	if r.Errors.New+r.Errors.Vanished+r.Errors.Changed+r.Rows+r.Affected > before {
		r.Different++
	}
}

func (a *actor) compareErrors(s *capture.Statement, replayed *capture.Outcome) {
	was, is := s.Outcome.Errno, replayed.Errno
	d := Difference{Captured: uint64(was), Replayed: uint64(is), SQLState: stateOf(replayed)}
	e := &a.result.r.Errors
	switch {
	case was == 0 && is != 0:
		d.Kind = newError
		a.differs(d, s, &e.New)
	case was != 0 && is == 0:
		d.Kind, d.SQLState = vanishedError, stateOf(&s.Outcome)
		a.differs(d, s, &e.Vanished)
	case was != is:
		d.Kind = changedError
		a.differs(d, s, &e.Changed)
	case was != 0:
		e.Same++
	}
}

func (a *actor) compareCounts(s *capture.Statement, replayed *capture.Outcome) {
	r := &a.result.r
	if was, is := s.Outcome.Rows, replayed.Rows; was != is {
		a.differs(Difference{Kind: rowsDiffer, Captured: was, Replayed: is}, s, &r.Rows)
	}
	if was, is := s.Outcome.Affected, replayed.Affected; was != is {
		a.differs(Difference{Kind: affectedRows, Captured: was, Replayed: is}, s, &r.Affected)
	}
}

func stateOf(o *capture.Outcome) string {
	if o.Errno == 0 || o.SQLState == [5]byte{} {
		return ""
	}
	return string(o.SQLState[:])
}

// differs counts a difference, in total and with others of its kind and error numbers. The first of them stands for all.
func (a *actor) differs(d Difference, s *capture.Statement, total *uint64) {
	*total++
	results := &a.result
	list := &results.r.Differences
	i, known := results.groups[d.group()]
	switch {
	case known:
		(*list)[i].Count++
	case len(*list) < maxDifferences:
		if results.groups == nil {
			results.groups = map[Difference]int{}
		}
		results.groups[d.group()] = len(*list)
		d.Count, d.Where, d.Text = 1, a.where(s.Number), describe(s)
		*list = append(*list, d)
	}
}

// group is what differences that count as one have in common: kind and error numbers, but not numbers of rows.
func (d Difference) group() Difference {
	if d.Kind == rowsDiffer || d.Kind == affectedRows {
		return Difference{Kind: d.Kind}
	}
	return Difference{Kind: d.Kind, Captured: d.Captured, Replayed: d.Replayed}
}

// describe is a statement without its literals, or the command's name.
func describe(s *capture.Statement) string {
	switch s.Command {
	case wire.ComQuery, wire.ComStmtExecute, wire.ComStmtPrepare:
	default:
		return wire.CommandName(s.Command)
	}
	text := strings.ToValidUTF8(string(sqltext.Normalize(nil, s.Text)), "?")
	if len(text) > maxText {
		text = strings.ToValidUTF8(text[:maxText], "") + "…"
	}
	if s.Command == wire.ComStmtPrepare {
		return "prepare: " + text
	}
	return text
}
