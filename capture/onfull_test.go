package capture_test

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"redrive/capture"
	"redrive/internal/wire"
)

// A txn is a transaction of a session, as in the file.
type txn struct{ session, number uint64 }

// run records transactions of a number of statements in turn, of several sessions at once, and returns how many
// statements those were.
func run(r *capture.Recorder, from, to uint64, sessions, statements int, size int) (forwarded uint64) {
	for number := from; number < to; number++ {
		for place := range statements {
			for session := range sessions {
				n := (number-1)*uint64(statements) + uint64(place) + 1
				s := statement(uint64(session)+1, n)
				s.Txn, s.Place = number, uint32(place+1)
				s.Params.Values = make([]byte, size)
				if place == statements-1 {
					s.TxnEnd = capture.TxnCommit
				}
				r.Lane(session).Statement(s)
				forwarded++
			}
		}
	}
	return forwarded
}

// partial counts the transactions of a file that are there whole and those that are not.
func partial(records []*capture.Record, statements int) (whole, part uint64) {
	seen := map[txn]int{}
	for _, rec := range records {
		if rec.Kind == capture.KindStatement {
			seen[txn{rec.Statement.Session, rec.Statement.Txn}]++
		}
	}
	for _, n := range seen {
		if n == statements {
			whole++
		} else {
			part++
		}
	}
	return whole, part
}

// TestShedTransactions: a transaction is in the file whole or not at all, and what could not be helped is counted.
func TestShedTransactions(t *testing.T) {
	for name, test := range map[string]struct {
		sessions, statements, size int
		cut                        bool // more is under way than any reserved room would hold
	}{
		"short":          {sessions: 6, statements: 10, size: 100},
		"long":           {sessions: 4, statements: 40, size: 50},
		"far too long":   {sessions: 2, statements: 5000, size: 500, cut: true},
		"far too many":   {sessions: 300, statements: 20, size: 300, cut: true},
		"one of a thing": {sessions: 5, statements: 1, size: 100},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := disk{gate: make(chan struct{})}
				r := capture.NewRecorder(&d, capture.Header{}, capture.RecorderOptions{
					OnFull: capture.ShedTransactions, Memory: capture.NewMemory(400_000), Lanes: 2,
				})
				per := uint64(20_000/test.sessions/test.statements + 2)
				forwarded := run(r, 1, per, test.sessions, test.statements, test.size)
				close(d.gate)
				synctest.Wait()
				time.Sleep(2 * time.Second)
				forwarded += run(r, per, per+2, test.sessions, test.statements, 10)
				l, err := r.Close(0)
				if err != nil {
					t.Fatal(err)
				}
				balanced(t, l, forwarded)
				records, in := read(d.bytes())
				whole, part := partial(records, test.statements)
				cut := uint64(0)
				for _, rec := range records {
					if rec.Kind == capture.KindGap {
						cut += rec.Gap.Cut
					}
				}
				if in.Err() != nil || l.Shed == 0 || whole == 0 && !test.cut {
					t.Errorf("%v, %+v, %d whole transactions; want some stored and some shed", in.Err(), l, whole)
				}
				if cut != part || test.cut != (cut > 0) {
					t.Errorf("%d transactions are there in part, the gaps tell of %d; want the same, any: %v", part, cut, test.cut)
				}
			})
		})
	}
}

// TestReservedRoom: statements that others hang on are stored when others are shed.
func TestReservedRoom(t *testing.T) {
	d := disk{gate: make(chan struct{})}
	r := capture.NewRecorder(&d, capture.Header{}, capture.RecorderOptions{Memory: capture.NewMemory(500_000)})
	number := uint64(0)
	next := func() *capture.Statement {
		number++
		s := statement(1, number)
		s.Params.Values = make([]byte, 200)
		return s
	}
	for r.Ledger().Shed < 10 { // the first may only have made the block be written
		r.Statement(next())
	}
	before := r.Ledger().Shed + 1
	plain := next()
	plain.Params.Values = make([]byte, 2000)
	r.Statement(plain)
	if l := r.Ledger(); l.Shed != before {
		t.Fatalf("%d shed, want %d: the plain statement, too", l.Shed, before)
	}
	for _, command := range []byte{
		wire.ComStmtPrepare, wire.ComStmtClose, wire.ComStmtReset, wire.ComChangeUser, wire.ComInitDB, wire.ComResetConnection,
	} {
		s := next()
		s.Command = command
		r.Statement(s)
	}
	for _, end := range []capture.TxnEnd{capture.TxnCommit, capture.TxnRollback} {
		s := next()
		s.Txn, s.Place, s.TxnEnd = 1, 2, end
		r.Statement(s)
	}
	if l := r.Ledger(); l.Shed != before {
		t.Errorf("%d of 8 statements that others hang on are shed, want none", l.Shed-before)
	}
	close(d.gate)
	if _, err := r.Close(0); err != nil {
		t.Fatal(err)
	}
	verified(t, d.bytes())
}

// TestStopRecording: the recording ends where it is full, its file ends as it should, and what comes later is counted.
func TestStopRecording(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := disk{gate: make(chan struct{})}
		var told []error
		r := capture.NewRecorder(&d, capture.Header{}, capture.RecorderOptions{
			OnFull: capture.StopRecording, Memory: capture.NewMemory(100_000), Lanes: 2, Failed: func(err error) { told = append(told, err) },
		})
		forwarded := run(r, 1, 500, 4, 10, 100)
		synctest.Wait()
		stored := r.Ledger().Stored
		close(d.gate)
		time.Sleep(time.Minute)
		forwarded += run(r, 500, 510, 4, 10, 1)
		if now := r.Ledger().Stored; now != stored || stored == 0 {
			t.Errorf("%d statements stored, %d when it was full; want no more", now, stored)
		}
		l, err := r.Close(1)
		if !errors.Is(err, capture.ErrFull) || len(told) != 1 || !errors.Is(told[0], capture.ErrFull) {
			t.Errorf("Close: %v, told %v; want %v, and to have been told once", err, told, capture.ErrFull)
		}
		balanced(t, l, forwarded+1)
		v := verified(t, d.bytes())
		records, _ := read(d.bytes())
		if c := count(records); !v.Clean || c.statements != stored || c.shed != l.Shed || !strings.Contains(c.reason, "end there") {
			t.Errorf("clean %v, %+v, ledger %+v; want a clean end and a gap that says why", v.Clean, c, l)
		}
		for _, rec := range records {
			if rec.Kind == capture.KindStatement && rec.Statement.Txn >= 500 {
				t.Fatalf("statement %d.%d came later and is stored", rec.Statement.Session, rec.Statement.Number)
			}
		}
	})
}

// TestRelease frees those who wait, for good.
func TestRelease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := disk{gate: make(chan struct{})}
		r := capture.NewRecorder(&d, capture.Header{}, capture.RecorderOptions{OnFull: capture.Block, Memory: capture.NewMemory(100_000), Lanes: 2})
		done := false
		go func() {
			run(r, 1, 200, 4, 10, 100)
			done = true
		}()
		synctest.Wait()
		if done {
			t.Error("nothing waited for a disk that hangs")
		}
		r.Release()
		synctest.Wait()
		if !done {
			t.Error("still waiting after Release")
		}
		close(d.gate)
		l, err := r.Close(0)
		if err != nil || l.Shed == 0 || l.Stored == 0 {
			t.Errorf("%+v, %v; want some stored, and the rest shed", l, err)
		}
		balanced(t, l, 199*40)
		records, _ := read(d.bytes())
		if c := count(records); c.shed != l.Shed || c.statements != l.Stored {
			t.Errorf("file: %+v; ledger %+v: want the same", c, l)
		}
	})
}

// TestBlockOnASharedAccount: who waits for room that only others can give back would wait for ever.
func TestBlockOnASharedAccount(t *testing.T) {
	memory := capture.NewMemory(1 << 20)
	var d disk
	r := capture.NewRecorder(&d, capture.Header{}, capture.RecorderOptions{OnFull: capture.Block, Memory: memory})
	for memory.Take(100) {
	}
	for n := range uint64(100) {
		r.Statement(statement(1, n+1))
	}
	if l, err := r.Close(0); err != nil || l.Stored != 100 {
		t.Errorf("%+v, %v; want all 100 stored", l, err)
	}
}
