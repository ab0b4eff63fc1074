package capture_test

import (
	"fmt"
	"math/rand"
	"time"

	"redrive/capture"
	"redrive/internal/wire"
)

// oltp makes the statements that a proxy would record of sysbench's oltp_read_write with some threads: texts and
// times of that form, in the order they are done.
type oltp struct {
	rng      *rand.Rand
	prepared bool
	now      []time.Duration // by thread
	place    []int
	txn      []uint64
	number   []uint64
}

func newOLTP(threads int, prepared bool) *oltp {
	return &oltp{
		rng: rand.New(rand.NewSource(7)), prepared: prepared, now: make([]time.Duration, threads),
		place: make([]int, threads), txn: make([]uint64, threads), number: make([]uint64, threads),
	}
}

// statements returns the next n statements, in done order.
func (o *oltp) statements(n int) []*capture.Statement {
	out := make([]*capture.Statement, n)
	for i := range out {
		thread := 0
		for t := range o.now {
			if o.now[t] < o.now[thread] {
				thread = t
			}
		}
		out[i] = o.next(thread)
	}
	return out
}

// after is a random duration with the given typical size and a tail.
func (o *oltp) after(typical time.Duration) time.Duration {
	return time.Duration(float64(typical) * (0.8 + 0.3*o.rng.ExpFloat64()))
}

func (o *oltp) next(thread int) *capture.Statement {
	place := o.place[thread]
	o.place[thread] = (place + 1) % 20
	if place == 0 {
		o.txn[thread]++
	}
	o.number[thread]++
	s := &capture.Statement{
		Session: uint64(thread + 1), Number: o.number[thread], Txn: o.txn[thread], Place: uint32(place + 1),
		Command: wire.ComQuery, Schema: []byte("sbtest"),
		Outcome: capture.Outcome{Results: 1, HasStatus: true, Status: 3},
	}
	o.fill(s, place)
	s.RequestBytes = uint64(5 + len(s.Text) + len(s.Params.Values))
	s.Received = o.now[thread] + o.after(30*time.Microsecond)
	s.Complete = s.Received
	s.Sent = s.Complete + o.after(6*time.Microsecond)
	s.First = s.Sent + o.after(150*time.Microsecond)
	s.Done = s.First
	o.now[thread] = s.Done
	return s
}

// digits is random digits in groups of eleven, as in sysbench's c and pad.
func (o *oltp) digits(groups int) string {
	s := ""
	for i := range groups {
		if i > 0 {
			s += "-"
		}
		s += fmt.Sprintf("%011d", o.rng.Int63n(100_000_000_000))
	}
	return s
}

func (o *oltp) fill(s *capture.Statement, place int) {
	id := 1 + o.rng.Intn(100_000)
	text := ""
	var args []any
	set := func(format string, a ...any) { text, args = format, a }
	table := 1 + o.rng.Intn(4)
	rows, bytes := uint64(0), uint64(11)
	switch {
	case place == 0:
		set("BEGIN")
	case place <= 10:
		set("SELECT c FROM sbtest%d WHERE id=?", id)
		rows, bytes = 1, 189
	case place == 11:
		set("SELECT c FROM sbtest%d WHERE id BETWEEN ? AND ?", id, id+99)
		rows, bytes = 100, 12465
	case place == 12:
		set("SELECT SUM(k) FROM sbtest%d WHERE id BETWEEN ? AND ?", id, id+99)
		rows, bytes = 1, 84
	case place == 13:
		set("SELECT c FROM sbtest%d WHERE id BETWEEN ? AND ? ORDER BY c", id, id+99)
		rows, bytes = 100, 12465
	case place == 14:
		set("SELECT DISTINCT c FROM sbtest%d WHERE id BETWEEN ? AND ? ORDER BY c", id, id+99)
		rows, bytes = 100, 12465
	case place == 15:
		set("UPDATE sbtest%d SET k=k+1 WHERE id=?", id)
	case place == 16:
		set("UPDATE sbtest%d SET c=? WHERE id=?", o.digits(10), id)
	case place == 17:
		set("DELETE FROM sbtest%d WHERE id=?", id)
	case place == 18:
		set("INSERT INTO sbtest%d (id, k, c, pad) VALUES (?, ?, ?, ?)", id, 1+o.rng.Intn(100_000), o.digits(10), o.digits(5))
	default:
		set("COMMIT")
		s.TxnEnd = capture.TxnCommit
	}
	if len(args) > 0 {
		text = fmt.Sprintf(text, table)
	}
	s.Outcome.Rows, s.Outcome.ReplyBytes = rows, bytes
	s.Outcome.ResultSets = uint32(min(rows, 1))
	if place >= 15 && place <= 18 {
		s.Outcome.Affected = 1
	}
	o.bind(s, text, args)
}

// bind puts the arguments into the text, or beside it.
func (o *oltp) bind(s *capture.Statement, text string, args []any) {
	for _, arg := range args {
		literal := fmt.Sprint(arg)
		if _, ok := arg.(string); ok {
			literal = "'" + literal + "'"
		}
		if !o.prepared {
			text = replaceFirst(text, literal)
			continue
		}
		if v, ok := arg.(int); ok {
			s.Params.Types = append(s.Params.Types, 3, 0)
			s.Params.Values = append(s.Params.Values, byte(v), byte(v>>8), byte(v>>16), byte(v>>24))
		} else {
			s.Params.Types = append(s.Params.Types, 254, 0)
			s.Params.Values = wire.AppendLenencBytes(s.Params.Values, []byte(arg.(string)))
		}
		s.Params.Nulls = []byte{0}
	}
	s.Text = []byte(text)
	if o.prepared {
		s.Command, s.StatementID = wire.ComStmtExecute, uint32(len(text))
	}
}

func replaceFirst(text, literal string) string {
	for i := range text {
		if text[i] == '?' {
			return text[:i] + literal + text[i+1:]
		}
	}
	return text
}
