package wire_test

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"redrive/capture"
	"redrive/internal/wire"
)

// Buffers take no more than they need twice over, never more than there is, and give all back; what they hold is what was
// added, up to where memory ended.
func TestBuffer(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	content := make([]byte, 300<<10)
	rand.NewChaCha8([32]byte{1}).Read(content)
	for _, memoryLimit := range []int{0, 2 << 10, 40 << 10, 1 << 30} {
		memory := capture.NewMemory(memoryLimit)
		var buffers [3]wire.Buffer
		var want [3][]byte
		denied := 0
		for range 5000 {
			i := rng.IntN(len(buffers))
			if rng.IntN(20) == 0 {
				buffers[i].Reset(memory)
				want[i] = want[i][:0]
			}
			from := rng.IntN(len(content))
			data := content[from : from+rng.IntN(1+min(len(content)-from, 1<<rng.IntN(16)))]
			limit := 100 << 10
			kept := buffers[i].Append(data, limit, memory)
			if kept < len(data) && len(want[i])+kept < limit {
				denied++
				if kept < 1<<10 && len(want[i])+kept < 1<<10 {
					t.Fatalf("memory of %d: %d of %d bytes added behind %d: want the first 1 KiB in any case", memoryLimit, kept, len(data), len(want[i]))
				}
			}
			want[i] = append(want[i], data[:kept]...)
			held := 0
			for i := range buffers {
				if !bytes.Equal(buffers[i].Bytes(), want[i]) || buffers[i].Len() > limit {
					t.Fatalf("memory of %d: buffer %d does not hold what was added", memoryLimit, i)
				}
				held += len(want[i])
			}
			if used := memory.Used(); used > memoryLimit || used > 2*held {
				t.Fatalf("memory of %d: %d bytes taken for %d", memoryLimit, used, held)
			}
		}
		if denied == 0 != (memoryLimit == 1<<30) {
			t.Errorf("memory of %d: denied %d times", memoryLimit, denied)
		}
		for i := range buffers {
			buffers[i].Reset(memory)
		}
		if used := memory.Used(); used != 0 {
			t.Errorf("memory of %d: %d bytes still taken", memoryLimit, used)
		}
	}
}
