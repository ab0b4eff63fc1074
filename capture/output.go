package capture

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"

	"github.com/klauspost/compress/zstd"
)

// An output writes blocks to a file, one Write each. It keeps its first error and writes nothing after it.
type output struct {
	w      io.Writer
	offset int64
	index  []byte // entries of the blocks written
	zstd   *zstd.Encoder
	raw    []byte // scratch: a payload
	buf    []byte // scratch: a block as stored
	err    error
}

func newOutput(w io.Writer, h Header) *output {
	o := &output{w: w}
	o.zstd, o.err = zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithAllLitEntropyCompression(true), zstd.WithEncoderConcurrency(1),
		zstd.WithEncoderCRC(false), zstd.WithWindowSize(blockSize))
	o.write(appendFileHeader(nil, h, &o.err))
	return o
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

func (o *output) write(p []byte) {
	if o.err != nil {
		return
	}
	n, err := o.w.Write(p)
	if err == nil && n < len(p) {
		err = io.ErrShortWrite
	}
	if err != nil {
		o.err = fmt.Errorf("capture: offset %d: %w", o.offset, err)
		return
	}
	o.offset += int64(n)
}

// records writes a block of records.
func (o *output) records(b *block) {
	b.info.Offset = o.offset
	o.raw = b.appendPayload(o.raw[:0])
	o.buf = append(o.buf[:0], make([]byte, blockHeaderLen)...)
	for rest := o.raw; len(rest) > 0; {
		n := frame(rest)
		o.buf = o.zstd.EncodeAll(rest[:n], o.buf)
		rest = rest[n:]
	}
	o.finish(blockHeader{kind: blockRecords, codec: codecZstd, block: b.info})
	o.index = b.info.appendIndexEntry(o.index)
}

// finish writes what is in buf behind a block header. Bytes that did not become fewer are stored as they are.
func (o *output) finish(h blockHeader) {
	if h.codec == codecRaw || len(o.buf)-blockHeaderLen >= len(o.raw) {
		h.codec = codecRaw
		o.buf = append(o.buf[:blockHeaderLen], o.raw...)
	}
	h.stored, h.raw = len(o.buf)-blockHeaderLen, len(o.raw)
	h.put(o.buf)
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
	f := footer{Ledger: l, Index: o.offset, Blocks: len(o.index) / indexEntryLen}
	for index := o.index; ; {
		n := min(len(index), maxRecords*indexEntryLen)
		o.plain(blockIndex, index[:n], n/indexEntryLen)
		index = index[n:]
		if len(index) == 0 {
			break
		}
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
