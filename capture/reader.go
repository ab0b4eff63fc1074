package capture

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"slices"

	"github.com/klauspost/compress/zstd"
)

// A Reader reads a capture file in the order its statements were done, in memory that does not grow with the file. It
// is not safe for concurrent use.
//
//	r := capture.NewReader(f, name)
//	for r.Next() {
//		use(r.Record()) // valid until the next Next; Clone to keep
//	}
//	return r.Err() // nil at a clean end
type Reader struct {
	r      io.Reader
	name   string
	offset int64 // of the next byte to read
	block  BlockInfo
	header *Header
	footer *footer
	index  indexCheck
	zstd   *zstd.Decoder
	stored []byte // a block as stored
	raw    []byte // its payload
	dec    decoder
	rec    Record
	err    error
	done   bool
}

// indexCheck compares the index with the blocks that went before, without keeping either.
type indexCheck struct {
	offset         int64 // of the first index block; 0 before
	blocks, listed int
	want, got      uint32 // checksums of the entries
	scratch        []byte
}

// NewReader reads from r, which needs no seeking. The name is for messages only.
func NewReader(r io.Reader, name string) *Reader { return &Reader{r: r, name: name} }

// Header is what the file says of its origin. It may be called before Next and stays valid.
func (r *Reader) Header() (*Header, error) {
	if r.header != nil {
		return r.header, nil
	}
	if r.err == nil {
		r.header = r.readHeader()
	}
	return r.header, r.err
}

// Next reads a record. It reports false at the end and at an error; Err tells which.
func (r *Reader) Next() bool {
	for r.err == nil && !r.done {
		if r.dec.next(&r.rec) {
			return true
		}
		if err := r.dec.finish(); err != nil {
			r.fail(r.block.Offset, fmt.Errorf("broken block: %w", err))
			break
		}
		if _, err := r.Header(); err == nil {
			r.readBlock()
		}
	}
	return false
}

// Record is the record that Next read. It and its byte strings are valid until the next call of Next.
func (r *Reader) Record() *Record { return &r.rec }

// Err is nil at a clean end. Otherwise it names the file, the offset of the block that could not be read and what is
// wrong; a file without its end gives an error that wraps io.ErrUnexpectedEOF, after its last whole block.
func (r *Reader) Err() error { return r.err }

// Ledger is the capture's account, from the footer; ok says whether a footer was reached.
func (r *Reader) Ledger() (l Ledger, ok bool) {
	if r.footer == nil {
		return Ledger{}, false
	}
	return r.footer.Ledger, true
}

// Offset is the number of bytes that were read and found whole: the end of the block at hand or, after Next returned
// false, where the whole part of the file ends.
func (r *Reader) Offset() int64 { return r.offset }

// Block is what the header of the block at hand says.
func (r *Reader) Block() BlockInfo { return r.block }

func (r *Reader) fail(offset int64, err error) {
	if r.err == nil {
		r.err = fmt.Errorf("%s: offset %d: %w", r.name, offset, err)
	}
}

// read appends the next n bytes to dst. It allocates as bytes come, so that a wrong length costs no memory.
func (r *Reader) read(dst []byte, n int) ([]byte, error) {
	for n > 0 {
		step := min(n, max(64<<10, len(dst)))
		dst = slices.Grow(dst, step)
		got, err := io.ReadFull(r.r, dst[len(dst):len(dst)+step])
		dst = dst[:len(dst)+got]
		if err != nil {
			return dst, err
		}
		n -= step
	}
	return dst, nil
}

func (r *Reader) readHeader() *Header {
	buf, err := r.read(nil, fileHeaderLen)
	if err != nil && !isEnd(err) {
		r.fail(0, err)
		return nil
	}
	if n := min(len(buf), len(fileMagic)); string(buf[:n]) != fileMagic[:n] || n == 0 {
		r.fail(0, fmt.Errorf("not a redrive capture: %s, want the 8 bytes %q at the start", found(buf[:n]), fileMagic))
		return nil
	}
	if err != nil {
		r.fail(0, endsWithin("its header", err))
		return nil
	}
	if v := binary.LittleEndian.Uint32(buf[8:]); v != formatVersion {
		r.fail(8, fmt.Errorf("capture format version %d, want %d: read it with the redrive that wrote it, or a newer one", v, formatVersion))
		return nil
	}
	return r.readHeaderJSON(buf)
}

func found(buf []byte) string {
	if len(buf) == 0 {
		return "the file is empty"
	}
	return fmt.Sprintf("found %q", buf)
}

func (r *Reader) readHeaderJSON(buf []byte) *Header {
	n := binary.LittleEndian.Uint32(buf[12:])
	if n > maxHeaderJSON {
		r.fail(12, fmt.Errorf("header of %d bytes, want at most %d", n, maxHeaderJSON))
		return nil
	}
	buf, err := r.read(buf, int(n)+4)
	if err != nil {
		r.fail(0, endsWithin("its header", err))
		return nil
	}
	end := len(buf) - 4
	if crc32.Checksum(buf[:end], castagnoli) != binary.LittleEndian.Uint32(buf[end:]) {
		r.fail(0, errors.New("the header's checksum is wrong"))
		return nil
	}
	h := new(Header)
	if err := json.Unmarshal(buf[fileHeaderLen:end], h); err != nil {
		r.fail(fileHeaderLen, fmt.Errorf("header: %w", err))
		return nil
	}
	r.offset = int64(len(buf))
	return h
}

func isEnd(err error) bool { return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) }

// endsWithin says that the file ends there, if that is what err is.
func endsWithin(what string, err error) error {
	if isEnd(err) {
		return cutShort("the file ends within " + what)
	}
	return err
}

// cutShort says where a file ends too early. It wraps io.ErrUnexpectedEOF without its words.
type cutShort string

func (c cutShort) Error() string { return string(c) }
func (c cutShort) Unwrap() error { return io.ErrUnexpectedEOF }

// readBlock reads the next block and acts on it.
func (r *Reader) readBlock() {
	start := r.offset
	h, err := r.readWhole()
	if err == nil {
		r.block = h.block
		r.block.Offset = start
		switch h.kind {
		case blockRecords:
			err = r.startRecords()
		case blockIndex:
			r.index.note(start, r.raw)
		case blockFooter:
			err = r.end(start)
		} // others are of a later version, and passed over
	}
	if err != nil {
		r.offset = start
		r.fail(start, err)
	}
}

// readWhole reads a block into stored, checks it, and gives its payload in raw.
func (r *Reader) readWhole() (h blockHeader, err error) {
	r.stored, err = r.read(r.stored[:0], blockHeaderLen)
	if len(r.stored) == 0 && err == io.EOF {
		return h, cutShort("the capture has no end, it was cut short here")
	}
	if n := min(len(r.stored), len(blockMagic)); string(r.stored[:n]) != blockMagic[:n] {
		return h, fmt.Errorf("no block begins here: %s, want %q", found(r.stored[:n]), blockMagic)
	}
	if err == nil {
		h = parseBlockHeader(r.stored)
		if h.stored > maxRaw || h.raw > maxRaw || h.block.Records > maxRecords {
			return h, fmt.Errorf("block of %d bytes, %d raw, %d records: more than %d or %d", h.stored, h.raw, h.block.Records, maxRaw, maxRecords)
		}
		r.stored, err = r.read(r.stored, h.stored)
	}
	if err != nil {
		return h, endsWithin("a block", err)
	}
	if blockSum(r.stored, r.stored[blockHeaderLen:]) != binary.LittleEndian.Uint32(r.stored[blockHeaderLen-4:]) {
		return h, errors.New("the block's checksum is wrong")
	}
	r.offset += int64(len(r.stored))
	return h, r.unpack(h)
}

func (r *Reader) unpack(h blockHeader) (err error) {
	switch h.codec {
	case codecRaw:
		r.raw = append(r.raw[:0], r.stored[blockHeaderLen:]...)
	case codecZstd:
		if r.zstd == nil {
			r.zstd, err = zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecodeAllCapLimit(true), zstd.WithDecoderMaxMemory(maxRaw))
			if err != nil {
				return err
			}
		}
		r.raw = slices.Grow(r.raw[:0], h.raw)
		r.raw, err = r.zstd.DecodeAll(r.stored[blockHeaderLen:], r.raw[:0:h.raw])
	default:
		err = fmt.Errorf("codec %d is not known here: a newer redrive may read it", h.codec)
	}
	if err == nil && len(r.raw) != h.raw {
		err = fmt.Errorf("%d bytes, want %d", len(r.raw), h.raw)
	}
	if err != nil {
		return fmt.Errorf("broken block: %w", err)
	}
	return nil
}

func (r *Reader) startRecords() error {
	if r.index.offset != 0 {
		return errors.New("a block of records behind the index")
	}
	r.index.expect(&r.block)
	if err := r.dec.begin(r.raw, r.block.Records); err != nil {
		return fmt.Errorf("broken block: %w", err)
	}
	return nil
}

// end reads the footer and the trailer, behind which nothing may follow.
func (r *Reader) end(start int64) error {
	f := new(footer)
	if err := json.Unmarshal(r.raw, f); err != nil {
		return fmt.Errorf("footer: %w", err)
	}
	if f.Index != r.index.offset || f.Blocks != r.index.blocks || !r.index.ok() {
		return errors.New("the index does not list the blocks of the file")
	}
	want := appendTrailer(nil, start)
	got, err := r.read(nil, len(want))
	if err != nil {
		return endsWithin("its end", err)
	}
	if string(got) != string(want) {
		return errors.New("the trailer behind the footer is not the footer's")
	}
	r.offset += trailerLen
	switch _, err := io.ReadFull(r.r, make([]byte, 1)); err {
	case io.EOF:
	case nil:
		return fmt.Errorf("bytes follow on the capture's end at %d: joined captures are read one by one", r.offset)
	default:
		return err
	}
	r.footer, r.done = f, true
	return nil
}

// expect notes a block of records.
func (c *indexCheck) expect(b *BlockInfo) {
	c.scratch = b.appendIndexEntry(c.scratch[:0])
	c.want = crc32.Update(c.want, castagnoli, c.scratch)
	c.blocks++
}

// note notes an index block.
func (c *indexCheck) note(offset int64, payload []byte) {
	if c.offset == 0 {
		c.offset = offset
	}
	c.got = crc32.Update(c.got, castagnoli, payload)
	c.listed += len(payload) / indexEntryLen
}

func (c *indexCheck) ok() bool { return c.want == c.got && c.blocks == c.listed }

// lastOfBlock reports whether the record at hand is the last one of its block.
func (r *Reader) lastOfBlock() bool { return r.dec.left == 0 }
