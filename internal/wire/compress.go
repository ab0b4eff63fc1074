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

// keptFrame is the largest buffer that is kept for the next frame.
const keptFrame = 64 << 10

// An Inflater takes the frames of the compressed protocol off a stream, one direction of a connection, and gives their
// content: a stream of packets, which begin and end anywhere in a frame. No frame can hold more than 16 MiB, whatever it
// is made of, and no more is allocated for it. Whether zlib or zstd made it is told by its first bytes. The zero value
// stands before a frame.
type Inflater struct {
	gathered []byte // a frame that came in pieces, header included
	inflated []byte
	seq      byte // of the frame at hand
	source   bytes.Reader
	zlib     io.ReadCloser
}

// Next takes bytes off b, to the end of the first whole frame if there is one; n is how many. The content of a frame
// that ended is valid until the next call. After an error the stream can no longer be followed.
func (z *Inflater) Next(b []byte) (content []byte, n int, err error) {
	if len(z.gathered) == 0 && len(b) >= FrameHeaderLen && len(b) >= frameLen(b) { // the common case: a whole frame
		n = frameLen(b)
		content, err = z.inflate(b[:n])
		return content, n, err
	}
	n, whole := z.gather(b)
	if !whole {
		return nil, n, nil
	}
	content, err = z.inflate(z.gathered)
	z.gathered = z.gathered[:0]
	return content, n, err
}

// gather adds to the frame at hand what b has of it.
func (z *Inflater) gather(b []byte) (n int, whole bool) {
	if missing := FrameHeaderLen - len(z.gathered); missing > 0 {
		n = min(missing, len(b))
		z.gathered = append(z.gathered, b[:n]...)
		if n < missing {
			return n, false
		}
	}
	m := min(frameLen(z.gathered)-len(z.gathered), len(b)-n)
	z.gathered = append(z.gathered, b[n:n+m]...)
	return n + m, len(z.gathered) == frameLen(z.gathered)
}

// Seq is the sequence id of the frame whose content Next gave last.
func (z *Inflater) Seq() byte { return z.seq }

// AppendFrame appends content, of no more than MaxPayload bytes, as one frame that is stored as it is.
func AppendFrame(dst []byte, seq byte, content []byte) []byte {
	n := len(content)
	dst = append(dst, byte(n), byte(n>>8), byte(n>>16), seq, 0, 0, 0)
	return append(dst, content...)
}

// Release gives back the memory of a large frame, whose content must no longer be used.
func (z *Inflater) Release() {
	if len(z.gathered) == 0 && cap(z.gathered) > keptFrame {
		z.gathered = nil
	}
	if cap(z.inflated) > keptFrame {
		z.inflated = nil
	}
}

// AtBoundary reports whether the stream stands between two frames.
func (z *Inflater) AtBoundary() bool { return len(z.gathered) == 0 }

// frameLen is the length of a frame, header included.
func frameLen(header []byte) int { return FrameHeaderLen + uint24(header) }

func uint24(b []byte) int { return int(b[0]) | int(b[1])<<8 | int(b[2])<<16 }

func (z *Inflater) inflate(frame []byte) ([]byte, error) {
	size, payload := uint24(frame[4:]), frame[FrameHeaderLen:]
	z.seq = frame[3]
	if size == 0 {
		return payload, nil
	}
	if cap(z.inflated) < size {
		z.inflated = make([]byte, 0, max(size, 4<<10))
	}
	var err error
	if bytes.HasPrefix(payload, zstdMagic) {
		err = z.inflateZstd(payload, size)
	} else {
		err = z.inflateZlib(payload, size)
	}
	if err != nil {
		return nil, fmt.Errorf("compressed frame of %d bytes: %w", len(payload), err)
	}
	return z.inflated, nil
}

// zstdMagic begins a frame of zstd. It is no possible beginning of zlib's, whose first two bytes are a multiple of 31.
var zstdMagic = []byte{0x28, 0xB5, 0x2F, 0xFD}

var errFrameSize = errors.New("it holds more or less than it says")

func (z *Inflater) inflateZlib(payload []byte, size int) error {
	z.source.Reset(payload)
	var err error
	if z.zlib == nil {
		z.zlib, err = zlib.NewReader(&z.source)
	} else {
		err = z.zlib.(zlib.Resetter).Reset(&z.source, nil)
	}
	if err != nil {
		return err
	}
	z.inflated = z.inflated[:size]
	if _, err = io.ReadFull(z.zlib, z.inflated); err != nil {
		return err
	}
	var more [1]byte
	switch n, err := z.zlib.Read(more[:]); {
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
	z.inflated, err = decoder.DecodeAll(payload, z.inflated[:0:size])
	if err != nil {
		return err
	}
	if len(z.inflated) != size {
		return errFrameSize
	}
	return nil
}
