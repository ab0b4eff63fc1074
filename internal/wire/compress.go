package wire

import (
	"bytes"
	"compress/zlib"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/klauspost/compress/zstd"
)

// FrameHeaderLen is the size of the header of a compressed frame: three bytes of length, a sequence id of its own, and
// three bytes that tell the length before compression, 0 for a payload that is stored as it is.
const FrameHeaderLen = 7

// An Inflater takes the frames of the compressed protocol off a stream, one direction of a connection, and gives their
// content: a stream of packets, which begin and end anywhere in a frame. No frame can hold more than 16 MiB, whatever it
// is made of, and no more is taken for it. Whether zlib or zstd made it is told by its first bytes. The zero value
// stands before a frame, and holds no memory there.
type Inflater struct {
	Memory Account // what frames are gathered and inflated in; nil for no limit

	gathered Buffer // a frame that came in pieces, header included
	inflated []byte
	given    bool // the content of the frame at hand has been given out
	seq      byte // of the frame at hand
}

// Next takes bytes off b, to the end of the first whole frame if there is one; n is how many. The content of a frame
// that ended is valid until Release or the next call. After an error the stream can no longer be followed.
func (z *Inflater) Next(b []byte) (content []byte, n int, err error) {
	z.Release()
	if z.gathered.Len() == 0 && len(b) >= FrameHeaderLen && len(b) >= frameLen(b) { // the common case: a whole frame
		n = frameLen(b)
		content, err = z.inflate(b[:n])
		return content, n, err
	}
	n, whole, err := z.gather(b)
	if !whole || err != nil {
		return nil, n, err
	}
	content, err = z.inflate(z.gathered.Bytes())
	return content, n, err
}

// gather adds to the frame at hand what b has of it.
func (z *Inflater) gather(b []byte) (n int, whole bool, err error) {
	if missing := FrameHeaderLen - z.gathered.Len(); missing > 0 {
		n = z.gathered.Append(b[:min(missing, len(b))], FrameHeaderLen, z.Memory)
		if n < missing {
			return n, false, nil
		}
	}
	size := frameLen(z.gathered.Bytes())
	want := min(size-z.gathered.Len(), len(b)-n)
	if z.gathered.Append(b[n:n+want], size, z.Memory) < want {
		return n, false, fmt.Errorf("compressed frame of %d bytes: %w", size-FrameHeaderLen, errNoMemory)
	}
	return n + want, z.gathered.Len() == size, nil
}

// Seq is the sequence id of the frame whose content Next gave last.
func (z *Inflater) Seq() byte { return z.seq }

// AppendFrame appends content, of no more than MaxPayload bytes, as one frame that is stored as it is.
func AppendFrame(dst []byte, seq byte, content []byte) []byte {
	n := len(content)
	dst = append(dst, byte(n), byte(n>>8), byte(n>>16), seq, 0, 0, 0)
	return append(dst, content...)
}

// Release gives back the memory of the frame whose content Next gave last, which must no longer be used.
func (z *Inflater) Release() {
	if z.given {
		z.Drop()
	}
}

// Drop gives back all memory, also that of a frame that is not whole yet. The stream can no longer be followed then.
func (z *Inflater) Drop() {
	z.gathered.Reset(z.Memory)
	give(z.inflated, z.Memory)
	z.inflated, z.given = nil, false
}

// AtBoundary reports whether the stream stands between two frames.
func (z *Inflater) AtBoundary() bool { return z.gathered.Len() == 0 || z.given }

// frameLen is the length of a frame, header included.
func frameLen(header []byte) int { return FrameHeaderLen + uint24(header) }

func uint24(b []byte) int { return int(b[0]) | int(b[1])<<8 | int(b[2])<<16 }

func (z *Inflater) inflate(frame []byte) ([]byte, error) {
	size, payload := uint24(frame[4:]), frame[FrameHeaderLen:]
	z.seq, z.given = frame[3], true
	if size == 0 {
		return payload, nil
	}
	err := errNoMemory
	if memory, ok := take(roundUp(max(size, 2*smallBuffer)), z.Memory); ok {
		z.inflated = memory
		if bytes.HasPrefix(payload, zstdMagic) {
			err = z.inflateZstd(payload, size)
		} else {
			err = z.inflateZlib(payload, size)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("compressed frame of %d bytes: %w", len(payload), err)
	}
	return z.inflated, nil
}

// zstdMagic begins a frame of zstd. It is no possible beginning of zlib's, whose first two bytes are a multiple of 31.
var zstdMagic = []byte{0x28, 0xB5, 0x2F, 0xFD}

var (
	errFrameSize = errors.New("it holds more or less than it says")
	errNoMemory  = errors.New("no memory is left for it")
)

// A zlibReader is zlib's state, some 40 KiB, which frames of all streams use in turn: they know nothing of each other.
type zlibReader struct {
	source bytes.Reader
	zlib   io.ReadCloser
}

var zlibReaders = sync.Pool{New: func() any { return new(zlibReader) }}

// begin prepares for a frame's payload.
func (r *zlibReader) begin(payload []byte) (err error) {
	r.source.Reset(payload)
	if r.zlib == nil {
		r.zlib, err = zlib.NewReader(&r.source)
		return err
	}
	return r.zlib.(zlib.Resetter).Reset(&r.source, nil)
}

func (z *Inflater) inflateZlib(payload []byte, size int) error {
	r := zlibReaders.Get().(*zlibReader)
	defer zlibReaders.Put(r)
	defer r.source.Reset(nil)
	if err := r.begin(payload); err != nil {
		return err
	}
	z.inflated = z.inflated[:size]
	if _, err := io.ReadFull(r.zlib, z.inflated); err != nil {
		return err
	}
	var more [1]byte
	switch n, err := r.zlib.Read(more[:]); {
	case n > 0:
		return errFrameSize
	case err != io.EOF: // the checksum does not match
		return err
	}
	return nil
}

// zstdDecoder serves all streams: its frames know nothing of each other.
var zstdDecoder = sync.OnceValues(func() (*zstd.Decoder, error) {
	return zstd.NewReader(nil, zstd.WithDecodeAllCapLimit(true), zstd.WithDecoderMaxMemory(MaxPayload+1))
})

func (z *Inflater) inflateZstd(payload []byte, size int) error {
	decoder, err := zstdDecoder()
	if err != nil {
		return err
	}
	content, err := decoder.DecodeAll(payload, z.inflated[:0:size])
	if err != nil {
		return err
	}
	if len(content) != size {
		return errFrameSize
	}
	z.inflated = z.inflated[:size] // which DecodeAll has filled, as it may not go beyond
	return nil
}
