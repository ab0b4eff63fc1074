package synth

import "fmt"

// A Workload makes events. It is only read while events are made, so many threads may share it.
type Workload interface {
	// Kinds are the statements that a connection prepares before its first event, in this order.
	Kinds() []Kind
	// Event appends one event's statements to e, drawing what it needs from r.
	Event(r *Random, e *Event)
}

// An OLTP is one of sysbench's scripts oltp_point_select, oltp_read_only and oltp_read_write: a number of groups of
// statements, between BEGIN and COMMIT. A group draws its table once.
type OLTP struct {
	Tables, TableSize, RangeSize                         int
	PointSelects                                         int
	RangeSelects                                         bool // all four of the next
	SimpleRanges, SumRanges, OrderRanges, DistinctRanges int
	Reads                                                bool // the script has range selects at all
	IndexUpdates, NonIndexUpdates, DeleteInserts         int
	Writes                                               bool // the script has writes at all
	Transactions                                         bool // BEGIN and COMMIT around the event
}

// Workloads are the names NewWorkload knows.
var Workloads = []string{"oltp_point_select", "oltp_read_only", "oltp_read_write"}

// NewWorkload is the script of this name with these settings.
func NewWorkload(name string, s Settings) (*OLTP, error) {
	w := &OLTP{
		Tables: s.Tables, TableSize: s.TableSize, RangeSize: s.RangeSize,
		PointSelects: s.PointSelects, RangeSelects: s.RangeSelects,
		SimpleRanges: s.SimpleRanges, SumRanges: s.SumRanges, OrderRanges: s.OrderRanges, DistinctRanges: s.DistinctRanges,
		IndexUpdates: s.IndexUpdates, NonIndexUpdates: s.NonIndexUpdates, DeleteInserts: s.DeleteInserts,
	}
	switch name {
	case "oltp_point_select":
		w.PointSelects = 1 // whatever is asked for, as in sysbench
		return w, nil
	case "oltp_read_only":
		w.Reads = true
	case "oltp_read_write":
		w.Reads, w.Writes = true, true
	default:
		return nil, fmt.Errorf("cannot find benchmark '%s': no such built-in test, file or module", name)
	}
	w.Transactions = !s.SkipTrx
	return w, nil
}

// Kinds are all the script may need, whatever their counts.
func (w *OLTP) Kinds() []Kind {
	var kinds []Kind
	if w.Transactions {
		kinds = append(kinds, Begin, Commit)
	}
	kinds = append(kinds, PointSelect)
	if w.Reads && w.RangeSelects {
		kinds = append(kinds, SimpleRange, SumRange, OrderRange, DistinctRange)
	}
	if w.Writes {
		kinds = append(kinds, IndexUpdate, NonIndexUpdate, Delete, Insert)
	}
	return kinds
}

// Event appends one event.
func (w *OLTP) Event(r *Random, e *Event) {
	if w.Transactions {
		e.Add(Begin, 0)
	}
	w.ids(r, e, PointSelect, w.PointSelects)
	if w.Reads && w.RangeSelects {
		w.ranges(r, e, SimpleRange, w.SimpleRanges)
		w.ranges(r, e, SumRange, w.SumRanges)
		w.ranges(r, e, OrderRange, w.OrderRanges)
		w.ranges(r, e, DistinctRange, w.DistinctRanges)
	}
	if w.Writes {
		w.ids(r, e, IndexUpdate, w.IndexUpdates)
		w.nonIndexUpdates(r, e)
		w.deleteInserts(r, e)
	}
	if w.Transactions {
		e.Add(Commit, 0)
	}
}

func (w *OLTP) table(r *Random) int { return r.Even(1, w.Tables) }

func (w *OLTP) id(r *Random) int { return r.Draw(1, w.TableSize) }

// ids appends a group of statements that take one id each.
func (w *OLTP) ids(r *Random, e *Event, kind Kind, n int) {
	table := w.table(r)
	for range n {
		e.Add(kind, table, Int(w.id(r)))
	}
}

// ranges appends a group of range selects. A range may run past the last id.
func (w *OLTP) ranges(r *Random, e *Event, kind Kind, n int) {
	table := w.table(r)
	for range n {
		first := w.id(r)
		e.Add(kind, table, Int(first), Int(first+w.RangeSize-1))
	}
}

func (w *OLTP) nonIndexUpdates(r *Random, e *Event) {
	table := w.table(r)
	for range w.NonIndexUpdates {
		c := e.Digits(r, cGroups)
		e.Add(NonIndexUpdate, table, c, Int(w.id(r)))
	}
}

// deleteInserts appends pairs that take a row out and put another in under the same id.
func (w *OLTP) deleteInserts(r *Random, e *Event) {
	table := w.table(r)
	for range w.DeleteInserts {
		id, k := Int(w.id(r)), Int(w.id(r))
		c, pad := e.Digits(r, cGroups), e.Digits(r, padGroups)
		e.Add(Delete, table, id)
		e.Add(Insert, table, id, k, c, pad)
	}
}

const (
	cGroups   = 10
	padGroups = 5
)
