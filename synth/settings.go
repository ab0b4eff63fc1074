package synth

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"redrive/capture"
	"redrive/internal/client"
)

// Settings are sysbench's options, by its names.
type Settings struct {
	Tables, TableSize, RangeSize                                       int
	PointSelects, SimpleRanges, SumRanges, OrderRanges, DistinctRanges int
	RangeSelects                                                       bool
	IndexUpdates, NonIndexUpdates, DeleteInserts                       int
	SkipTrx                                                            bool

	Threads        int
	Events         uint64        // 0: no limit
	Time           time.Duration // 0: no limit
	Rate           int           // events per second over all threads; 0: closed loop
	ReportInterval time.Duration // 0: no interim lines
	Percentile     int           // of the report; 0: none
	Text           bool          // text protocol rather than prepared statements (db-ps-mode=disable)
	Seed           uint64        // 0: the clock's
	Distribution   Distribution
	IgnoreErrors   ErrorSet
}

// Defaults are sysbench 1.0's.
func Defaults() Settings {
	return Settings{
		Tables: 1, TableSize: 10000, RangeSize: 100,
		PointSelects: 10, SimpleRanges: 1, SumRanges: 1, OrderRanges: 1, DistinctRanges: 1, RangeSelects: true,
		IndexUpdates: 1, NonIndexUpdates: 1, DeleteInserts: 1,
		Threads: 1, Time: 10 * time.Second, Percentile: 95, IgnoreErrors: ErrorSet{Numbers: []uint16{1213, 1020, 1205}},
	}
}

// An ErrorSet is which of the server's errors make an event begin again instead of ending the run.
type ErrorSet struct {
	All     bool
	Numbers []uint16
}

// Has reports whether the error is in the set.
func (e ErrorSet) Has(errno uint16) bool { return e.All || slices.Contains(e.Numbers, errno) }

// A Sink takes the statements of a run: a capture.Recorder.
type Sink interface {
	capture.Sink
	Horizon(time.Duration)
}

// A Runner runs one workload against one server, or several.
type Runner struct {
	Settings
	Name    string          // the script's
	Version string          // of this program, for the banner
	Targets []client.Config // dealt to connections in turn
	Out     io.Writer       // gets what sysbench prints to its standard output
	Clock   capture.Clock   // of all times
	Sink    Sink            // nil: nothing is recorded
	Grace   time.Duration   // how long after its end a run waits for events that have begun; 0 means 5s or 5 % of Time
}

const (
	leastGrace  = 5 * time.Second
	initTimeout = 30 * time.Second // all threads must have connected and prepared by then
)

func (r *Runner) grace() time.Duration {
	if r.Grace > 0 {
		return r.Grace
	}
	return max(leastGrace, r.Time/20)
}

// A Fatal is the end of a run that failed: sysbench's lines about it, without their prefix, and its exit status.
type Fatal struct {
	Lines  []string
	Status int
}

func (f *Fatal) Error() string { return strings.Join(f.Lines, "; ") }

func fatalf(status int, lines ...string) *Fatal { return &Fatal{lines, status} }

// functionFailed is sysbench's line about the function in which an error came up.
func (r *Runner) functionFailed(function, what string) string {
	return fmt.Sprintf("`%s' function failed: %s: %s", function, r.Name, what)
}
