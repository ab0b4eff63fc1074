package analyze

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"redrive/capture"
	"redrive/internal/stats"
	"redrive/internal/wire"
)

// A Report is what there is to say about one run. docs/analyze.md describes its JSON; times are nanoseconds there.
type Report struct {
	Source       Source        `json:"source"`
	Warnings     []string      `json:"warnings"` // what is missing or doubtful; read first
	Headline     Headline      `json:"headline"`
	Statements   []Group       `json:"statements"`   // by share of time
	Transactions []Transaction `json:"transactions"` // by share of time
	Commands     []Command     `json:"commands"`     // those that run no SQL
	Errors       []Error       `json:"errors"`
	Sysbench     Sysbench      `json:"sysbench"`
	Gaps         []Gap         `json:"gaps"`

	byDigest  bool
	groups    map[string]Group // all of them, for comparing runs
	order     []string         // their names, as in Statements
	durations *Times           // of all transactions
}

// Source says where a run comes from.
type Source struct {
	File     string    `json:"file"`
	Producer string    `json:"producer,omitempty"`
	Product  string    `json:"product,omitempty"`
	Start    time.Time `json:"start,omitzero"`
	Backend  string    `json:"backend,omitempty"`
	Server   string    `json:"server,omitempty"` // version
}

// Headline is the run in figures. The duration is from the first statement's start to the last reply's end.
type Headline struct {
	Duration     time.Duration `json:"duration_ns"`
	Sessions     uint64        `json:"sessions"`
	Statements   uint64        `json:"statements"`
	Transactions uint64        `json:"transactions"` // that ended; autocommitted statements are transactions too
	Errors       uint64        `json:"errors"`       // statements that the server refused
	Unanswered   uint64        `json:"unanswered"`   // statements whose connection ended before their reply did
	QPS          float64       `json:"qps"`
	TPS          float64       `json:"tps"`
	Concurrency  float64       `json:"concurrency"` // statements in the server at a time, on average
	Service      *Times        `json:"service"`     // null if nothing was timed
	Response     *Times        `json:"response"`    // response, wait and lag only of statements that were due at a time
	Wait         *Times        `json:"wait"`
	Lag          *Times        `json:"lag"`
	Ends         Ends          `json:"ends"`
}

// Times are a distribution of durations.
type Times = stats.Times

// A Group is one row of the statement table.
type Group struct {
	Name       string  `json:"name"`             // type, or digest text
	Digest     string  `json:"digest,omitempty"` // 16 hexadecimal digits
	Count      uint64  `json:"count"`
	Share      float64 `json:"share"`   // of all statements' service time, from 0 to 1
	Service    *Times  `json:"service"` // null if none was answered
	Rows       uint64  `json:"rows"`
	Affected   uint64  `json:"affected"`
	Errors     uint64  `json:"errors"`
	Unanswered uint64  `json:"unanswered"`
}

// A Transaction is one row of the transaction table.
type Transaction struct {
	Name       string  `json:"name"`       // sequence of statement types
	Statements uint64  `json:"statements"` // in each
	Count      uint64  `json:"count"`
	Share      float64 `json:"share"`    // of all transactions' time
	Duration   *Times  `json:"duration"` // start of the first statement to the end of the last reply
	Rows       uint64  `json:"rows"`
	Affected   uint64  `json:"affected"`
	Errors     uint64  `json:"errors"`
}

// A Command counts one command that runs no SQL.
type Command struct {
	Name   string `json:"name"`
	Count  uint64 `json:"count"`
	Errors uint64 `json:"errors"`
}

// An Error is an error number and where it came up.
type Error struct {
	Errno    uint16       `json:"errno"`
	SQLState string       `json:"sqlstate,omitempty"`
	Count    uint64       `json:"count"`
	In       []ErrorCount `json:"in"`
}

// An ErrorCount is how often an error came to one type of statement, or to a command that runs no SQL.
type ErrorCount struct {
	Type  string `json:"type"`
	Count uint64 `json:"count"`
}

// A Gap is what was shed for one reason, in one or several pieces.
type Gap struct {
	Reason     string        `json:"reason"`
	Gaps       uint64        `json:"gaps"`
	Statements uint64        `json:"statements"`
	Sessions   uint64        `json:"sessions"` // records of sessions' starts and ends
	Cut        uint64        `json:"cut"`      // transactions whose beginning was recorded and whose rest was shed
	From       time.Duration `json:"from_ns"`
	To         time.Duration `json:"to_ns"`
}

// Origin is what is known of a capture besides its records.
type Origin struct {
	File   string
	Header *capture.Header // nil if there was none to read
	Ledger *capture.Ledger // nil if the capture has no end
	Err    error           // why reading ended early; nil at a clean end
}

// Report is the state of the summary. More records may be added afterwards.
func (s *Summary) Report(from Origin) *Report {
	r := &Report{
		Source: from.source(), Warnings: s.warnings(from), Headline: s.headline(),
		Commands: s.commandRows(), Errors: s.errorRows(), Sysbench: s.sysbench.result(),
		Gaps: append([]Gap{}, s.lost.gaps...), byDigest: s.options.ByDigest,
		Statements: []Group{}, Transactions: []Transaction{}, // lists in JSON even when empty
	}
	r.Sysbench = r.Sysbench.over(r.Headline.Duration)
	r.setGroups(s)
	r.setTransactions(s)
	return r
}

func (o Origin) source() Source {
	src := Source{File: o.File}
	if h := o.Header; h != nil {
		src.Producer, src.Product, src.Start, src.Backend = h.Producer, h.Product, h.Start, h.Backend
		if h.Server != nil {
			src.Server = h.Server.Version
		}
	}
	return src
}

func (s *Summary) headline() Headline {
	h := Headline{
		Duration: s.last - s.first, Sessions: s.sessionCount,
		Statements: s.total.count, Transactions: s.ends.ended(), Errors: s.total.errors, Unanswered: s.total.unanswered,
		Service: s.clocks.Service.Times(), Response: s.clocks.Response.Times(), Wait: s.clocks.Wait.Times(), Lag: s.clocks.Lag.Times(),
		Ends: s.ends,
	}
	for _, sess := range s.sessions {
		if sess.txn.number != 0 {
			h.Ends.Open++
		}
	}
	if seconds := h.Duration.Seconds(); seconds > 0 {
		h.QPS = rounded(float64(h.Statements) / seconds)
		h.TPS = rounded(float64(h.Transactions) / seconds)
		h.Concurrency = rounded(s.clocks.Service.Sum().Seconds() / seconds)
	}
	return h
}

// rounded keeps four decimals, which is more than anybody measures.
func rounded(f float64) float64 { return math.Round(f*1e4) / 1e4 }

// setGroups fills in the rows of the statement table: the first ones by share of time, the rest as one.
func (r *Report) setGroups(s *Summary) {
	groups := slices.Clone(s.classes.groups)
	slices.SortFunc(groups, func(a, b *group) int {
		return cmp.Or(cmp.Compare(b.service.Sum(), a.service.Sum()), cmp.Compare(b.count, a.count), cmp.Compare(a.name, b.name))
	})
	all := s.clocks.Service.Sum()
	r.groups = map[string]Group{}
	for _, g := range groups {
		row := g.row(all)
		r.groups[g.name] = row
		r.order = append(r.order, g.name)
		r.Statements = append(r.Statements, row)
	}
	if top := s.options.Top; top > 0 && len(groups) > top {
		rest := group{name: others(len(groups) - top)}
		for _, g := range groups[top:] {
			rest.merge(g)
		}
		r.Statements = append(r.Statements[:top:top], rest.row(all))
	}
}

func others(n int) string { return fmt.Sprintf("(%d others)", n) }

func (g *group) row(all time.Duration) Group {
	row := Group{
		Name: g.name, Count: g.count, Share: share(g.service.Sum(), all), Service: g.service.Times(),
		Rows: g.rows, Affected: g.affected, Errors: g.errors, Unanswered: g.unanswered,
	}
	if g.digest != 0 {
		row.Digest = fmt.Sprintf("%016x", g.digest)
	}
	return row
}

func share(part, all time.Duration) float64 {
	if all == 0 {
		return 0
	}
	return rounded(float64(part) / float64(all))
}

func (r *Report) setTransactions(s *Summary) {
	shapes := make([]*shape, 0, len(s.shapes))
	var all stats.Histogram
	for _, p := range s.shapes {
		shapes = append(shapes, p)
		all.Merge(&p.duration)
	}
	slices.SortFunc(shapes, func(a, b *shape) int {
		return cmp.Or(cmp.Compare(b.duration.Sum(), a.duration.Sum()), cmp.Compare(b.count, a.count), cmp.Compare(a.name, b.name))
	})
	if top := s.options.Top; top > 0 && len(shapes) > top {
		shapes = append(shapes[:top:top], mergeShapes(shapes[top:]))
	}
	for _, p := range shapes {
		r.Transactions = append(r.Transactions, p.row(all.Sum()))
	}
	r.durations = all.Times()
}

func mergeShapes(shapes []*shape) *shape {
	rest := &shape{name: others(len(shapes))}
	for _, p := range shapes {
		rest.count += p.count
		rest.rows += p.rows
		rest.affected += p.affected
		rest.errors += p.errors
		rest.duration.Merge(&p.duration)
	}
	return rest
}

func (p *shape) row(all time.Duration) Transaction {
	return Transaction{
		Name: p.name, Statements: p.statements, Count: p.count, Share: share(p.duration.Sum(), all),
		Duration: p.duration.Times(), Rows: p.rows, Affected: p.affected, Errors: p.errors,
	}
}

func (s *Summary) commandRows() []Command {
	rows := make([]Command, 0, len(s.commands))
	for code, c := range s.commands {
		rows = append(rows, Command{wire.CommandName(code), c.count, c.errors})
	}
	slices.SortFunc(rows, func(a, b Command) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Name, b.Name))
	})
	return rows
}

func (s *Summary) errorRows() []Error {
	byErrno := map[uint16]*Error{}
	for key, count := range s.errors {
		e := byErrno[key.errno]
		if e == nil {
			e = &Error{Errno: key.errno}
			if state := s.states[key.errno]; state != [5]byte{} {
				e.SQLState = string(state[:])
			}
			byErrno[key.errno] = e
		}
		e.Count += count
		e.In = append(e.In, ErrorCount{s.classes.kinds[key.kind], count})
	}
	rows := make([]Error, 0, len(byErrno))
	for _, e := range byErrno {
		slices.SortFunc(e.In, func(a, b ErrorCount) int {
			return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Type, b.Type))
		})
		rows = append(rows, *e)
	}
	slices.SortFunc(rows, func(a, b Error) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Errno, b.Errno))
	})
	return rows
}
