package analyze

import (
	"time"

	"redrive/capture"
	"redrive/internal/stats"
)

// A group adds up statements of one type, or of one digest.
type group struct {
	name       string
	digest     uint64 // 0 for none
	count      uint64
	rows       uint64
	affected   uint64
	errors     uint64
	unanswered uint64
	service    stats.Histogram // of those answered
}

func (g *group) add(st *capture.Statement, prevDone time.Duration) {
	g.tally(st)
	if answered(st) {
		g.service.Record(st.Service(prevDone))
	}
}

// tally is add without the time.
func (g *group) tally(st *capture.Statement) {
	g.count++
	g.rows += st.Outcome.Rows
	g.affected += st.Outcome.Affected
	if refused(st) != 0 {
		g.errors++
	}
	if st.Flags&(capture.Unanswered|capture.Cut) != 0 {
		g.unanswered++
	}
}

func (g *group) merge(o *group) {
	g.count += o.count
	g.rows += o.rows
	g.affected += o.affected
	g.errors += o.errors
	g.unanswered += o.unanswered
	g.service.Merge(&o.service)
}
