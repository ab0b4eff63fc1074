package capture_test

import (
	"bytes"
	"fmt"
	"io"
	"runtime"
	"sync"
	"testing"
	"time"

	"redrive/capture"
)

// TestALaneThatTakesItsTime: a lane stored one huge statement for seconds while another one handed on what was done
// meanwhile, which came into the file first. Now the other goes on without waiting, and its blocks wait to be written.
func TestALaneThatTakesItsTime(t *testing.T) {
	const busy, ms = 1000, time.Millisecond
	for _, begins := range []bool{false, true} {
		t.Run(fmt.Sprintf("begins=%v", begins), func(t *testing.T) {
			var d disk
			r := capture.NewRecorder(&d, capture.Header{}, capture.RecorderOptions{Lanes: 3})
			store := func(session, number uint64, at time.Duration) {
				s := statement(session, number)
				s.Received, s.Complete, s.Sent, s.First, s.Done = at, at, at, at, at
				if begins && session < 3 && number%7 == 1 {
					r.Lane(int(session)).Begin(s)
				}
				r.Lane(int(session)).Statement(s)
			}
			goOn := r.Lane(0).Storing(time.Second)
			var waiting sync.WaitGroup
			for session := range uint64(4) { // they were done, and wait for the lane
				waiting.Go(func() { store(3*(session+1), 1, time.Second+time.Duration(session)*ms) })
			}
			for r.Lane(0).Waiting() < 4 {
				runtime.Gosched()
			}
			for n := range uint64(busy) { // ten seconds pass, and this lane does not wait
				store(1, n+1, time.Second+time.Duration(n)*10*ms)
				store(2, n+1, time.Second+time.Duration(n)*10*ms)
			}
			goOn()
			waiting.Wait()
			if _, err := r.Close(0); err != nil {
				t.Fatal(err)
			}
			if v := verified(t, d.bytes()); v.Records[capture.KindStatement] != 2*busy+4 || v.Blocks < 20 {
				t.Errorf("%d statements in %d blocks, want %d in 20 or more", v.Records[capture.KindStatement], v.Blocks, 2*busy+4)
			}
		})
	}
}

// BenchmarkLargeStatement is how long an event loop is held up by a statement of 64 MiB. Most of it is memory that the
// system provides for the first time.
func BenchmarkLargeStatement(b *testing.B) {
	for name, line := range map[string]string{"text": "so it goes on ", "digits": "1,", "hexadecimal": "a1b2f45c00d9e"} {
		b.Run(name, func(b *testing.B) {
			s := statement(1, 1)
			s.Text = bytes.Repeat([]byte(line), 64<<20/len(line))
			r := capture.NewRecorder(io.Discard, capture.Header{}, capture.RecorderOptions{Memory: capture.NewMemory(256 << 20), OnFull: capture.Block})
			for b.Loop() {
				r.Statement(s)
				b.StopTimer()
				for r.Pending() > 0 {
					time.Sleep(time.Millisecond)
				}
				b.StartTimer()
				s.Number++
			}
			if _, err := r.Close(0); err != nil {
				b.Fatal(err)
			}
		})
	}
}
