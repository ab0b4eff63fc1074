package wire_test

import (
	"bytes"
	"fmt"
	"testing"

	"redrive/internal/wire"
)

func TestSplitterAtEveryCut(t *testing.T) {
	payloads := [][]byte{[]byte("first"), {}, []byte("x"), bytes.Repeat([]byte("long"), 100)}
	var stream []byte
	seq := byte(0)
	for _, p := range payloads {
		stream, seq = wire.AppendPacket(stream, seq, p)
	}
	for first := range len(stream) {
		for _, second := range []int{first, first + 1, first + 3, len(stream)} {
			second = min(second, len(stream))
			var s wire.Splitter
			var got [][]byte
			for _, chunk := range [][]byte{stream[:first], stream[first:second], stream[second:]} {
				for len(chunk) > 0 {
					p, rest, ok := s.Next(chunk)
					if !ok {
						break
					}
					chunk = rest
					if p.Head {
						got = append(got, []byte{})
					}
					got[len(got)-1] = append(got[len(got)-1], p.Data...)
					if p.Tail && len(got[len(got)-1]) != p.Length {
						t.Fatalf("cut at %d and %d: packet of %d bytes announced as %d", first, second, len(got[len(got)-1]), p.Length)
					}
				}
			}
			if !s.AtBoundary() {
				t.Errorf("cut at %d and %d: not at a boundary at the end", first, second)
			}
			if fmt.Sprintf("%q", got) != fmt.Sprintf("%q", payloads) {
				t.Fatalf("cut at %d and %d: got %q", first, second, got)
			}
		}
	}
}

func TestSplitterJoinsPhysicalPackets(t *testing.T) {
	for _, length := range []int{wire.MaxPayload - 1, wire.MaxPayload, wire.MaxPayload + 1, 2 * wire.MaxPayload} {
		stream, _ := wire.AppendPacket(nil, 0, make([]byte, length))
		stream, _ = wire.AppendPacket(stream, 0, []byte("next"))
		var s wire.Splitter
		heads, tails, bytes := 0, 0, 0
		for len(stream) > 0 {
			p, rest, ok := s.Next(stream)
			if !ok {
				break
			}
			stream = rest
			bytes += len(p.Data)
			if p.Head {
				heads++
			}
			if p.Tail {
				tails++
			}
		}
		if heads != 2 || tails != 2 || bytes != length+4 {
			t.Errorf("payload of %d: %d heads, %d tails, %d bytes, want 2, 2, %d", length, heads, tails, bytes, length+4)
		}
	}
}

func TestCursorFailureSticks(t *testing.T) {
	c := wire.NewCursor([]byte{1, 2, 3})
	if got := c.Uint16(); got != 0x0201 || !c.OK() {
		t.Errorf("Uint16() = %#x, ok %t, want 0x201, true", got, c.OK())
	}
	if got := c.Uint32(); got != 0 || c.OK() {
		t.Errorf("Uint32() past the end = %d, ok %t, want 0, false", got, c.OK())
	}
	if got := c.Byte(); got != 0 || c.OK() {
		t.Errorf("Byte() after a failure = %d, ok %t, want 0, false", got, c.OK())
	}
}

func TestLenenc(t *testing.T) {
	for _, n := range []uint64{0, 1, 250, 251, 252, 1<<16 - 1, 1 << 16, 1<<24 - 1, 1 << 24, 1<<64 - 1} {
		b := wire.AppendLenenc(nil, n)
		c := wire.NewCursor(b)
		if got := c.Lenenc(); got != n || !c.OK() || c.Len() != 0 {
			t.Errorf("%d came back as %d, ok %t, %d bytes left", n, got, c.OK(), c.Len())
		}
		for cut := range b {
			c := wire.NewCursor(b[:cut])
			if c.Lenenc(); c.OK() {
				t.Errorf("%d cut to %d bytes was read", n, cut)
			}
		}
	}
	for _, bad := range [][]byte{{0xFB}, {0xFF}, {0xFE, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 'x'}} {
		c := wire.NewCursor(bad)
		if got := c.LenencBytes(); got != nil || c.OK() {
			t.Errorf("LenencBytes of % x = %q, ok %t", bad, got, c.OK())
		}
	}
}
