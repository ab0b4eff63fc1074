package wire_test

import (
	"testing"

	"redrive/internal/wire"
)

// What AppendQuery writes, QueryText reads.
func TestAppendQuery(t *testing.T) {
	attributes := append([]byte{1, 1, 0, 1, 0xFD, 0, 4}, "name\x05value"...) // one attribute: VAR_STRING
	tests := []struct {
		name           string
		caps           wire.Capabilities
		given, want    []byte
		payloadPrefix  string
		lengthWithText int
	}{
		{"without the capability", 0, nil, nil, "\x03SELECT 1", 9},
		{"attributes without a place", 0, attributes, nil, "\x03SELECT 1", 9},
		{"no attributes", wire.QueryAttributes, nil, nil, "\x03\x00\x01SELECT 1", 11},
		{"one attribute", wire.QueryAttributes, attributes, attributes, "\x03" + string(attributes), 9 + len(attributes)},
	}
	for _, test := range tests {
		payload := wire.AppendQuery(nil, []byte("SELECT 1"), test.given, test.caps)
		if len(payload) != test.lengthWithText || string(payload[:len(test.payloadPrefix)]) != test.payloadPrefix {
			t.Errorf("%s: payload %q", test.name, payload)
		}
		text, got, err := wire.QueryText(payload, test.caps)
		if err != nil || string(text) != "SELECT 1" || string(got) != string(test.want) {
			t.Errorf("%s: read back as %q with %q, %v", test.name, text, got, err)
		}
	}
}

func TestReplyErr(t *testing.T) {
	tests := []struct {
		payload string
		want    *wire.Error
	}{
		{"\x00\x00\x00\x02\x00\x00\x00", nil},
		{"\xff\x7a\x04#42S02no such table", &wire.Error{Errno: 1146, SQLState: "42S02", Message: "no such table"}},
		{"\xff\x10\x04too many", &wire.Error{Errno: 1040, Message: "too many"}},
	}
	var r wire.Reply
	for _, test := range tests {
		r.Begin(wire.ComQuery, wire.Protocol41, false)
		piece := wire.Piece{Data: []byte(test.payload), Seq: 1, Length: len(test.payload), Head: true, Tail: true}
		if done, err := r.Feed(piece); !done || err != nil {
			t.Fatalf("%q: done %v, %v", test.payload, done, err)
		}
		got := r.Err()
		if (got == nil) != (test.want == nil) || got != nil && *got != *test.want {
			t.Errorf("%q: Err() = %v, want %v", test.payload, got, test.want)
		}
	}
}
