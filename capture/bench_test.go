package capture_test

import (
	"bytes"
	"fmt"
	"io"
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
