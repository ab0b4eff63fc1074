package capture

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"time"

	"github.com/klauspost/compress/zstd"
)

// An output writes blocks to a file: an ordinary one by one Write. It keeps its first error and writes nothing after it.
type output struct {
	w       io.Writer
	file    truncater // w if what was written can be taken back; else nil
	base    int64     // where in file the capture begins
	offset  int64
	index   index
	open    openSet   // statements that have a begin record in the file and no end
	closed  []opening // those that the last block took out of it
	zstd    *zstd.Encoder
	memory  *Memory // for what compressing a large block takes
	raw     []byte  // scratch: a payload
	buf     []byte  // scratch: a block as stored
	scratch []byte
	wanted  int // bytes of the largest write that failed since the file could be written
	err     error
}

// A truncater is a writer that can take back what was written: a regular file.
type truncater interface {
	Truncate(size int64) error
	Seek(offset int64, whence int) (int64, error)
}

func newOutput(w io.Writer, h Header, memory *Memory) *output {
	o := &output{w: w, open: openSet{}, memory: memory}
	o.zstd, o.err = zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithAllLitEntropyCompression(true), zstd.WithEncoderConcurrency(1),
		zstd.WithEncoderCRC(false), zstd.WithWindowSize(blockSize))
	o.write(appendFileHeader(nil, h, &o.err))
	return o
}

// mayTakeBack finds out whether what is written behind the header can be taken back: not from a pipe or a device.
func (o *output) mayTakeBack() {
	file, ok := o.w.(truncater)
	if !ok || o.err != nil {
		return
	}
	if at, err := file.Seek(0, io.SeekCurrent); err == nil && at >= o.offset {
		o.file, o.base = file, at-o.offset
	}
}

func appendFileHeader(dst []byte, h Header, failed *error) []byte {
	text, err := json.Marshal(h)
	if err == nil && len(text) > maxHeaderJSON {
		err = fmt.Errorf("%d bytes, want at most %d", len(text), maxHeaderJSON)
	}
	if err != nil {
		*failed = errors.Join(*failed, fmt.Errorf("header of a capture: %w", err))
	}
	dst = append(dst, fileMagic...)
	dst = binary.LittleEndian.AppendUint32(dst, formatVersion)
	dst = binary.LittleEndian.AppendUint32(dst, uint32(len(text)))
	dst = append(dst, text...)
	return binary.LittleEndian.AppendUint32(dst, crc32.Checksum(dst, castagnoli))
}

// write writes p behind what is written; offset moves on when all of it is.
func (o *output) write(p []byte) { o.writeAll([][]byte{p}) }

func (o *output) writeAll(pieces [][]byte) {
	written := int64(0)
	for _, p := range pieces {
		if o.err != nil {
			return
		}
		n, err := o.w.Write(p)
		written += int64(n)
		if err == nil && n < len(p) {
			err = io.ErrShortWrite
		}
		if err != nil {
			o.err = fmt.Errorf("capture: offset %d: %w", o.offset, err)
			o.wanted = max(o.wanted, total(pieces))
		}
	}
	if o.err == nil {
		o.offset += written
	}
}

// takeBack takes what was written behind the last whole block out of the file, so that writing may go on there. It
// reports whether it could.
func (o *output) takeBack() bool {
	if o.file == nil {
		return false
	}
	end := o.base + o.offset
	if o.file.Truncate(end) != nil {
		return false
	}
	_, err := o.file.Seek(end, io.SeekStart)
	return err == nil
}

// gapRoom is more than a block takes that tells of a gap.
const gapRoom = 1 << 10

// hasRoom tries whether a block can be written that is as large as the one that could not, but no larger than an
// ordinary one, behind one that tells of the gap. It takes it back.
func (o *output) hasRoom() bool {
	zeros := make([]byte, min(o.wanted, blockSize)+gapRoom)
	n, err := o.w.Write(zeros)
	return o.takeBack() && err == nil && n == len(zeros)
}

// records writes a block of records.
func (o *output) records(b *block) {
	b.info.Offset = o.offset
	o.note(b)
	b.info.OldestOpen = o.open.oldest()
	h := blockHeader{kind: blockRecords, codec: codecZstd, block: b.info}
	if b.size > 2*blockSize {
		o.large(h, b)
	} else {
		o.raw = b.appendPayload(o.raw[:0])
		o.buf = append(o.buf[:0], make([]byte, blockHeaderLen)...)
		for rest := o.raw; len(rest) > 0; {
			n := frame(rest)
			o.buf = o.zstd.EncodeAll(rest[:n], o.buf)
			rest = rest[n:]
		}
		o.finish(h)
	}
	if o.err != nil {
		o.forget(b)
		return
	}
	o.memory.force(o.index.add(&b.info))
}

// note brings open up to date with a block.
func (o *output) note(b *block) {
	for _, s := range b.begun {
		o.open.add(s)
	}
	o.closed = o.closed[:0]
	for _, id := range b.over {
		if s, ok := o.open.remove(id); ok {
			o.closed = append(o.closed, s)
		}
	}
	if len(o.open) == 0 {
		return
	}
	for _, session := range b.ended {
		o.closed = append(o.closed, o.open[session]...)
		delete(o.open, session)
	}
}

// forget undoes note for a block that could not be written.
func (o *output) forget(b *block) {
	for _, s := range o.closed {
		o.open.add(s)
	}
	for _, s := range b.begun {
		o.open.remove(s.command)
	}
}

// finish writes what is in buf behind a block header. Bytes that did not become fewer are stored as they are.
func (o *output) finish(h blockHeader) {
	if h.codec == codecRaw || len(o.buf)-blockHeaderLen >= len(o.raw) {
		h.codec = codecRaw
		o.buf = append(o.buf[:blockHeaderLen], o.raw...)
	}
	h.stored, h.raw = len(o.buf)-blockHeaderLen, len(o.raw)
	h.put(o.buf, o.buf[blockHeaderLen:])
	o.write(o.buf)
}

// plain writes a block that holds no records.
func (o *output) plain(kind byte, payload []byte, count int) {
	o.raw = append(o.raw[:0], payload...)
	o.buf = append(o.buf[:0], make([]byte, blockHeaderLen)...)
	o.finish(blockHeader{kind: kind, block: BlockInfo{Records: count, Earliest: none, LastDone: none, OldestOpen: none}})
}

// end writes index, footer and trailer: the clean end of a file.
func (o *output) end(l Ledger) {
	f := footer{Ledger: l, Index: o.offset, Blocks: o.index.count}
	for c, first := o.index.cursor(), true; first || c.more(); first = false {
		o.scratch = o.scratch[:0]
		n := 0
		for ; c.more() && n < indexBlock; n++ {
			b := c.next()
			o.scratch = b.appendIndexEntry(o.scratch)
		}
		o.plain(blockIndex, o.scratch, n)
	}
	at := o.offset
	text, err := json.Marshal(f)
	if err != nil {
		o.err = errors.Join(o.err, err)
		return
	}
	o.plain(blockFooter, text, 0)
	o.write(appendTrailer(nil, at))
}

func appendTrailer(dst []byte, footer int64) []byte {
	dst = binary.LittleEndian.AppendUint64(dst, uint64(footer))
	dst = append(dst, trailerMagic...)
	return binary.LittleEndian.AppendUint32(dst, crc32.Checksum(dst, castagnoli))
}

// indexBlock is how many entries our index blocks hold.
const indexBlock = 1 << 14

// An index remembers the blocks of a file that is being written, each in some 20 bytes: the differences from the one
// before.
type index struct {
	packed []byte
	last   BlockInfo
	count  int
}

// add returns by how many bytes the index has grown.
func (x *index) add(b *BlockInfo) (grown int) {
	size := cap(x.packed)
	x.packed = binary.AppendUvarint(x.packed, uint64(b.Offset-x.last.Offset))
	x.packed = binary.AppendUvarint(x.packed, uint64(b.Records))
	for i, t := range b.times() {
		x.packed = binary.AppendVarint(x.packed, int64(*t-*x.last.times()[i]))
	}
	x.last = *b
	x.count++
	return cap(x.packed) - size
}

func (x *index) cursor() indexCursor { return indexCursor{rest: x.packed} }

// An indexCursor gives the entries of an index again.
type indexCursor struct {
	rest []byte
	last BlockInfo
}

func (c *indexCursor) more() bool { return len(c.rest) > 0 }

func (c *indexCursor) next() *BlockInfo {
	number := func() uint64 {
		v, n := binary.Uvarint(c.rest)
		c.rest = c.rest[n:]
		return v
	}
	c.last.Offset += int64(number())
	c.last.Records = int(number())
	for _, t := range c.last.times() {
		*t += time.Duration(unzigzag(number()))
	}
	return &c.last
}
