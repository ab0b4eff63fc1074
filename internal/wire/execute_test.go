package wire_test

import (
	"fmt"
	"strings"
	"testing"

	"redrive/internal/wire"
)

// texts decodes parameters into SQL text.
func texts(t *testing.T, nulls, types, values []byte) string {
	t.Helper()
	params, err := wire.DecodeParams(nulls, types, values, nil)
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, p := range params {
		all = append(all, string(p.AppendText(nil)))
	}
	return strings.Join(all, ", ")
}

func TestParameterValues(t *testing.T) {
	for _, tt := range []struct {
		name  string
		types string // type and flags of one parameter
		value string
		want  string
	}{
		{"tiny", "\x01\x00", "\xff", "-1"},
		{"unsigned tiny", "\x01\x80", "\xff", "255"},
		{"short", "\x02\x00", "\x00\x80", "-32768"},
		{"year", "\x0d\x00", "\xe8\x07", "2024"},
		{"long", "\x03\x00", "\xff\xff\xff\x7f", "2147483647"},
		{"longlong", "\x08\x00", "\xff\xff\xff\xff\xff\xff\xff\xff", "-1"},
		{"unsigned longlong", "\x08\x80", "\xff\xff\xff\xff\xff\xff\xff\xff", "18446744073709551615"},
		{"float", "\x04\x00", "\x00\x00\xc0\x3f", "1.5"},
		{"double", "\x05\x00", "\x00\x00\x00\x00\x00\x00\x04\xc0", "-2.5"},
		{"decimal", "\xf6\x00", "\x0512.50", "12.50"},
		{"null by type", "\x06\x00", "", "NULL"},
		{"date", "\x0a\x00", "\x04\xe8\x07\x02\x1d", "'2024-02-29'"},
		{"zero date", "\x0a\x00", "\x00", "'0000-00-00'"},
		{"datetime", "\x0c\x00", "\x07\xe8\x07\x02\x1d\x0d\x0e\x0f", "'2024-02-29 13:14:15'"},
		{"datetime with microseconds", "\x0c\x00", "\x0b\xe8\x07\x02\x1d\x0d\x0e\x0f\x40\xe2\x01\x00", "'2024-02-29 13:14:15.123456'"},
		{"time", "\x0b\x00", "\x08\x01\x01\x00\x00\x00\x02\x03\x04", "'-26:03:04'"},
		{"time with microseconds", "\x0b\x00", "\x0c\x00\x00\x00\x00\x00\x02\x03\x04\x05\x00\x00\x00", "'02:03:04.000005'"},
		{"string", "\xfd\x00", "\x05it's\n", `'it\'s\n'`},
		{"blob", "\xfc\x00", "\x02\x00\x01", `'\0\x01'`},
		{"length of eight bytes, the upper four garbage", "\xfd\x00", "\xfe\x02\x00\x00\x00\xde\xad\xbe\xefab", "'ab'"},
		{"datetime with a time zone", "\x0c\x00", "\x0d\xe8\x07\x02\x1d\x0d\x0e\x0f\x40\xe2\x01\x00\x3c\x00", "'2024-02-29 13:14:15.123456'"},
		{"vector", "\xf2\x00", "\x04\x00\x00\x40\x41", `'\0\0@A'`},
		{"empty string", "\xfe\x00", "\x00", "''"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			// The value stands between two others, so that its length is seen to be right.
			types := []byte("\x01\x00" + tt.types + "\x01\x00")
			if got, want := texts(t, []byte{0}, types, []byte("\x07"+tt.value+"\x09")), "7, "+tt.want+", 9"; got != want {
				t.Errorf("got %s, want %s", got, want)
			}
			if tt.value == "" {
				return
			}
			for cut := range len(tt.value) {
				if _, err := wire.DecodeParams([]byte{0}, []byte(tt.types), []byte(tt.value[:cut]), nil); err == nil {
					t.Errorf("a value cut to %d bytes was read", cut)
				}
			}
		})
	}
}

func TestParseExecute(t *testing.T) {
	head := "\x17\x03\x00\x00\x00\x00\x01\x00\x00\x00"
	attrHead := "\x17\x03\x00\x00\x00\x08\x01\x00\x00\x00"
	for _, tt := range []struct {
		name    string
		payload string
		n       int
		caps    wire.Capabilities
		want    string // values and number of attributes, or the error
	}{
		{"no parameters", head, 0, 0, "[] 0"},
		{"no parameters and a byte 0", head + "\x00", 0, 0, "[] 0"},
		{"two, one NULL", head + "\x02\x01\x08\x00\xfd\x00" + "\x2a\x00\x00\x00\x00\x00\x00\x00", 2, 0, "[42, NULL] 0"},
		{"query attributes behind the parameters", attrHead + "\x02\x00\x01\x01\x00\x00\xfd\x00\x05trace\x07\x03abc", 1, wire.QueryAttributes, "[7] 1"},
		{"query attributes without parameters", attrHead + "\x01\x00\x01\xfd\x00\x05trace\x03abc", 0, wire.QueryAttributes, "[] 1"},
		{"flag set where it was not negotiated", attrHead + "\x00\x01\x01\x00\x07", 1, 0, "[7] 0"},
		{"too short", head[:7], 0, 0, "execute: packet ends too early"},
		{"types cut off", head + "\x00\x01\x08", 1, 0, "execute: packet ends too early"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			e, err := wire.ParseExecute([]byte(tt.payload), tt.n, tt.caps, nil)
			got := fmt.Sprint(err)
			if err == nil {
				got = fmt.Sprintf("[%s] %d", texts(t, e.Nulls, e.Types, e.Values), e.Attributes)
			}
			if got != tt.want {
				t.Errorf("got %s, want %s", got, tt.want)
			}
		})
	}
}

func TestAppendExecuteComesBack(t *testing.T) {
	nulls, types, values := []byte{0b010}, []byte("\x08\x00\xfd\x00\x01\x80"), []byte("\x01\x00\x00\x00\x00\x00\x00\x00\x02")
	payload := wire.AppendExecute(nil, 77, wire.CursorReadOnly, nulls, types, values)
	e, err := wire.ParseExecute(payload, 3, 0, nil)
	if err != nil || e.ID != 77 || e.Flags != wire.CursorReadOnly {
		t.Fatalf("id %d, flags %d, %v", e.ID, e.Flags, err)
	}
	if got, want := texts(t, e.Nulls, e.Types, e.Values), "1, NULL, 2"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestQueryText(t *testing.T) {
	for _, tt := range []struct {
		payload    string
		caps       wire.Capabilities
		text, attr string
	}{
		{"\x03SELECT 1", 0, "SELECT 1", ""},
		{"\x03\x00\x01SELECT 1", wire.QueryAttributes, "SELECT 1", ""},
		{"\x03\x01\x01\x00\x01\xfd\x00\x05trace\x03abcSELECT 1", wire.QueryAttributes, "SELECT 1", "\x01\x01\x00\x01\xfd\x00\x05trace\x03abc"},
		{"\x03\x02\x01\x01\x01\xfd\x00\x01a\x08\x00\x01b\x05\x00\x00\x00\x00\x00\x00\x00DO 1", wire.QueryAttributes, "DO 1", "\x02\x01\x01\x01\xfd\x00\x01a\x08\x00\x01b\x05\x00\x00\x00\x00\x00\x00\x00"},
	} {
		text, attr, err := wire.QueryText([]byte(tt.payload), tt.caps)
		if err != nil || string(text) != tt.text || string(attr) != tt.attr {
			t.Errorf("QueryText(%q) = %q, %q, %v, want %q, %q", tt.payload, text, attr, err, tt.text, tt.attr)
		}
	}
}

func FuzzExecute(f *testing.F) {
	f.Add([]byte("\x17\x03\x00\x00\x00\x00\x01\x00\x00\x00\x02\x01\x08\x00\xfd\x00\x2a\x00\x00\x00\x00\x00\x00\x00"), 2, true)
	f.Add([]byte("\x03\x01\x01\x00\x01\xfd\x00\x05trace\x03abcSELECT 1"), 1, true)
	f.Fuzz(func(t *testing.T, payload []byte, n int, attributes bool) {
		if len(payload) == 0 || n < 0 || n > 1<<16 {
			return
		}
		caps := wire.Capabilities(0)
		if attributes {
			caps = wire.QueryAttributes
		}
		wire.QueryText(payload, caps)
		e, err := wire.ParseExecute(payload, n, caps, nil)
		if err != nil {
			return
		}
		params, err := wire.DecodeParams(e.Nulls, e.Types, e.Values, nil)
		if err != nil {
			return
		}
		for _, p := range params {
			p.AppendText(nil)
		}
	})
}

// A reply with bytes changed never panics, never allocates by what a length says, and ends at most once.
func FuzzReply(f *testing.F) {
	f.Add(byte(wire.ComQuery), uint64(wire.Protocol41), []byte("\x01\x00\x00\x01\x01\x05\x00\x00\x02\x03def\x00\x05\x00\x00\x03\xfe\x00\x00\x02\x00"))
	f.Add(byte(wire.ComStmtPrepare), uint64(wire.Protocol41|wire.DeprecateEOF), []byte("\x0c\x00\x00\x01\x00\x01\x00\x00\x00\x01\x00\x01\x00\x00\x00\x00"))
	f.Fuzz(func(t *testing.T, command byte, caps uint64, stream []byte) {
		var r wire.Reply
		var s wire.Splitter
		r.Begin(command, wire.Capabilities(caps), false)
		for len(stream) > 0 {
			p, rest, ok := s.Next(stream)
			if !ok {
				return
			}
			stream = rest
			done, err := r.Feed(p)
			if err != nil {
				return
			}
			if done != r.Done() {
				t.Fatalf("Feed says done %t, Done says %t", done, r.Done())
			}
			if done {
				return
			}
		}
	})
}
