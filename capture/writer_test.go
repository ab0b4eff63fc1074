package capture_test

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"redrive/capture"
)

// TestWriterKeepsItsFirstError: checking Close is enough, and what comes later is ignored.
func TestWriterKeepsItsFirstError(t *testing.T) {
	d := disk{failAt: 400}
	w := capture.NewWriter(&d, capture.Header{})
	for i := range uint64(5) {
		w.Statement(statement(1, i+1))
		w.Flush()
	}
	size := d.size()
	w.Statement(statement(1, 6))
	err := w.Close(capture.Ledger{})
	if !errors.Is(err, errFull) || !strings.Contains(err.Error(), "offset ") {
		t.Errorf("Close() = %v, want %v with an offset", err, errFull)
	}
	if d.size() != size {
		t.Errorf("%d bytes were written after the error, want 0", d.size()-size)
	}
	if records, r := read(d.bytes()); len(records) == 0 || len(records) >= 5 || r.Err() == nil {
		t.Errorf("%d records, %v; want some of 5, then an error", len(records), r.Err())
	}
}

func TestWriterAfterClose(t *testing.T) {
	var buf bytes.Buffer
	w := capture.NewWriter(&buf, capture.Header{})
	if err := w.Close(capture.Ledger{}); err != nil {
		t.Fatal(err)
	}
	size := buf.Len()
	w.Statement(statement(1, 1))
	if err := w.Close(capture.Ledger{}); err == nil || buf.Len() != size {
		t.Errorf("Close() again = %v, with %d bytes more; want an error and none", err, buf.Len()-size)
	}
}

func TestReaderOfPipes(t *testing.T) {
	data, want := mixed(t)
	for name, in := range map[string]io.Reader{
		"byte by byte":  iotest.OneByteReader(bytes.NewReader(data)),
		"data with EOF": iotest.DataErrReader(bytes.NewReader(data)),
	} {
		r := capture.NewReader(in, "pipe")
		n := 0
		for r.Next() {
			n++
		}
		if r.Err() != nil || n != len(want) {
			t.Errorf("%s: %d records, %v; want %d, nil", name, n, r.Err(), len(want))
		}
	}
}

// TestReaderPassesErrorsOn: a failing disk is not an end of file.
func TestReaderPassesErrorsOn(t *testing.T) {
	data, _ := mixed(t)
	broken := errors.New("input/output error")
	for n := range len(data) + 1 {
		r := capture.NewReader(io.MultiReader(bytes.NewReader(data[:n]), iotest.ErrReader(broken)), "bad.rdt")
		for r.Next() {
		}
		if n >= 8 && !errors.Is(r.Err(), broken) || errors.Is(r.Err(), io.ErrUnexpectedEOF) {
			t.Fatalf("failing at %d: Err() = %v, want %v", n, r.Err(), broken)
		}
	}
}

// TestNothingIsAllocatedPerRecord: the few allocations a block are the compressor's, whose pools leak under -race.
func TestNothingIsAllocatedPerRecord(t *testing.T) {
	statements := newOLTP(8, false).statements(1000)
	var buf bytes.Buffer
	w := capture.NewWriter(&buf, capture.Header{})
	pass := func() {
		for _, s := range statements {
			w.Statement(s)
		}
		w.Flush()
	}
	for range 10 {
		pass()
	}
	buf.Grow(4 << 20)
	if n := testing.AllocsPerRun(20, pass); n > 50 {
		t.Errorf("writing 1000 statements allocates %v times, want no more than a few", n)
	}
	r := capture.NewReader(&buf, "test.rdt")
	readPass := func() {
		for range statements {
			if !r.Next() {
				t.Fatal(r.Err())
			}
		}
	}
	readPass()
	readPass()
	if n := testing.AllocsPerRun(20, readPass); n > 50 {
		t.Errorf("reading 1000 statements allocates %v times, want no more than a few", n)
	}
}
