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
	maxExamples = 5   // differences listed of each kind
	maxText     = 200 // bytes of a digest text in one
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
	was, is := s.Outcome.Errno, replayed.Errno
	note := func(kind string, count *uint64, captured, replayed uint64) {
		*count++
		a.example(Difference{Kind: kind, Captured: captured, Replayed: replayed}, s)
	}
	switch {
	case was == 0 && is != 0:
		note(newError, &r.Errors.New, 0, uint64(is))
	case was != 0 && is == 0:
		note(vanishedError, &r.Errors.Vanished, uint64(was), 0)
	case was != is:
		note(changedError, &r.Errors.Changed, uint64(was), uint64(is))
	case was != 0:
		r.Errors.Same++
	}
	if was != 0 || is != 0 {
		return
	}
	if s.Outcome.Rows != replayed.Rows {
		note(rowsDiffer, &r.Rows, s.Outcome.Rows, replayed.Rows)
	}
	if s.Outcome.Affected != replayed.Affected {
		note(affectedRows, &r.Affected, s.Outcome.Affected, replayed.Affected)
	}
}

// example lists a difference if it is one of the first of its kind.
func (a *actor) example(d Difference, s *capture.Statement) {
	results := &a.result
	if results.examples == nil {
		results.examples = map[string]int{}
	}
	if results.examples[d.Kind] == maxExamples {
		return
	}
	results.examples[d.Kind]++
	d.Where, d.Text = a.where(s.Number), describe(s)
	results.r.Differences = append(results.r.Differences, d)
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
