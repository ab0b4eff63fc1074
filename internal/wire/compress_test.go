package wire_test

import (
	"bytes"
	"compress/zlib"
	"fmt"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"

	"redrive/internal/wire"
)

// frame is a frame whose header says that its payload inflates to size bytes.
func frame(payload []byte, size int) []byte {
	n := len(payload)
	head := []byte{byte(n), byte(n >> 8), byte(n >> 16), 0, byte(size), byte(size >> 8), byte(size >> 16)}
	return append(head, payload...)
}

func deflate(content []byte) []byte {
	var b bytes.Buffer
	w := zlib.NewWriter(&b)
	w.Write(content)
	w.Close()
	return b.Bytes()
}

var zstdEncoder, _ = zstd.NewWriter(nil)

func zstandard(content []byte) []byte { return zstdEncoder.EncodeAll(content, nil) }

// inflate gives the content of a stream that arrives size bytes at a time.
func inflate(stream []byte, size int) ([]byte, error) {
	var z wire.Inflater
	var got []byte
	for len(stream) > 0 {
		part := stream[:min(size, len(stream))]
		stream = stream[len(part):]
		for len(part) > 0 {
			content, n, err := z.Next(part)
			if err != nil {
				return got, err
			}
			got = append(got, content...)
			part = part[n:]
		}
	}
	if !z.AtBoundary() {
		return got, fmt.Errorf("within a frame")
	}
	return got, nil
}

func TestInflater(t *testing.T) {
	long := []byte(strings.Repeat("SELECT c FROM sbtest1 WHERE id=5012;", 5000))
	var stream, want []byte
	for _, content := range [][]byte{[]byte("a"), long, nil, long[:100], bytes.Repeat([]byte{7}, 1<<18)} {
		stream = append(stream, frame(content, 0)...)
		want = append(want, content...)
		if len(content) > 0 {
			stream = append(stream, frame(deflate(content), len(content))...)
			stream = append(stream, frame(zstandard(content), len(content))...)
			want = append(append(want, content...), content...)
		}
	}
	for _, size := range []int{3, 7, 8, 1000, len(stream)} {
		if got, err := inflate(stream, size); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%d bytes a read: %d bytes, %v, want %d", size, len(got), err, len(want))
		}
	}
}

func TestInflaterRefuses(t *testing.T) {
	content := []byte("SELECT c FROM sbtest1 WHERE id=5012")
	zeros := make([]byte, 1<<20)
	broken := deflate(content)
	broken[len(broken)-1]++
	for name, f := range map[string][]byte{
		"more than it says (zlib)":  frame(deflate(content), len(content)-1),
		"less than it says (zlib)":  frame(deflate(content), len(content)+1),
		"more than it says (zstd)":  frame(zstandard(content), len(content)-1),
		"less than it says (zstd)":  frame(zstandard(content), len(content)+1),
		"a bomb of 1 MiB (zlib)":    frame(deflate(zeros), 1000),
		"a bomb of 1 MiB (zstd)":    frame(zstandard(zeros), 1000),
		"a wrong checksum":          frame(broken, len(content)),
		"neither of the algorithms": frame(content, 100),
		"nothing":                   frame(nil, 100),
	} {
		got, err := inflate(f, len(f))
		if err == nil || len(got) != 0 {
			t.Errorf("%s: %d bytes and no error", name, len(got))
		}
	}
}

func FuzzInflater(f *testing.F) {
	f.Add(append(frame(deflate([]byte("SELECT 1")), 8), frame([]byte("x"), 0)...))
	f.Add(frame(zstandard([]byte("SELECT 1")), 8))
	f.Fuzz(func(t *testing.T, stream []byte) {
		whole, err := inflate(stream, len(stream)+1)
		split, splitErr := inflate(stream, 5)
		if !bytes.Equal(whole, split) || (err == nil) != (splitErr == nil) {
			t.Errorf("%d bytes, %v at once; %d bytes, %v in pieces", len(whole), err, len(split), splitErr)
		}
	})
}
