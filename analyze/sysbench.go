package analyze

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"redrive/capture"
)

// Sysbench is a run as sysbench 1.0 and 1.1 report it: statements are told apart by their results, not by their text.
type Sysbench struct {
	Read          uint64  `json:"read"`  // returned a result set, even an empty one
	Write         uint64  `json:"write"` // affected rows
	Other         uint64  `json:"other"` // neither: BEGIN, COMMIT, DDL, and changes that changed nothing
	Total         uint64  `json:"total"`
	Transactions  *uint64 `json:"transactions"` // nil if the capture cannot tell: events that used no BEGIN and COMMIT
	IgnoredErrors uint64  `json:"ignored_errors"`
	Reconnects    uint64  `json:"reconnects"` // ignored errors that are lost connections

	// Per second of the headline's duration: total, and transactions where they are told.
	QPS float64  `json:"qps"`
	TPS *float64 `json:"tps"`
}

// over sets the rates.
func (s Sysbench) over(duration time.Duration) Sysbench {
	seconds := duration.Seconds()
	if seconds == 0 {
		return s
	}
	s.QPS = rounded(float64(s.Total) / seconds)
	if s.Transactions != nil {
		tps := rounded(float64(*s.Transactions) / seconds)
		s.TPS = &tps
	}
	return s
}

// IgnoreErrors are the error numbers that sysbench ignores (--mysql-ignore-errors); nil means its default, and one 0
// means all.
type IgnoreErrors []uint16

var defaultIgnoreErrors = IgnoreErrors{1213, 1020, 1205}

const ignoreAll = 0

// Lost connections, as the client library numbers them.
const errServerLost = 2013

var lostConnections = []uint16{2006, 2011, errServerLost, 2055}

// ParseIgnoreErrors reads sysbench's own list: numbers and commas, or "all"; empty for none.
func ParseIgnoreErrors(list string) (IgnoreErrors, error) {
	errors := IgnoreErrors{}
	for field := range strings.SplitSeq(list, ",") {
		field = strings.TrimSpace(field)
		if field == "all" {
			return IgnoreErrors{ignoreAll}, nil
		}
		if field == "" {
			continue
		}
		n, err := strconv.ParseUint(field, 10, 16)
		if err != nil || n == 0 {
			return nil, fmt.Errorf("%q: want error numbers with commas in between, or all", field)
		}
		errors = append(errors, uint16(n))
	}
	return errors, nil
}

func (i IgnoreErrors) orDefault() IgnoreErrors {
	if i == nil {
		return defaultIgnoreErrors
	}
	return i
}

func (i IgnoreErrors) has(errno uint16) bool {
	return slices.Contains(i, errno) || slices.Contains(i, ignoreAll)
}

// A sysbenchCounter counts as sysbench does.
type sysbenchCounter struct {
	ignore      IgnoreErrors
	figures     Sysbench
	commits     uint64
	usesTrx     bool
	bulkRows    uint64
	otherWrites uint64
}

func (c *sysbenchCounter) add(st *capture.Statement, of *class) {
	c.usesTrx = c.usesTrx || of.verb == beginVerb || of.verb == commitVerb
	if errno := clientErrno(st); errno != 0 {
		c.addError(errno)
		return
	}
	if st.Flags.Has(capture.Unparsed) {
		return
	}
	f, o := &c.figures, &st.Outcome
	switch {
	case o.ResultSets > 0:
		f.Read++
	case o.Affected > 0:
		f.Write++
		c.addWrite(o.Affected, of)
	default:
		f.Other++
	}
	if of.verb == commitVerb {
		c.commits++
	}
}

func (c *sysbenchCounter) addWrite(affected uint64, of *class) {
	if of.verb == bulkVerb {
		c.bulkRows += affected
		return
	}
	c.otherWrites++
}

// clientErrno is the error a client saw: the server's, or that the connection was lost.
func clientErrno(st *capture.Statement) uint16 {
	if st.Outcome.Errno == 0 && st.Flags&(capture.Unanswered|capture.Cut) != 0 {
		return errServerLost
	}
	return st.Outcome.Errno
}

// addError counts an error that is ignored. Any other one ends sysbench's thread and is in none of its counters.
func (c *sysbenchCounter) addError(errno uint16) {
	switch {
	case !c.ignore.has(errno):
	case slices.Contains(lostConnections, errno):
		c.figures.Reconnects++
	default:
		c.figures.IgnoredErrors++
	}
}

// result is the report. Events that committed are transactions; of bulk_insert, where nothing else wrote, rows are.
func (c *sysbenchCounter) result() Sysbench {
	f := c.figures
	f.Total = f.Read + f.Write + f.Other
	switch {
	case c.usesTrx:
		f.Transactions = &c.commits
	case c.bulkRows > 0 && c.otherWrites == 0:
		f.Transactions = &c.bulkRows
	}
	return f
}
