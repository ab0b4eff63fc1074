package capture_test

import (
	"bytes"
	"cmp"
	"errors"
	"io"
	"math/rand"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"redrive/capture"
)

// A volume is a disk with so much room, and a file on it of which the end can be taken back. What others occupy of it,
// tests decide.
type volume struct {
	mu   sync.Mutex
	data []byte
	at   int
	room int
	err  error // what comes of writing beyond; nil: errFull

	takes time.Duration // for every write
}

func (v *volume) Write(p []byte) (int, error) {
	time.Sleep(v.takes)
	v.mu.Lock()
	defer v.mu.Unlock()
	n := min(len(p), max(0, v.room-v.at))
	v.data = append(v.data[:v.at], p[:n]...)
	v.at += n
	if n < len(p) {
		if v.err != nil {
			return n, v.err
		}
		return n, errFull
	}
	return n, nil
}

func (v *volume) Truncate(size int64) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.data = v.data[:size]
	return nil
}

func (v *volume) Seek(offset int64, whence int) (int64, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if whence == io.SeekStart {
		v.at = int(offset)
	}
	return int64(v.at), nil
}

func (v *volume) resize(room int) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.room = room
}

func (v *volume) bytes() []byte {
	v.mu.Lock()
	defer v.mu.Unlock()
	return bytes.Clone(v.data)
}

// TestAFullDiskThatIsFreed costs the recording what came meanwhile, and no more: the file tells of the gap, is whole,
// and holds no begin without its end nor an end without its begin.
func TestAFullDiskThatIsFreed(t *testing.T) {
	for name, test := range map[string]struct {
		err    error
		onFull capture.OnFull
		room   int           // 0: 60,000
		memory int           // 0: enough
		takes  time.Duration // to write a block
		outage time.Duration
	}{
		"full":            {outage: 10 * time.Second},
		"for a moment":    {outage: time.Second},
		"input/output":    {outage: 10 * time.Second, err: errors.New("input/output error")},
		"by transactions": {outage: 10 * time.Second, onFull: capture.ShedTransactions},
		"blocking":        {outage: 10 * time.Second, onFull: capture.Block},
		"slow, then full": {outage: 10 * time.Second, room: 12_000, memory: 90_000, takes: 900 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				v := volume{room: cmp.Or(test.room, 60_000), err: test.err, takes: test.takes}
				clock := capture.NewClock()
				var told []error
				failed, resumed := make(chan struct{}, 100), 0
				memory := capture.NewMemory(cmp.Or(test.memory, 64<<20))
				r := capture.NewRecorder(&v, capture.Header{}, capture.RecorderOptions{
					Memory: memory, OnFull: test.onFull, Lanes: 3, Failed: func(err error) { told = append(told, err); failed <- struct{}{} }, Resumed: func() { resumed++ },
				})
				clients := newClients(r, clock, 12, 10, func(int) time.Duration { return 10 * time.Millisecond })
				var failedAt time.Duration
				freed := make(chan struct{})
				go func() {
					select {
					case <-failed:
					case <-time.After(time.Minute):
					}
					failedAt = clock.Now()
					time.Sleep(test.outage)
					v.resize(1 << 30)
					close(freed)
				}()
				forwarded := play(r, clients, clock.Now()+60*time.Second)
				<-freed
				l, err := r.Close(0)
				if err != nil || len(told) != 1 || resumed != 1 {
					t.Fatalf("Close: %v; failed %v, resumed %d times; want one failure that was overcome", err, told, resumed)
				}
				balanced(t, l, forwarded)
				verified(t, v.bytes())
				records, _ := read(v.bytes())
				gap := capture.Gap{Reason: "none"}
				after, open := 0, 0
				for _, rec := range records {
					switch rec.Kind {
					case capture.KindGap:
						if gap.Statements < rec.Gap.Statements {
							gap = rec.Gap
						}
					case capture.KindStatement:
						if rec.Statement.Done > failedAt+test.outage+2*time.Second {
							after++
						}
					case capture.KindBegin:
						open++
					}
				}
				if c := count(records); l.Shed == 0 || c.shed != l.Shed || c.statements != l.Stored || after == 0 || open == 0 {
					t.Errorf("%+v, ledger %+v, %d after the outage, %d begins; want the same, and some of each", c, l, after, open)
				}
				if why := told[0].Error(); !strings.HasSuffix(why, strings.TrimPrefix(gap.Reason, "the file could not be written: ")) {
					t.Errorf("gap %+v, want it to say %v", gap, why)
				}
				if gap.From > failedAt || gap.To < failedAt+test.outage-time.Second || gap.To > failedAt+test.outage+3*time.Second {
					t.Errorf("gap from %v to %v, want about %v from %v", gap.From, gap.To, test.outage, failedAt)
				}
			})
		})
	}
}

// TestASmallDiskThatIsFreed: a recording is taken up again once there is room for what could not be written, however
// little that is, and not before.
func TestASmallDiskThatIsFreed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := volume{room: 4000}
		var resumed atomic.Int32
		r := capture.NewRecorder(&v, capture.Header{}, capture.RecorderOptions{Resumed: func() { resumed.Add(1) }})
		rng := rand.New(rand.NewSource(1))
		number := uint64(0)
		put := func(wait time.Duration) {
			number++
			s := statement(1, number)
			s.Params.Values = make([]byte, 3000)
			rng.Read(s.Params.Values)
			r.Statement(s)
			time.Sleep(wait)
		}
		put(time.Second)
		put(10 * time.Second) // is lost
		if resumed.Load() != 0 {
			t.Error("resumed without room")
		}
		v.resize(len(v.bytes()) + 5000)
		time.Sleep(3 * time.Second)
		if resumed.Load() != 1 {
			t.Errorf("resumed %d times, want once with room for a block", resumed.Load())
		}
		put(time.Second)
		l, err := r.Close(0)
		if err != nil || l.Stored != 2 || l.Shed != 1 {
			t.Errorf("%+v, %v; want the first and the last stored", l, err)
		}
		verified(t, v.bytes())
	})
}

// TestTransactionsAfterAnOutage: of a transaction whose beginning was lost the rest is not stored either.
func TestTransactionsAfterAnOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := volume{room: 1 << 20}
		r := capture.NewRecorder(&v, capture.Header{}, capture.RecorderOptions{OnFull: capture.ShedTransactions})
		v.resize(len(v.bytes()) + 10)
		put := func(number, txn uint64, place uint32, end capture.TxnEnd) {
			s := statement(1, number)
			s.Txn, s.Place, s.TxnEnd = txn, place, end
			r.Statement(s)
		}
		put(1, 1, 1, capture.TxnOpen)
		time.Sleep(3 * time.Second) // it is lost
		v.resize(1 << 30)
		time.Sleep(3 * time.Second)
		put(2, 1, 2, capture.TxnOpen)
		put(3, 1, 3, capture.TxnCommit)
		put(4, 2, 1, capture.TxnOpen)
		put(5, 2, 2, capture.TxnCommit)
		put(6, 3, 1, capture.TxnAuto)
		l, err := r.Close(0)
		if err != nil || l.Stored != 3 || l.Shed != 3 {
			t.Errorf("%+v, %v; want the second and third transaction, three statements of the first shed", l, err)
		}
		verified(t, v.bytes())
		records, _ := read(v.bytes())
		for _, rec := range records {
			if rec.Kind == capture.KindStatement && rec.Statement.Txn == 1 {
				t.Errorf("statement %d of the first transaction is stored", rec.Statement.Place)
			}
		}
	})
}

// TestAFullDiskAtTheEnd: the file ends with its last whole block or, where there is room for it, as it should.
func TestAFullDiskAtTheEnd(t *testing.T) {
	clean := 0
	for room := 2000; room < 6000; room += 41 {
		v := volume{room: room}
		r := capture.NewRecorder(&v, capture.Header{}, capture.RecorderOptions{FlushEvery: time.Hour})
		for i := range uint64(3000) {
			s := statement(1, i+1)
			s.Params.Values = []byte{byte(i * 7), byte(i >> 3), byte(i >> 5)}
			r.Statement(s)
		}
		l, err := r.Close(0)
		balanced(t, l, 3000)
		data := v.bytes()
		records, in := read(data)
		if c := count(records); c.statements != l.Stored {
			t.Fatalf("room for %d: %d statements in the file, ledger %+v", room, c.statements, l)
		}
		switch {
		case err == nil:
			clean++
			verified(t, data)
		case in.Offset() != int64(len(data)) || !errors.Is(in.Err(), io.ErrUnexpectedEOF):
			t.Fatalf("room for %d: %v at %d of %d bytes; want whole blocks", room, in.Err(), in.Offset(), len(data))
		}
	}
	if clean == 0 {
		t.Error("not one file has its end")
	}
}

// TestOutageOfAnOrdinaryFile: what os.File does is what recordings are taken up by, behind whatever the file held before.
func TestOutageOfAnOrdinaryFile(t *testing.T) {
	name := filepath.Join(t.TempDir(), "joined.rdt")
	file, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	before := []byte("what was there before")
	if _, err := file.Write(before); err != nil {
		t.Fatal(err)
	}
	flaky := &flakyFile{File: file, fails: 1}
	resumed := make(chan struct{})
	r := capture.NewRecorder(flaky, capture.Header{}, capture.RecorderOptions{
		FlushEvery: 10 * time.Millisecond, Resumed: func() { close(resumed) },
	})
	r.Statement(statement(1, 1)) // is lost
	<-resumed
	r.Statement(statement(1, 2))
	l, err := r.Close(0)
	if err != nil || l.Stored != 1 || l.Shed != 1 {
		t.Fatalf("%+v, %v; want one stored, one shed", l, err)
	}
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.HasPrefix(data, before) {
		t.Fatalf("the file begins with %q, want what was there before", data[:len(before)])
	}
	verified(t, data[len(before):])
}

// A flakyFile fails to write blocks some times, each in the middle.
type flakyFile struct {
	*os.File
	writes, fails int
}

func (f *flakyFile) Write(p []byte) (int, error) {
	f.writes++
	if f.writes > 1 && f.fails > 0 { // the header goes through
		f.fails--
		n, _ := f.File.Write(p[:len(p)/2])
		return n, errFull
	}
	return f.File.Write(p)
}
