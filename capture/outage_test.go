package capture_test

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
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
}

func (v *volume) Write(p []byte) (int, error) {
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
	}{
		"full":            {},
		"input/output":    {err: errors.New("input/output error")},
		"by transactions": {onFull: capture.ShedTransactions},
		"blocking":        {onFull: capture.Block},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				v := volume{room: 60_000, err: test.err}
				clock := capture.NewClock()
				var told []error
				failed, resumed := make(chan struct{}, 100), 0
				r := capture.NewRecorder(&v, capture.Header{}, capture.RecorderOptions{
					OnFull: test.onFull, Lanes: 3, Failed: func(err error) { told = append(told, err); failed <- struct{}{} }, Resumed: func() { resumed++ },
				})
				clients := newClients(r, clock, 12, 10, func(int) time.Duration { return 10 * time.Millisecond })
				var failedAt time.Duration
				freed := make(chan struct{})
				go func() {
					<-failed
					failedAt = clock.Now()
					time.Sleep(10 * time.Second)
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
						if rec.Statement.Done > failedAt+12*time.Second {
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
				if gap.From > failedAt || gap.To < failedAt+9*time.Second || gap.To > failedAt+13*time.Second {
					t.Errorf("gap from %v to %v, want about ten seconds from %v", gap.From, gap.To, failedAt)
				}
			})
		})
	}
}

// TestAFullDiskAtTheEnd: the file ends with its last whole block or, where there is room for it, as it should.
func TestAFullDiskAtTheEnd(t *testing.T) {
	clean := 0
	for room := 2000; room < 6000; room += 13 {
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
