package capture_test

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"strings"
	"testing"
	"time"

	"redrive/capture"
)

func TestVerify(t *testing.T) {
	at := func(seconds float64) time.Duration { return time.Duration(seconds * float64(time.Second)) }
	stmt := func(session, number uint64, received, done float64) *capture.Statement {
		return &capture.Statement{Session: session, Number: number, Received: at(received), Done: at(done)}
	}
	for _, test := range []struct {
		name   string
		write  func(w *capture.Writer)
		ledger capture.Ledger
		want   string // of the first problem; "" for none
	}{
		{"nothing", func(*capture.Writer) {}, capture.Ledger{}, ""},
		{"in order", func(w *capture.Writer) {
			w.Statement(stmt(1, 1, 1, 2))
			w.Flush()
			w.Statement(stmt(2, 1, 1.5, 3))
		}, capture.Ledger{Forwarded: 2, Stored: 2}, ""},
		{"a moment out of order", func(w *capture.Writer) {
			w.Statement(stmt(1, 1, 1, 2))
			w.Statement(stmt(2, 1, 1, 1.5))
		}, capture.Ledger{Forwarded: 2, Stored: 2}, ""},
		{"out of order", func(w *capture.Writer) {
			w.Statement(stmt(1, 1, 1, 3))
			w.Statement(stmt(2, 1, 1, 1.5))
		}, capture.Ledger{Forwarded: 2, Stored: 2}, "a record done at 1.5s comes after one done at 3s"},
		{"begin and end", func(w *capture.Writer) {
			w.Begin(stmt(1, 1, 1, 0))
			w.Flush()
			w.Statement(stmt(1, 1, 1, 9))
		}, capture.Ledger{Forwarded: 1, Stored: 1}, ""},
		{"a begin that the session's end ends", func(w *capture.Writer) {
			w.Begin(stmt(1, 1, 1, 0))
			w.SessionEnd(&capture.SessionEnd{Session: 1, At: at(2)})
		}, capture.Ledger{}, ""},
		{"a begin that is unfinished", func(w *capture.Writer) {
			w.Begin(stmt(1, 1, 1, 0))
		}, capture.Ledger{Forwarded: 1, Unfinished: 1}, ""},
		{"a begin without an end", func(w *capture.Writer) {
			w.Begin(stmt(1, 1, 1, 0))
		}, capture.Ledger{}, "1 begins without an end, but 0 unfinished and 0 shed"},
		{"a begin twice", func(w *capture.Writer) {
			w.Begin(stmt(1, 1, 1, 0))
			w.Begin(stmt(1, 1, 1, 0))
		}, capture.Ledger{Forwarded: 1, Unfinished: 1}, "statement 1.1 begins twice"},
		{"a broken promise", func(w *capture.Writer) {
			w.Statement(stmt(1, 1, 5, 6))
			w.Horizon(at(6))
			w.Flush()
			w.Statement(stmt(2, 1, 5.5, 6.5))
		}, capture.Ledger{Forwarded: 2, Stored: 2}, "a statement stands at 5.5s in start order, an earlier block promised none before 6s"},
		{"a promise and the end of a begun statement", func(w *capture.Writer) {
			w.Begin(stmt(1, 1, 1, 0))
			w.Horizon(at(6))
			w.Flush()
			w.Statement(stmt(1, 1, 1, 6.5))
		}, capture.Ledger{Forwarded: 1, Stored: 1}, ""},
		{"a gap", func(w *capture.Writer) {
			w.Gap(&capture.Gap{From: 1, To: 2, Statements: 4, Reason: "r"})
		}, capture.Ledger{Forwarded: 4, Shed: 4}, ""},
		{"a gap too few", func(w *capture.Writer) {
			w.Gap(&capture.Gap{From: 1, To: 2, Statements: 3, Reason: "r"})
		}, capture.Ledger{Forwarded: 4, Shed: 4}, "4 shed, the gap records tell of 3"},
		{"a ledger that does not add up", func(w *capture.Writer) {
			w.Statement(stmt(1, 1, 1, 2))
		}, capture.Ledger{Forwarded: 2, Stored: 1}, "stored 1 + shed 0 + unfinished 0 is not forwarded 2"},
		{"a ledger of other statements", func(w *capture.Writer) {}, capture.Ledger{Forwarded: 1, Stored: 1}, "1 stored, the file has 0"},
	} {
		var buf bytes.Buffer
		w := capture.NewWriter(&buf, capture.Header{})
		test.write(w)
		if err := w.Close(test.ledger); err != nil {
			t.Fatal(err)
		}
		v := capture.Verify(capture.NewReader(&buf, "test.rdt"))
		switch {
		case v.Err != nil || !v.Clean:
			t.Errorf("%s: %v, clean %v", test.name, v.Err, v.Clean)
		case test.want == "" && !v.OK():
			t.Errorf("%s: %q, want no problem", test.name, v.Problems)
		case test.want != "" && (len(v.Problems) == 0 || !strings.Contains(v.Problems[0], test.want)):
			t.Errorf("%s: %q, want %q", test.name, v.Problems, test.want)
		}
	}
}

// TestVerifyReadsBlockHeaders finds a block whose header contradicts its records, checksums being right.
func TestVerifyReadsBlockHeaders(t *testing.T) {
	var buf bytes.Buffer
	w := capture.NewWriter(&buf, capture.Header{})
	start := buf.Len()
	w.Statement(statement(1, 1))
	w.Flush()
	data := buf.Bytes()
	binary.LittleEndian.PutUint64(data[start+20:], 7) // earliest
	table := crc32.MakeTable(crc32.Castagnoli)
	sum := crc32.Update(crc32.Checksum(data[start:start+52], table), table, data[start+56:])
	binary.LittleEndian.PutUint32(data[start+52:], sum)
	v := capture.Verify(capture.NewReader(bytes.NewReader(data), "test.rdt"))
	if len(v.Problems) != 1 || !strings.Contains(v.Problems[0], "the block's header says earliest 7, ") {
		t.Errorf("problems %q, want one about earliest 7", v.Problems)
	}
}

// TestVerifyTellsTheFirstProblems bounds what a thoroughly wrong file can make it say.
func TestVerifyTellsTheFirstProblems(t *testing.T) {
	var buf bytes.Buffer
	w := capture.NewWriter(&buf, capture.Header{})
	for range 100 {
		w.Begin(statement(1, 1))
	}
	w.Close(capture.Ledger{Forwarded: 1, Unfinished: 1})
	if v := capture.Verify(capture.NewReader(&buf, "test.rdt")); len(v.Problems) != 20 || v.Further != 79 {
		t.Errorf("%d problems and %d further, want 20 and 79", len(v.Problems), v.Further)
	}
}
