package capture_test

import (
	"fmt"
	"hash/fnv"
	"math/rand"
	"runtime"
	"strings"
	"testing"

	"redrive/capture"
)

func TestMemory(t *testing.T) {
	m := capture.NewMemory(100)
	if !m.Take(60) || m.Take(41) || !m.Take(40) || m.Used() != 100 || m.Limit() != 100 {
		t.Errorf("used %d of %d, want 60 and 40 granted and 41 not", m.Used(), m.Limit())
	}
	m.Give(100)
	if m.Used() != 0 || !m.Take(100) {
		t.Errorf("used %d after all was given back, want all to be had again", m.Used())
	}
	var none *capture.Memory
	none.Give(1)
	if !none.Take(1<<40) || none.Used() != 0 || none.Limit() < 1<<40 {
		t.Error("no account: want everything granted")
	}
}

// heap is how many bytes are in use.
func heap() int {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc)
}

// A hanging writer takes the header, and nothing until it is let go.
type hanging struct {
	header bool
	let    chan struct{}
}

func (h *hanging) Write(p []byte) (int, error) {
	if h.header {
		<-h.let
	}
	h.header = true
	return len(p), nil
}

// TestMemoryBehindAHangingDisk: a recorder that is full holds no more than its account says, whatever it is full of.
func TestMemoryBehindAHangingDisk(t *testing.T) {
	const limit = 24 << 20
	const slack = 3 << 20 // goroutines' stacks, the tests' own
	rng := rand.New(rand.NewSource(1))
	random := make([]byte, 1<<20)
	rng.Read(random)
	digits := []byte(strings.Repeat("1,", 200_000))
	for name, next := range map[string]func(n int, s *capture.Statement){
		"short statements":  func(int, *capture.Statement) {},
		"many sessions":     func(n int, s *capture.Statement) { s.Session = uint64(n) },
		"ever new texts":    func(n int, s *capture.Statement) { s.Text = fmt.Appendf(nil, "SELECT %x", random[n%1000:n%1000+100]) },
		"long parameters":   func(n int, s *capture.Statement) { s.Params.Values = random[n%1000 : 500_000] },
		"long texts":        func(n int, s *capture.Statement) { s.Text = random[n%1000 : 400_000] },
		"texts with digits": func(n int, s *capture.Statement) { s.Text = digits[:100_000+n] },
	} {
		t.Run(name, func(t *testing.T) {
			before := heap()
			h := &hanging{let: make(chan struct{})}
			memory := capture.NewMemory(limit)
			r := capture.NewRecorder(h, capture.Header{}, capture.RecorderOptions{Memory: memory, Lanes: 4})
			s := statement(1, 1)
			for n := 1; n%64 != 0 || r.Ledger().Shed < 10; n++ {
				s.Session, s.Number = uint64(n%8)+1, uint64(n)
				next(n, s)
				r.Lane(n).Statement(s)
			}
			s = nil
			if held := heap() - before; memory.Used() > limit || held > memory.Used()+slack {
				t.Errorf("%d MiB held, %d taken of an account of %d", held>>20, memory.Used()>>20, limit>>20)
			} else {
				t.Logf("%d MiB held, %d taken; %d stored", held>>20, memory.Used()>>20, r.Ledger().Stored)
			}
			close(h.let)
			if _, err := r.Close(0); err != nil {
				t.Error(err)
			}
			if used := memory.Used(); used != 0 {
				t.Errorf("%d bytes are not given back", used)
			}
		})
	}
}

// A gauge is a writer that finds out how much of the heap is in use whenever a block is written.
type gauge struct{ most int }

func (g *gauge) Write(p []byte) (int, error) {
	held := heap()
	for range 3 { // what became garbage while one was counted is gone in the next
		held = min(held, heap())
	}
	g.most = max(g.most, held)
	return len(p), nil
}

// TestMemoryForLargeStatements: storing statements of 60 MiB takes no more than the account holds.
func TestMemoryForLargeStatements(t *testing.T) {
	const limit, size, slack = 160 << 20, 60 << 20, 8 << 20
	random := make([]byte, size)
	rand.New(rand.NewSource(1)).Read(random)
	before := heap()
	var g gauge
	r := capture.NewRecorder(&g, capture.Header{}, capture.RecorderOptions{Memory: capture.NewMemory(limit), OnFull: capture.Block})
	for n := range uint64(4) {
		s := statement(1, n+1)
		if n == 2 {
			s.Text = random
		} else {
			s.Params.Values = random
		}
		r.Statement(s)
	}
	l, err := r.Close(0)
	runtime.KeepAlive(random)
	if err != nil || l.Stored != 4 {
		t.Fatalf("%+v, %v; want all stored", l, err)
	}
	if held := g.most - before; held > limit+slack || held < size {
		t.Errorf("%d MiB held, want %d to %d", held>>20, size>>20, limit>>20)
	}
}

// TestRecorderOfLargeStatements come back as they were, also those that do not compress; one that is too large for the account
// comes back in part.
func TestRecorderOfLargeStatements(t *testing.T) {
	random := make([]byte, 3<<20)
	rand.New(rand.NewSource(1)).Read(random)
	hex := fmt.Appendf(nil, "INSERT INTO t VALUES (x'%x')", random[:2<<20])
	for name, test := range map[string]struct {
		text, values []byte
		limit        int
	}{
		"no compression": {text: random, limit: 64 << 20},
		"parameters":     {values: random, limit: 64 << 20},
		"digits":         {text: hex, limit: 64 << 20},
		"compression":    {text: []byte(strings.Repeat("SELECT 'a', 1234567, ", 150_000)), limit: 64 << 20},
		"no memory":      {text: hex, limit: 9 << 20},
		"too large":      {text: hex, limit: 4 << 20},
	} {
		t.Run(name, func(t *testing.T) {
			var d disk
			r := capture.NewRecorder(&d, capture.Header{}, capture.RecorderOptions{Memory: capture.NewMemory(test.limit)})
			r.Statement(statement(1, 1))
			s := statement(1, 2)
			s.Text, s.Params.Values = test.text, test.values
			s.RequestBytes = uint64(len(test.text) + len(test.values) + 5)
			r.Statement(s)
			l, err := r.Close(0)
			if err != nil || l.Stored != 2 {
				t.Fatalf("%+v, %v; want both stored", l, err)
			}
			verified(t, d.bytes())
			records, _ := read(d.bytes())
			got := records[len(records)-1].Statement
			if got.RequestBytes != s.RequestBytes {
				t.Errorf("a request of %d bytes, want %d", got.RequestBytes, s.RequestBytes)
			}
			if name != "too large" {
				if string(got.Text) != string(test.text) || string(got.Params.Values) != string(test.values) || got.Flags != 0 {
					t.Errorf("%d bytes of text, %d of values, flags %v; want them as they were", len(got.Text), len(got.Params.Values), got.Flags.Names())
				}
				return
			}
			hash := fnv.New64a()
			hash.Write(test.text)
			if !got.Flags.Has(capture.Truncated) || got.TextLen != uint64(len(test.text)) || got.TextHash != hash.Sum64() || !strings.HasPrefix(string(test.text), string(got.Text)) || len(got.Text) == 0 {
				t.Errorf("flags %v, length %d of %d, %d kept; want a prefix", got.Flags.Names(), got.TextLen, len(test.text), len(got.Text))
			}
		})
	}
}

// TestNoRoomAtAll: an account too small for any record is named where one would look for the reason.
func TestNoRoomAtAll(t *testing.T) {
	var d disk
	r := capture.NewRecorder(&d, capture.Header{}, capture.RecorderOptions{Memory: capture.NewMemory(2000)})
	r.Statement(statement(1, 1))
	if _, err := r.Close(0); err != nil {
		t.Fatal(err)
	}
	records, _ := read(d.bytes())
	if c := count(records); c.shed != 1 || !strings.Contains(c.reason, "--memory-limit") {
		t.Errorf("%+v, want one shed for the sake of --memory-limit", c)
	}
}
