package capture_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math/rand"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"redrive/capture"
)

// mixed is a small file of records of every kind in several blocks, and the records.
func mixed(t testing.TB) ([]byte, []*capture.Record) {
	f := fillers(rand.New(rand.NewSource(3)))["random"]
	var records []*capture.Record
	for i := range 15 {
		records = append(records, newRecord(allKinds[i%len(allKinds)], f, i))
	}
	return write(t, records, 6), records
}

// TestCutAtEveryByte: whole records, then an error with the offset; never an invented record.
func TestCutAtEveryByte(t *testing.T) {
	data, want := mixed(t)
	full := 0
	for n := range len(data) {
		got, r := read(data[:n])
		if len(got)%6 != 0 && len(got) != len(want) {
			t.Fatalf("cut to %d bytes: %d records, want those of whole blocks", n, len(got))
		}
		compare(t, fmt.Sprintf("cut to %d bytes", n), got, want[:len(got)])
		if err := r.Err(); err == nil || !strings.HasPrefix(err.Error(), fmt.Sprintf("test.rdt: offset %d: ", r.Offset())) {
			t.Fatalf("cut to %d bytes: Err() = %v, want one at offset %d", n, err, r.Offset())
		}
		if n > 0 && !errors.Is(r.Err(), io.ErrUnexpectedEOF) && n >= 8 {
			t.Fatalf("cut to %d bytes: Err() = %v, want an unexpected EOF", n, r.Err())
		}
		if r.Offset() > int64(n) {
			t.Fatalf("cut to %d bytes: Offset() = %d", n, r.Offset())
		}
		if _, ok := r.Ledger(); ok {
			t.Fatalf("cut to %d bytes: Ledger() is there", n)
		}
		if len(got) == len(want) {
			full++
		}
	}
	if full == 0 {
		t.Error("no cut left all records; the end was not cut")
	}
}

// TestFlippedBits: every bit of the file matters, and none that is wrong goes unseen.
func TestFlippedBits(t *testing.T) {
	data, want := mixed(t)
	for i := range data {
		bad := bytes.Clone(data)
		bad[i] ^= 1 << (i % 8)
		got, r := read(bad)
		if len(got) > len(want) {
			t.Fatalf("bit of byte %d: %d records, want at most %d", i, len(got), len(want))
		}
		compare(t, fmt.Sprintf("bit of byte %d", i), got, want[:len(got)])
		if r.Err() == nil || !strings.HasPrefix(r.Err().Error(), "test.rdt: offset ") {
			t.Fatalf("bit of byte %d: Err() = %v, want an error with an offset", i, r.Err())
		}
	}
}

func TestWrongFiles(t *testing.T) {
	good, _ := mixed(t)
	newer := bytes.Clone(good)
	newer[8] = 2
	long := bytes.Clone(good)
	binary.LittleEndian.PutUint32(long[12:], 1<<31)
	for _, test := range []struct {
		name string
		data []byte
		want string
	}{
		{"empty", nil, "test.rdt: offset 0: not a redrive capture: the file is empty, want the 8 bytes "},
		{"text", []byte("SELECT 1;\n"), `test.rdt: offset 0: not a redrive capture: found "SELECT 1", want the 8 bytes `},
		{"one byte", []byte("x"), `test.rdt: offset 0: not a redrive capture: found "x", want `},
		{"line ends changed", bytes.Replace(good, []byte("\r\n"), []byte("\n"), 1), "test.rdt: offset 0: not a redrive capture: "},
		{"newer", newer, "test.rdt: offset 8: capture format version 2, want 1: "},
		{"long header", long, "test.rdt: offset 12: header of 2147483648 bytes, want at most 1048576"},
		{"two joined", append(bytes.Clone(good), good...), fmt.Sprintf("bytes follow on the capture's end at %d", len(good))},
		{"zeros at the end", append(bytes.Clone(good[:len(good)-300]), make([]byte, 4096)...), "test.rdt: offset "},
	} {
		_, r := read(test.data)
		if r.Err() == nil || !strings.Contains(r.Err().Error(), test.want) {
			t.Errorf("%s: Err() = %v, want %q in it", test.name, r.Err(), test.want)
		}
		if strings.Contains(fmt.Sprint(r.Err()), "\n") {
			t.Errorf("%s: Err() = %q, want one line", test.name, r.Err())
		}
	}
}

// appendBlock appends a block of records with a payload of any bytes and a right checksum, as FORMAT.md has it.
func appendBlock(dst, payload []byte, records uint32) []byte {
	b := append([]byte("RDBk"), 1, 0, 0, 0)
	b = binary.LittleEndian.AppendUint32(b, uint32(len(payload)))
	b = binary.LittleEndian.AppendUint32(b, uint32(len(payload)))
	b = binary.LittleEndian.AppendUint32(b, records)
	b = append(b, make([]byte, 32)...)
	table := crc32.MakeTable(crc32.Castagnoli)
	b = binary.LittleEndian.AppendUint32(b, crc32.Update(crc32.Checksum(b, table), table, payload))
	return append(append(dst, b...), payload...)
}

// headerOnly is a capture file without blocks.
func headerOnly() []byte {
	var buf bytes.Buffer
	capture.NewWriter(&buf, capture.Header{})
	return buf.Bytes()
}

// column is a column as it stands in a payload.
func column(id byte, values ...byte) []byte { return append([]byte{id, byte(len(values))}, values...) }

// TestHandmadeBlocks reads payloads made from FORMAT.md by hand.
func TestHandmadeBlocks(t *testing.T) {
	join := func(columns ...[]byte) []byte { return bytes.Join(columns, nil) }
	select1 := join(column(4, 8), column(5, []byte("SELECT 0")...), column(6, 1), column(7, 3), column(8, 0x21, 0x03))
	for _, test := range []struct {
		name    string
		payload []byte
		records uint32
		want    string // of the texts, or of the error
	}{
		{"a text with digits", select1, 1, "SELECT 123"},
		{"an unknown column is passed over", join(select1, column(127, 1, 2, 3)), 1, "SELECT 123"},
		{"an unknown kind is passed over", join(column(1, 9, 0), select1), 2, "SELECT 123"},
		{"records of zeros", nil, 3, ",,"},
		{"a column twice", join(select1, column(6, 1)), 1, "column 6 occurs twice"},
		{"a column too long", []byte{6, 9, 1}, 1, "column at byte 0 of 3 exceeds the block"},
		{"slots of one session left out", column(3, 2), 2, ","},
		{"zeros at a column's end left out", column(26, 2), 2, ","},
		{"a run of no digits", join(column(4, 1), column(5, '0'), column(6, 1)), 1, "a column ends too early"},
		{"too many values", column(26, 2, 2), 1, "column 26 has more values than records"},
		{"a word that is not there", column(6, 1), 1, "word 1 of 0"},
		{"a word of no bytes", column(4, 5), 0, "the dictionary exceeds its bounds"},
		{"bytes of no word", column(5, 5), 0, "the dictionary has bytes of no word"},
		{"digits missing", join(column(4, 1), column(5, '0'), column(6, 1), column(7, 3), column(8, 0x21)), 1, "a column ends too early"},
		{"a digit above 9", join(column(4, 1), column(5, '0'), column(6, 1), column(7, 1), column(8, 0x0A)), 1, "a digit above 9"},
		{"a slot that is not there", column(2, 4), 1, "session slot 4 of 0"},
		{"values missing", column(38, 8), 1, "a column ends too early"},
		{"half a time", column(21, 1), 1, "column 21 has more values"},
		{"a time before the start", column(21, 2, 0), 1, "a time before the capture's start"},
		{"half a number", column(26, 0x80), 1, "a column ends too early"},
	} {
		got, r := read(appendBlock(headerOnly(), test.payload, test.records))
		var texts []string
		for _, rec := range got {
			texts = append(texts, string(rec.Statement.Text))
		}
		if errors.Is(r.Err(), io.ErrUnexpectedEOF) { // which is to be expected: there is no end
			if strings.Join(texts, ",") != test.want {
				t.Errorf("%s: texts %q, want %q", test.name, texts, test.want)
			}
		} else if !strings.Contains(fmt.Sprint(r.Err()), test.want) {
			t.Errorf("%s: Err() = %v, want %q in it", test.name, r.Err(), test.want)
		}
	}
}

// firstStatement is what stands in testdata/version1.rdt.
func firstStatement(i int) *capture.Statement {
	at := time.Duration(i) * time.Millisecond
	return &capture.Statement{
		Session: uint64(1 + i%3), Number: uint64(1 + i/3), Txn: uint64(1 + i/6), Place: uint32(1 + i/3%2),
		Command: 3, Schema: []byte("sbtest"), Text: fmt.Appendf(nil, "SELECT c FROM sbtest%d WHERE id=%d", i%4, i*i*i),
		Received: at + 1, Complete: at + 2, Sent: at + 300, First: at + 40_000, Done: at + 50_000, RequestBytes: uint64(40 + i),
		Outcome: capture.Outcome{Results: 1, ResultSets: 1, Rows: uint64(i), Status: 2, HasStatus: true, ReplyBytes: uint64(100 * i)},
	}
}

// TestFirstFileStillReads reads a file of 100 statements that the first version of the writer made. Readers read every
// file that was ever written, so it is never made again.
func TestFirstFileStillReads(t *testing.T) {
	data, err := os.ReadFile(filepath.Join("testdata", "version1.rdt"))
	if err != nil {
		t.Fatal(err)
	}
	got, r := read(data)
	if r.Err() != nil || len(got) != 100 {
		t.Fatalf("%d records, %v; want 100, nil", len(got), r.Err())
	}
	for i, rec := range got {
		if want := firstStatement(i); !reflect.DeepEqual(&rec.Statement, want) {
			t.Fatalf("statement %d = %+v, want %+v", i, rec.Statement, want)
		}
	}
}

func FuzzReader(f *testing.F) {
	data, _ := mixed(f)
	f.Add(data)
	f.Add(data[:len(data)/2])
	f.Add(headerOnly())
	f.Fuzz(func(t *testing.T, data []byte) {
		_, r := read(data)
		if r.Err() != nil && !strings.HasPrefix(r.Err().Error(), "test.rdt: offset ") {
			t.Errorf("Err() = %v, want one with an offset", r.Err())
		}
	})
}

// FuzzPayload reads blocks whose checksum is right and whose columns are anything.
func FuzzPayload(f *testing.F) {
	f.Add(column(26, 2), uint32(1))
	f.Add(bytes.Join([][]byte{column(1, 0, 1, 2, 3, 4), column(4, 8), column(5, []byte("SELECT 0")...), column(6, 1, 1), column(7, 3, 1), column(8, 0x21, 0x43)}, nil), uint32(5))
	f.Fuzz(func(t *testing.T, payload []byte, records uint32) {
		got, r := read(appendBlock(headerOnly(), payload, records%1000))
		if len(got) > int(records%1000) {
			t.Errorf("%d records, want at most %d", len(got), records%1000)
		}
		if r.Err() == nil {
			t.Error("Err() = nil for a file without an end")
		}
	})
}
