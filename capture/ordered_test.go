package capture_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand"
	"slices"
	"testing"
	"time"

	"redrive/capture"
	"redrive/internal/wire"
)

// schedule is a random load of some sessions: records in the order a proxy stores them, with the horizon after each.
type schedule struct {
	records  []*capture.Record
	horizons []time.Duration
}

// newSchedule makes n commands of sessions that run at once; some are open for longer than a second.
func newSchedule(rng *rand.Rand, sessions, n int) schedule {
	var s schedule
	starts := map[*capture.Record]time.Duration{} // from when on the record holds back the horizon
	free := make([]time.Duration, sessions)
	numbers := make([]uint64, sessions)
	for range n {
		i := rng.Intn(sessions)
		start := free[i] + time.Duration(rng.Intn(50))*time.Millisecond
		took := time.Duration(rng.Intn(100)) * time.Millisecond
		if rng.Intn(20) == 0 {
			took += time.Duration(rng.Intn(4)) * time.Second
		}
		free[i] = start + took
		numbers[i]++
		stmt := capture.Statement{Session: uint64(i + 1), Number: numbers[i], Command: wire.ComQuery, Received: start + 1, Done: start + took + 1}
		end := &capture.Record{Kind: capture.KindStatement, Statement: stmt}
		starts[end] = start
		if took > time.Second {
			begin := &capture.Record{Kind: capture.KindBegin, Statement: stmt}
			begin.Statement.Done = 0
			starts[begin], starts[end] = start, stmt.Done
			s.records = append(s.records, begin)
		}
		s.records = append(s.records, end)
	}
	stored := func(r *capture.Record) time.Duration {
		if r.Kind == capture.KindBegin {
			return r.Statement.Received + time.Second
		}
		return r.Statement.Done
	}
	slices.SortStableFunc(s.records, func(a, b *capture.Record) int { return int(stored(a) - stored(b)) })
	s.horizons = make([]time.Duration, len(s.records))
	horizon := time.Duration(1 << 62)
	for i := len(s.records) - 1; i >= 0; i-- {
		s.horizons[i] = horizon
		horizon = min(horizon, starts[s.records[i]])
	}
	return s
}

// file writes the schedule. Every promise is lowered by up to coarse; a negative one leaves promises out.
func (s schedule) file(t *testing.T, rng *rand.Rand, perBlock int, coarse time.Duration) []byte {
	t.Helper()
	var buf bytes.Buffer
	w := capture.NewWriter(&buf, capture.Header{})
	for i, rec := range s.records {
		put(w, rec)
		if coarse >= 0 {
			w.Horizon(s.horizons[i] - time.Duration(rng.Int63n(int64(coarse)+1)))
		}
		if (i+1)%perBlock == 0 {
			w.Flush()
		}
	}
	if err := w.Close(capture.Ledger{}); err != nil {
		t.Fatal(err)
	}
	return buf.Bytes()
}

// sorted is start order as FORMAT.md defines it: a stable sort of the file's order by place.
func sorted(records []*capture.Record) []*capture.Record {
	places := map[*capture.Record]time.Duration{}
	last := map[uint64]time.Duration{}
	for _, rec := range records {
		s := &rec.Statement
		place := s.Received
		if s.Flags.Has(capture.Begun) {
			place = s.Done
		}
		last[s.Session] = max(last[s.Session], place)
		places[rec] = last[s.Session]
	}
	out := slices.Clone(records)
	slices.SortStableFunc(out, func(a, b *capture.Record) int { return int(places[a] - places[b]) })
	return out
}

func ordered(data []byte) ([]*capture.Record, *capture.Ordered) {
	o := capture.InStartOrder(capture.NewReader(bytes.NewReader(data), "test.rdt"))
	var out []*capture.Record
	for o.Next() {
		out = append(out, o.Record().Clone())
	}
	return out, o
}

func name(rec *capture.Record) string {
	return fmt.Sprintf("%s %d.%d", rec.Kind, rec.Statement.Session, rec.Statement.Number)
}

func sameOrder(t *testing.T, what string, got, want []*capture.Record) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%s: %d records, want %d", what, len(got), len(want))
	}
	for i := range want {
		if name(got[i]) != name(want[i]) {
			t.Fatalf("%s: record %d is %s, want %s", what, i, name(got[i]), name(want[i]))
		}
	}
}

func TestStartOrderIsASort(t *testing.T) {
	for seed := range int64(20) {
		rng := rand.New(rand.NewSource(seed))
		s := newSchedule(rng, 1+rng.Intn(12), 300)
		for _, coarse := range []time.Duration{0, time.Millisecond, 3 * time.Second, -1} {
			data := s.file(t, rng, 1+rng.Intn(40), coarse)
			inFile, r := read(data)
			if r.Err() != nil {
				t.Fatal(r.Err())
			}
			got, o := ordered(data)
			if o.Err() != nil {
				t.Fatalf("seed %d: Err() = %v", seed, o.Err())
			}
			sameOrder(t, fmt.Sprintf("seed %d, promises coarse by %v", seed, coarse), got, sorted(inFile))

			cut := data[:rng.Intn(len(data))]
			inFile, _ = read(cut)
			got, o = ordered(cut)
			sameOrder(t, fmt.Sprintf("seed %d, cut to %d bytes", seed, len(cut)), got, sorted(inFile))
			if len(cut) > 8 && !errors.Is(o.Err(), io.ErrUnexpectedEOF) {
				t.Fatalf("seed %d, cut to %d bytes: Err() = %v, want an unexpected EOF", seed, len(cut), o.Err())
			}
		}
	}
}

// TestStartOrderKeepsASessionsOrder: not even a pipelined command overtakes the one before it, which has a begin.
func TestStartOrderKeepsASessionsOrder(t *testing.T) {
	stmt := func(session, number uint64, received, done time.Duration) capture.Statement {
		return capture.Statement{Session: session, Number: number, Received: received, Done: done}
	}
	slow := stmt(1, 1, 10, 3000)
	records := []*capture.Record{
		{Kind: capture.KindBegin, Statement: slow},
		{Kind: capture.KindStatement, Statement: stmt(2, 1, 2000, 2500)},
		{Kind: capture.KindStatement, Statement: slow},
		{Kind: capture.KindStatement, Statement: stmt(1, 2, 20, 3100)}, // sent behind slow, without waiting
		{Kind: capture.KindStatement, Statement: stmt(3, 1, 3000, 3200)},
	}
	got, o := ordered(write(t, records, 2))
	if o.Err() != nil {
		t.Fatal(o.Err())
	}
	sameOrder(t, "pipelined", got, records)
}

// TestStartOrderHoldsABlock: where promises are fine, what is read ahead does not grow with the file.
func TestStartOrderHoldsABlock(t *testing.T) {
	statements := newOLTP(8, false).statements(20_000)
	var buf bytes.Buffer
	w := capture.NewWriter(&buf, capture.Header{})
	for i, s := range statements {
		w.Statement(s)
		w.Horizon(s.Received - time.Second/10)
		if i%500 == 0 {
			w.Flush()
		}
	}
	if err := w.Close(capture.Ledger{}); err != nil {
		t.Fatal(err)
	}
	r := capture.NewReader(&buf, "test.rdt")
	o := capture.InStartOrder(r)
	read, given, most := 0, 0, 0
	for o.Next() {
		given++
		read = o.Held() + given
		most = max(most, o.Held())
	}
	// At about 210 µs a statement and 8 threads a tenth of a second is 3,900 statements.
	if o.Err() != nil || read != len(statements) || most > 6000 {
		t.Errorf("%d of %d records given, at most %d held, %v; want all, at most 6000 held, nil", given, len(statements), most, o.Err())
	}
}
