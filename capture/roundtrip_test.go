package capture_test

import (
	"bytes"
	"fmt"
	"hash/fnv"
	"math"
	"math/rand"
	"reflect"
	"strings"
	"testing"
	"time"

	"redrive/capture"
	"redrive/internal/identity"
)

// write makes a file of records, a block at every multiple of perBlock.
func write(t testing.TB, records []*capture.Record, perBlock int) []byte {
	t.Helper()
	var buf bytes.Buffer
	w := capture.NewWriter(&buf, capture.Header{Producer: "proxy"})
	for i, rec := range records {
		put(w, rec)
		if (i+1)%perBlock == 0 {
			w.Flush()
		}
	}
	if err := w.Close(capture.Ledger{Forwarded: uint64(len(records))}); err != nil {
		t.Fatalf("Close: %v", err)
	}
	return buf.Bytes()
}

func put(w *capture.Writer, rec *capture.Record) {
	switch rec.Kind {
	case capture.KindStatement:
		w.Statement(&rec.Statement)
	case capture.KindBegin:
		w.Begin(&rec.Statement)
	case capture.KindSessionStart:
		w.SessionStart(&rec.Start)
	case capture.KindSessionEnd:
		w.SessionEnd(&rec.End)
	case capture.KindGap:
		w.Gap(&rec.Gap)
	}
}

// read gives all records that can be read of a file, and the error at its end.
func read(data []byte) ([]*capture.Record, *capture.Reader) {
	r := capture.NewReader(bytes.NewReader(data), "test.rdt")
	var records []*capture.Record
	for r.Next() {
		records = append(records, r.Record().Clone())
	}
	return records, r
}

// A filler sets every field of a record, found by reflection, so that none is forgotten.
type filler func(kind reflect.Kind, bits int) uint64

func (f filler) fill(v reflect.Value) {
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			f.fill(v.Field(i))
		}
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), int(f(reflect.Slice, 3)), 8))
		f.elements(v)
	case reflect.Array:
		f.elements(v)
	case reflect.String:
		v.SetString(strings.Repeat("x7", int(f(reflect.String, 2))))
	case reflect.Bool:
		v.SetBool(f(reflect.Bool, 1)&1 == 1)
	case reflect.Int64: // times, which are never negative
		v.SetInt(int64(f(reflect.Int64, 63) & math.MaxInt64))
	default:
		v.SetUint(f(v.Kind(), v.Type().Bits()))
	}
	if v.CanInterface() && v.Kind() == reflect.Slice && v.Len() == 0 {
		v.SetZero()
	}
}

func (f filler) elements(v reflect.Value) {
	for i := range v.Len() {
		f.fill(v.Index(i))
	}
}

// fillers are the extremes: nothing, everything full, the top bit alone, and a random mixture.
func fillers(rng *rand.Rand) map[string]filler {
	return map[string]filler{
		"zero": func(reflect.Kind, int) uint64 { return 0 },
		"full": func(_ reflect.Kind, bits int) uint64 { return math.MaxUint64 >> (64 - bits) },
		"top":  func(_ reflect.Kind, bits int) uint64 { return 1 << (bits - 1) },
		"random": func(_ reflect.Kind, bits int) uint64 {
			return rng.Uint64() >> rng.Intn(64) & (math.MaxUint64 >> (64 - bits)) * uint64(rng.Intn(2))
		},
	}
}

// kinds are the parts of a record, by kind.
func part(rec *capture.Record) any {
	switch rec.Kind {
	case capture.KindStatement, capture.KindBegin:
		return &rec.Statement
	case capture.KindSessionStart:
		return &rec.Start
	case capture.KindSessionEnd:
		return &rec.End
	}
	return &rec.Gap
}

var allKinds = []capture.Kind{
	capture.KindStatement, capture.KindBegin, capture.KindSessionStart, capture.KindSessionEnd, capture.KindGap,
}

// newRecord is a record of a kind, filled by f, with a number of its own.
func newRecord(kind capture.Kind, f filler, number int) *capture.Record {
	rec := &capture.Record{Kind: kind}
	f.fill(reflect.ValueOf(part(rec)).Elem())
	if kind == capture.KindStatement || kind == capture.KindBegin {
		rec.Statement.Flags &^= capture.Begun // the writer's
		rec.Statement.Number -= uint64(number)
	}
	return rec
}

func TestRoundTripOfEveryField(t *testing.T) {
	for name, f := range fillers(rand.New(rand.NewSource(1))) {
		var records []*capture.Record
		for i := range 200 {
			records = append(records, newRecord(allKinds[i%len(allKinds)], f, i))
		}
		for _, perBlock := range []int{1, 7, 1000} {
			got, r := read(write(t, records, perBlock))
			if r.Err() != nil {
				t.Fatalf("%s: Err() = %v, want nil", name, r.Err())
			}
			compare(t, fmt.Sprintf("%s, %d in a block", name, perBlock), got, records)
		}
	}
}

func compare(t *testing.T, name string, got, want []*capture.Record) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%s: %d records, want %d", name, len(got), len(want))
	}
	for i := range want {
		if !reflect.DeepEqual(got[i], want[i]) {
			t.Fatalf("%s: record %d =\n%+v, want\n%+v", name, i, part(got[i]), part(want[i]))
		}
	}
}

// TestRoundTripOfEachFieldAlone tells a field that is stored in another's place.
func TestRoundTripOfEachFieldAlone(t *testing.T) {
	count := 0
	for _, kind := range allKinds {
		leaves := 0
		filler(func(reflect.Kind, int) uint64 { leaves++; return 0 }).fill(reflect.ValueOf(part(&capture.Record{Kind: kind})).Elem())
		for leaf := range leaves {
			at := 0
			rec := newRecord(kind, func(_ reflect.Kind, bits int) uint64 {
				at++
				if at-1 == leaf {
					return math.MaxUint64 >> (64 - bits)
				}
				return 0
			}, 0)
			got, r := read(write(t, []*capture.Record{rec}, 1))
			if r.Err() != nil {
				t.Fatalf("field %d: Err() = %v, want nil", leaf, r.Err())
			}
			compare(t, fmt.Sprintf("field %d of kind %d", leaf, kind), got, []*capture.Record{rec})
			count++
		}
	}
	if count < 60 {
		t.Errorf("%d fields were tried, want all of them, at least 60", count)
	}
}

func TestTextsRoundTrip(t *testing.T) {
	texts := []string{
		"", "0", "00", "7", "SELECT 1", "1SELECT", "a1b22c333d", "0123456789", "no digits", strings.Repeat("9", 1001),
		"UPDATE sbtest1 SET c='68487932199-96439406143' WHERE id=50123", "\x00\xff1\x80", "////////", ":::::::::::::::9", "abcdefgh0abcdefgh9", "/0:9/\xb0\xb9 \x80\x8a", "SELECT '٣'", "a0", "a00", "a10",
		strings.Repeat("10,", 64<<10), strings.Repeat("7", 64<<10-1), strings.Repeat("0", 64<<10),
	}
	var records []*capture.Record
	for i := range 3 * len(texts) {
		rec := &capture.Record{Kind: capture.KindStatement}
		rec.Statement.Session, rec.Statement.Number = 1, uint64(i)
		rec.Statement.Text = []byte(texts[i%len(texts)])
		rec.Statement.Outcome.State.GTIDs = []byte(texts[(i+5)%len(texts)])
		records = append(records, rec)
	}
	got, r := read(write(t, records, 1000))
	if r.Err() != nil || len(got) != len(records) {
		t.Fatalf("%d records, %v; want %d, nil", len(got), r.Err(), len(records))
	}
	for i, rec := range got {
		want := records[i].Statement
		if !bytes.Equal(rec.Statement.Text, want.Text) || !bytes.Equal(rec.Statement.Outcome.State.GTIDs, want.Outcome.State.GTIDs) {
			t.Errorf("text %q, GTIDs %q; want %q, %q", rec.Statement.Text, rec.Statement.Outcome.State.GTIDs, want.Text, want.Outcome.State.GTIDs)
		}
	}
}

func TestSysbenchRoundTrip(t *testing.T) {
	for _, prepared := range []bool{false, true} {
		statements := newOLTP(8, prepared).statements(20_000)
		data := file(statements)
		got, r := read(data)
		if r.Err() != nil || len(got) != len(statements) {
			t.Fatalf("%d records, %v; want %d, nil", len(got), r.Err(), len(statements))
		}
		for i, rec := range got {
			if !reflect.DeepEqual(&rec.Statement, statements[i]) {
				t.Fatalf("statement %d = %+v, want %+v", i, rec.Statement, statements[i])
			}
		}
		perStatement := float64(len(data)) / float64(len(statements))
		if limit := 20.0; perStatement > limit {
			t.Errorf("prepared=%v: %.1f bytes a statement, want at most %v", prepared, perStatement, limit)
		}
	}
}

func TestHeaderRoundTrip(t *testing.T) {
	want := capture.Header{
		Producer: "proxy", Product: "redrive 1", Host: "h", Start: time.Unix(1_700_000_000, 123_456_789).UTC(), Zone: "UTC", Clock: "monotonic",
		Backend: "db:3306", Resolved: []string{"192.0.2.1:3306"}, Server: &identity.Server{Version: "10.11"},
		Settings: map[string]string{"listen": ":3307"}, Source: "a.rdt",
	}
	var buf bytes.Buffer
	w := capture.NewWriter(&buf, want)
	if err := w.Close(capture.Ledger{Forwarded: 3, Shed: 3, Opaque: 1}); err != nil {
		t.Fatal(err)
	}
	r := capture.NewReader(&buf, "h.rdt")
	got, err := r.Header()
	if err != nil || !reflect.DeepEqual(*got, want) {
		t.Errorf("Header() = %+v, %v; want %+v", got, err, want)
	}
	if r.Next() || r.Err() != nil {
		t.Errorf("Next() of an empty capture: %v, want a clean end", r.Err())
	}
	if l, ok := r.Ledger(); !ok || l != (capture.Ledger{Forwarded: 3, Shed: 3, Opaque: 1}) {
		t.Errorf("Ledger() = %+v, %v", l, ok)
	}
}

// TestLargeStatements: larger than a block is stored whole, what might not fit one at all as a prefix, with length and
// hash of the whole.
func TestLargeStatements(t *testing.T) {
	const limit = 4 << 20
	large := capture.Statement{Session: 1, Number: 1, Text: bytes.Repeat([]byte("a1"), limit/2)}
	huge := capture.Statement{Session: 1, Number: 2, Text: append(large.Text, 'x'), Params: capture.Params{Values: []byte{1}}}
	var buf bytes.Buffer
	w := capture.NewWriter(&buf, capture.Header{})
	w.SetLimit(limit)
	w.Statement(&large)
	w.Statement(&huge)
	if err := w.Close(capture.Ledger{}); err != nil {
		t.Fatal(err)
	}
	got, r := read(buf.Bytes())
	if r.Err() != nil || len(got) != 2 {
		t.Fatalf("%d records, %v; want 2, nil", len(got), r.Err())
	}
	if s := &got[0].Statement; !bytes.Equal(s.Text, large.Text) || s.Flags != 0 {
		t.Errorf("a text of %d bytes came back as %d, with flags %b", len(large.Text), len(s.Text), s.Flags)
	}
	hash := fnv.New64a()
	hash.Write(huge.Text)
	s := &got[1].Statement
	if !s.Flags.Has(capture.Truncated) || s.TextLen != limit+1 || s.TextHash != hash.Sum64() || !bytes.Equal(s.Text, huge.Text[:1<<20]) || s.Params.Values != nil {
		t.Errorf("flags %b, length %d, hash %x, %d bytes kept; want Truncated, %d, %x, %d", s.Flags, s.TextLen, s.TextHash, len(s.Text), limit+1, hash.Sum64(), 1<<20)
	}
}
