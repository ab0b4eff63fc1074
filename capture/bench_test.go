package capture_test

import (
	"bytes"
	"fmt"
	"io"
	"sync"
	"testing"

	"redrive/capture"
)

// benchmarkLoads are sysbench's oltp_read_write as the proxy records it.
var benchmarkLoads = []struct {
	threads  int
	prepared bool
}{{8, false}, {8, true}, {256, false}}

func BenchmarkWriter(b *testing.B) {
	for _, l := range benchmarkLoads {
		b.Run(fmt.Sprintf("threads=%d/prepared=%v", l.threads, l.prepared), func(b *testing.B) {
			size := len(file(newOLTP(l.threads, l.prepared).statements(100_000)))
			statements := newOLTP(l.threads, l.prepared).statements(400) // few: in the cache, as they are where they are made
			w := capture.NewWriter(io.Discard, capture.Header{})
			for n := range 100_000 {
				w.Statement(statements[n%len(statements)])
			}
			n := 0
			b.ReportAllocs()
			for b.Loop() {
				w.Statement(statements[n%len(statements)])
				n++
			}
			if err := w.Flush(); err != nil {
				b.Fatal(err)
			}
			b.ReportMetric(float64(n)/b.Elapsed().Seconds(), "statements/s")
			b.ReportMetric(float64(size)/100_000, "bytes/statement")
		})
	}
}

// BenchmarkLanes is what recording costs a proxy's event loop: each has a lane. ns/op is the wall time per statement of
// all loops together; one goroutine more compresses and writes.
func BenchmarkLanes(b *testing.B) {
	for _, load := range []struct {
		name string
		of   func(threads int) []*capture.Statement
	}{
		{"oltp", func(threads int) []*capture.Statement { return newOLTP(threads, false).statements(400) }},
		{"point", pointSelects},
	} {
		for _, lanes := range []int{1, 2} {
			b.Run(fmt.Sprintf("%s/lanes=%d", load.name, lanes), func(b *testing.B) {
				r := capture.NewRecorder(io.Discard, capture.Header{}, capture.RecorderOptions{OnFull: capture.Block, Lanes: lanes})
				var wg sync.WaitGroup
				b.ReportAllocs()
				b.ResetTimer()
				for i := range lanes {
					statements := load.of(8)
					wg.Go(func() {
						lane := r.Lane(i)
						for n := range b.N / lanes {
							lane.Statement(statements[n%len(statements)])
						}
					})
				}
				wg.Wait()
				b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "statements/s")
				if _, err := r.Close(0); err != nil {
					b.Fatal(err)
				}
			})
		}
	}
}

// pointSelects are the point selects of sysbench's load.
func pointSelects(threads int) (statements []*capture.Statement) {
	for _, s := range newOLTP(threads, false).statements(1000) {
		if s.Outcome.Rows == 1 && s.Outcome.ReplyBytes == 189 {
			s.Number, s.Txn, s.Place, s.TxnEnd = uint64(len(statements)+1), uint64(len(statements)+1), 1, capture.TxnAuto
			statements = append(statements, s)
		}
	}
	return statements
}

func BenchmarkReader(b *testing.B) {
	for _, l := range benchmarkLoads {
		b.Run(fmt.Sprintf("threads=%d/prepared=%v", l.threads, l.prepared), func(b *testing.B) {
			benchmarkRead(b, file(newOLTP(l.threads, l.prepared).statements(200_000)), func(r *capture.Reader) next { return r })
		})
	}
}

func BenchmarkInStartOrder(b *testing.B) {
	data := file(newOLTP(8, false).statements(200_000))
	benchmarkRead(b, data, func(r *capture.Reader) next { return capture.InStartOrder(r) })
}

type next interface {
	Next() bool
	Err() error
}

func benchmarkRead(b *testing.B, data []byte, open func(*capture.Reader) next) {
	n := 0
	b.ReportAllocs()
	b.SetBytes(int64(len(data)))
	for b.Loop() {
		r := open(capture.NewReader(bytes.NewReader(data), "bench.rdt"))
		for r.Next() {
			n++
		}
		if r.Err() != nil {
			b.Fatal(r.Err())
		}
	}
	b.ReportMetric(float64(n)/b.Elapsed().Seconds(), "statements/s")
}

// file is a capture of statements, with a horizon after each.
func file(statements []*capture.Statement) []byte {
	var buf bytes.Buffer
	w := capture.NewWriter(&buf, capture.Header{})
	for _, s := range statements {
		w.Statement(s)
		w.Horizon(s.Received)
	}
	if err := w.Close(capture.Ledger{}); err != nil {
		panic(err)
	}
	return buf.Bytes()
}
