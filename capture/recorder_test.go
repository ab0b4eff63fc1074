package capture_test

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"redrive/capture"
)

var (
	_ capture.Sink = (*capture.Writer)(nil)
	_ capture.Sink = (*capture.Recorder)(nil)
)

// A disk is a writer whose speed and failure tests decide. It may be read while it is written.
type disk struct {
	mu      sync.Mutex
	data    bytes.Buffer
	gate    chan struct{} // nil, or a Write takes one, and all once it is closed
	failAt  int           // bytes after which writing fails; 0 means never
	stopped chan struct{} // nil, or told when a Write begins to wait
}

var errFull = errors.New("no space left on device")

func (d *disk) Write(p []byte) (int, error) {
	if d.gate != nil && d.size() > 0 { // the header goes through
		if d.stopped != nil {
			d.stopped <- struct{}{}
		}
		<-d.gate
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.failAt > 0 && d.data.Len()+len(p) > d.failAt {
		n, _ := d.data.Write(p[:max(0, d.failAt-d.data.Len())])
		return n, errFull
	}
	return d.data.Write(p)
}

func (d *disk) size() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.data.Len()
}

func (d *disk) bytes() []byte {
	d.mu.Lock()
	defer d.mu.Unlock()
	return bytes.Clone(d.data.Bytes())
}

func statement(session, number uint64) *capture.Statement {
	at := time.Duration(number) * time.Millisecond
	return &capture.Statement{Session: session, Number: number, Command: 3, Text: []byte("SELECT 'some text that is not all that short'"), Received: at, Done: at + 500}
}

// fill records n statements of each session at once, with the session's start and end.
func fill(r *capture.Recorder, sessions, n int) {
	var wg sync.WaitGroup
	for id := range uint64(sessions) {
		wg.Go(func() {
			r.SessionStart(&capture.SessionStart{Session: id + 1, At: 1, User: "u"})
			for i := range uint64(n) {
				r.Statement(statement(id+1, i+1))
			}
			r.SessionEnd(&capture.SessionEnd{Session: id + 1, At: time.Duration(n) * time.Second, Reason: capture.EndQuit, Commands: uint64(n)})
		})
	}
	wg.Wait()
}

// tally counts what is in a file.
type tally struct {
	statements, starts, ends, gaps, shed, shedSessions uint64
	reason                                             string
}

func count(records []*capture.Record) (c tally) {
	for _, rec := range records {
		switch rec.Kind {
		case capture.KindStatement:
			c.statements++
		case capture.KindSessionStart:
			c.starts++
		case capture.KindSessionEnd:
			c.ends++
		case capture.KindGap:
			c.gaps++
			c.shed += rec.Gap.Statements
			c.shedSessions += rec.Gap.Sessions
			c.reason = rec.Gap.Reason
		}
	}
	return c
}

// balanced checks what is always true of a ledger.
func balanced(t *testing.T, l capture.Ledger, forwarded uint64) {
	t.Helper()
	if l.Forwarded != forwarded || l.Stored+l.Shed+l.Unfinished != l.Forwarded {
		t.Errorf("ledger %+v, want %d forwarded = stored + shed + unfinished", l, forwarded)
	}
}

func TestRecorderStoresAll(t *testing.T) {
	var d disk
	r := capture.NewRecorder(&d, capture.Header{}, capture.RecorderOptions{})
	fill(r, 8, 2000)
	l, err := r.Close(3)
	if err != nil {
		t.Fatalf("Close: %v", err)
	}
	balanced(t, l, 8*2000+3)
	v := capture.Verify(capture.NewReader(bytes.NewReader(d.bytes()), "test.rdt"))
	if v.Err != nil || !v.Clean || l.Shed != 0 || v.Records[capture.KindStatement] != 16000 || v.Records[capture.KindSessionStart] != 8 || v.Records[capture.KindSessionEnd] != 8 {
		t.Errorf("Verify: %+v, ledger %+v; want all 16000 statements of 8 sessions", v, l)
	}
}

// TestRecorderOnASlowDisk: calls never wait; what is shed is told in the file, to the last statement.
func TestRecorderOnASlowDisk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := disk{gate: make(chan struct{})}
		r := capture.NewRecorder(&d, capture.Header{}, capture.RecorderOptions{Memory: capture.NewMemory(100_000)})
		start := time.Now()
		fill(r, 4, 20_000)
		if waited := time.Since(start); waited != 0 {
			t.Errorf("recording waited %v for the disk, want 0", waited)
		}
		before := r.Ledger()
		if before.Shed == 0 || before.Stored == 0 {
			t.Fatalf("ledger %+v, want some stored and some shed", before)
		}
		time.Sleep(time.Minute) // the first block hangs all the while
		close(d.gate)           // now the disk is quick
		time.Sleep(time.Second)
		fill(r, 4, 10)
		l, err := r.Close(0)
		if err != nil {
			t.Fatalf("Close: %v", err)
		}
		balanced(t, l, 4*20_010)
		records, in := read(d.bytes())
		c := count(records)
		if in.Err() != nil || c.statements != l.Stored || c.shed != l.Shed || c.gaps == 0 || c.starts+c.ends != 16 || c.shedSessions != 0 {
			t.Errorf("file: %+v, %v; ledger %+v: want the same, and all 16 session records", c, in.Err(), l)
		}
		if !strings.Contains(c.reason, "full") {
			t.Errorf("reason %q, want it to say that the recording was full", c.reason)
		}
	})
}

// TestRecorderOnAFullDisk: everything is shed and counted from there on, and Close says why.
func TestRecorderOnAFullDisk(t *testing.T) {
	d := disk{failAt: 3000}
	r := capture.NewRecorder(&d, capture.Header{}, capture.RecorderOptions{FlushEvery: time.Millisecond})
	sent := uint64(0)
	for r.Ledger().Shed == 0 { // until the failure has come
		sent++
		r.Statement(statement(1, sent))
		r.Begin(statement(2, sent))
		time.Sleep(10 * time.Microsecond)
	}
	fill(r, 4, 100)
	l, err := r.Close(1)
	if !errors.Is(err, errFull) || !strings.Contains(err.Error(), "offset ") {
		t.Errorf("Close: %v, want %v with an offset", err, errFull)
	}
	balanced(t, l, sent+401)
	records, in := read(d.bytes())
	if c := count(records); c.statements != l.Stored || !errors.Is(in.Err(), io.ErrUnexpectedEOF) {
		t.Errorf("file: %d statements, %v; want the %d stored, then an unexpected EOF", c.statements, in.Err(), l.Stored)
	}
}

func TestRecorderThatCannotEvenBegin(t *testing.T) {
	r := capture.NewRecorder(&disk{failAt: 5}, capture.Header{}, capture.RecorderOptions{OnFull: capture.Block, Memory: capture.NewMemory(1000)})
	fill(r, 2, 100)
	l, err := r.Close(0)
	balanced(t, l, 200)
	if !errors.Is(err, errFull) || l.Stored != 0 {
		t.Errorf("Close: %+v, %v; want nothing stored, %v", l, err, errFull)
	}
}

// TestRecorderThatBlocks waits where others shed, and stores all.
func TestRecorderThatBlocks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := disk{gate: make(chan struct{})}
		r := capture.NewRecorder(&d, capture.Header{}, capture.RecorderOptions{OnFull: capture.Block, Memory: capture.NewMemory(20_000)})
		filled := false
		go func() {
			fill(r, 4, 3000)
			filled = true
		}()
		synctest.Wait()
		if filled {
			t.Error("nothing waited for a disk that hangs")
		}
		close(d.gate)
		synctest.Wait()
		l, err := r.Close(0)
		balanced(t, l, 12_000)
		records, in := read(d.bytes())
		if c := count(records); err != nil || in.Err() != nil || l.Shed != 0 || c.statements != 12_000 || !filled {
			t.Errorf("%v, %v, %+v, %+v; want all 12000 statements", err, in.Err(), l, c)
		}
	})
}

// TestRecorderKeepsWhatIsBegun: a begin and its end have room of their own when statements are shed.
func TestRecorderKeepsWhatIsBegun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := disk{gate: make(chan struct{})}
		r := capture.NewRecorder(&d, capture.Header{}, capture.RecorderOptions{Memory: capture.NewMemory(200_000)})
		for i := range uint64(20_000) {
			s := statement(1, i+1)
			s.Params.Values = s.Text // stored every time, unlike a text
			r.Statement(s)
		}
		slow := statement(2, 1)
		r.Begin(slow)
		r.Statement(statement(1, 20_001))
		r.Statement(slow)
		close(d.gate)
		l, err := r.Close(0)
		if err != nil {
			t.Fatal(err)
		}
		records, _ := read(d.bytes())
		kinds := map[capture.Kind]int{}
		for _, rec := range records {
			if rec.Kind != capture.KindGap && rec.Statement.Session == 2 {
				kinds[rec.Kind]++
			}
		}
		if l.Shed == 0 || kinds[capture.KindBegin] != 1 || kinds[capture.KindStatement] != 1 {
			t.Errorf("%d shed, begins and ends stored: %v; want some shed, one of each", l.Shed, kinds)
		}
	})
}

// TestRecorderLosesLittleWhenKilled: at any moment the file holds all that is older than FlushEvery.
func TestRecorderLosesLittleWhenKilled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var d disk
		syncs := 0
		r := capture.NewRecorder(&d, capture.Header{}, capture.RecorderOptions{Sync: func() error { syncs++; return nil }})
		for i := range uint64(10) {
			r.Statement(statement(1, i+1))
			time.Sleep(400 * time.Millisecond)
		}
		time.Sleep(100 * time.Millisecond) // 4.1 s: written at 0.5, 1, 1.5, …, 4
		synctest.Wait()
		records, _ := read(d.bytes())
		if len(records) != 10 {
			t.Errorf("%d records in the file after 4.1 s, want 10", len(records))
		}
		if syncs < 3 || syncs > 4 {
			t.Errorf("%d syncs in 4.1 s, want about one a second", syncs)
		}
		if _, err := r.Close(0); err != nil {
			t.Error(err)
		}
		if _, err := r.Close(0); err == nil {
			t.Error("Close a second time: nil, want an error")
		}
		r.Statement(statement(1, 11)) // ignored
		balanced(t, r.Ledger(), 10)
	})
}

// TestRecorderWhoseSyncFails takes that for what it is: the file is not safe.
func TestRecorderWhoseSyncFails(t *testing.T) {
	var d disk
	r := capture.NewRecorder(&d, capture.Header{}, capture.RecorderOptions{Sync: func() error { return errFull }})
	fill(r, 1, 10)
	if _, err := r.Close(0); !errors.Is(err, errFull) {
		t.Errorf("Close: %v, want %v", err, errFull)
	}
}

func TestClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := capture.NewClock()
		wall := time.Now()
		time.Sleep(3 * time.Second)
		if c.Now() != 3*time.Second || !c.Start().Equal(wall) {
			t.Errorf("Now() = %v, Start() = %v; want 3s, %v", c.Now(), c.Start(), wall)
		}
	})
}

func BenchmarkRecorder(b *testing.B) {
	statements := newOLTP(8, false).statements(100_000)
	r := capture.NewRecorder(io.Discard, capture.Header{}, capture.RecorderOptions{OnFull: capture.Block})
	b.ReportAllocs()
	n := 0
	for b.Loop() {
		r.Statement(statements[n%len(statements)])
		n++
	}
	if _, err := r.Close(0); err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(float64(n)/b.Elapsed().Seconds(), "statements/s")
}

// TestRecorderHorizonWaitsForWhatItCouldNotBegin: a begin that finds no room must not let the horizon pass its
// statement, whose end may be stored later.
func TestRecorderHorizonWaitsForWhatItCouldNotBegin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := disk{gate: make(chan struct{})}
		r := capture.NewRecorder(&d, capture.Header{}, capture.RecorderOptions{Memory: capture.NewMemory(200_000)})
		var open []*capture.Statement
		for session := range uint64(8) {
			s := statement(session+1, 1)
			s.Params.Values = bytes.Repeat([]byte{byte(session)}, 300_000)
			s.Received, s.Sent, s.Done = time.Second, time.Second, 20*time.Second
			open = append(open, s)
			r.Begin(s)
		}
		r.Horizon(10 * time.Second) // as the producer sees it, all of them have been begun
		close(d.gate)
		other := statement(100, 1)
		other.Received, other.Sent, other.Done = 11*time.Second, 11*time.Second, 12*time.Second
		r.Statement(other)
		time.Sleep(2 * time.Second) // a block with the promise is written
		for _, s := range open {
			s.Params.Values = nil
			r.Statement(s)
		}
		if _, err := r.Close(0); err != nil {
			t.Fatal(err)
		}
		begun, records := 0, 0
		all, _ := read(d.bytes())
		for _, rec := range all {
			switch rec.Kind {
			case capture.KindBegin:
				begun++
			case capture.KindStatement:
				records++
			}
		}
		if begun == len(open) || records != len(open)+1 {
			t.Fatalf("%d of %d begun, %d stored: the test does not bite", begun, len(open), records)
		}
		v := capture.Verify(capture.NewReader(bytes.NewReader(d.bytes()), "test.rdt"))
		if !v.OK() {
			t.Errorf("verify: %v, %q", v.Err, v.Problems)
		}
	})
}

// Every flag has a name in output.
func TestFlagNames(t *testing.T) {
	for flag := capture.Flags(1); flag <= capture.Masked; flag <<= 1 {
		if names := flag.Names(); len(names) != 1 {
			t.Errorf("flag %d has the names %q, want one", flag, names)
		}
	}
}
