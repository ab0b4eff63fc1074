package wire_test

import (
	"bytes"
	"fmt"
	"reflect"
	"testing"

	"redrive/internal/wire"
)

// mariaDBGreeting is what MariaDB 10.11 sends without TLS configured.
const mariaDBGreeting = "\x0a5.5.5-10.11.19-MariaDB\x00\x2a\x00\x00\x00" + "abcdefgh\x00" + "\xfe\xf7\x2d\x02\x00\xff\x81\x15" +
	"\x00\x00\x00\x00\x00\x00\x1d\x00\x00\x00" + "ijklmnopqrst\x00" + "mysql_native_password\x00"

func TestParseGreeting(t *testing.T) {
	g, err := wire.ParseGreeting([]byte(mariaDBGreeting))
	if err != nil {
		t.Fatal(err)
	}
	want := wire.Greeting{
		ServerVersion: "5.5.5-10.11.19-MariaDB", ConnectionID: 42, Nonce: []byte("abcdefghijklmnopqrst"),
		Capabilities: 0x1d_81fff7fe, Collation: 45, Status: 2, Plugin: "mysql_native_password",
	}
	if !reflect.DeepEqual(g, want) {
		t.Errorf("got  %+v\nwant %+v", g, want)
	}
	for cut := range len(mariaDBGreeting) {
		wire.ParseGreeting([]byte(mariaDBGreeting[:cut])) // must not panic
	}
	if _, err := wire.ParseGreeting([]byte("\x09old")); err == nil {
		t.Error("a greeting of protocol 9 was read")
	}
}

func TestChangeGreetingCapabilities(t *testing.T) {
	packet := []byte(mariaDBGreeting)
	clear := wire.SSL | wire.Compress | wire.SessionTrack
	if !wire.ChangeGreetingCapabilities(packet, clear, 0) {
		t.Fatal("not taken for a greeting")
	}
	before, _ := wire.ParseGreeting([]byte(mariaDBGreeting))
	after, err := wire.ParseGreeting(packet)
	if err != nil {
		t.Fatal(err)
	}
	if want := before.Capabilities &^ clear; after.Capabilities != want {
		t.Errorf("capabilities %x, want %x", after.Capabilities, want)
	}
	before.Capabilities, after.Capabilities = 0, 0
	if !reflect.DeepEqual(before, after) {
		t.Errorf("more than the capabilities changed: %+v, was %+v", after, before)
	}
	for cut := range len(mariaDBGreeting) {
		wire.ChangeGreetingCapabilities([]byte(mariaDBGreeting[:cut]), clear, 0)
	}
	for _, other := range []string{"", "\xff\x10\x04Too many connections"} {
		if b := []byte(other); wire.ChangeGreetingCapabilities(b, clear, 0) || string(b) != other {
			t.Errorf("%q was changed to %q", other, b)
		}
	}
}

func TestHandshakeResponse(t *testing.T) {
	const base = wire.Protocol41
	attributes := []wire.Attribute{{Name: "program_name", Value: "sysbench"}, {Name: "_pid", Value: "7"}}
	for _, caps := range []wire.Capabilities{
		base, base | wire.SecureConnection, base | wire.SecureConnection | wire.LenencAuthData,
		base | wire.ConnectWithDB, base | wire.PluginAuth | wire.SecureConnection | wire.ConnectWithDB,
		base | wire.SecureConnection | wire.ConnectAttrs | wire.PluginAuth | wire.CacheMetadata | wire.Progress,
	} {
		want := wire.HandshakeResponse{Capabilities: caps, MaxPacket: 1 << 24, Collation: 45, User: "root@tenant#cluster", AuthData: []byte("scramble")}
		if caps.Has(wire.ConnectWithDB) {
			want.Schema = "sbtest"
		}
		if caps.Has(wire.PluginAuth) {
			want.Plugin = "client_ed25519"
		}
		if caps.Has(wire.ConnectAttrs) {
			want.Attributes = attributes
		}
		payload := want.Append(nil)
		got, err := wire.ParseHandshakeResponse(payload, 0)
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("caps %x: got %+v, %v, want %+v", caps, got, err, want)
		}
		for cut := range payload { // real clients truncate: what is missing is absent, and nothing panics
			short, err := wire.ParseHandshakeResponse(payload[:cut], 0)
			if cut >= wire.SSLRequestLen && (err != nil || short.Capabilities != caps) {
				t.Errorf("caps %x cut to %d bytes: %v", caps, cut, err)
			}
		}
	}
	if _, err := wire.ParseHandshakeResponse(make([]byte, 40), 0); err == nil {
		t.Error("a response without protocol 4.1 was read")
	}
}

// MariaDB's extended capabilities count only where neither side has the bit that says "MySQL".
func TestNegotiate(t *testing.T) {
	ext := wire.CacheMetadata | wire.Progress
	for _, tt := range []struct{ server, client, want wire.Capabilities }{
		{wire.Protocol41 | ext, wire.Protocol41 | ext, wire.Protocol41 | ext},
		{wire.Protocol41 | ext, wire.Protocol41 | wire.CacheMetadata, wire.Protocol41 | wire.CacheMetadata},
		{wire.Protocol41 | wire.LongPassword, wire.Protocol41 | ext, wire.Protocol41},
		{wire.Protocol41 | ext, wire.Protocol41 | wire.LongPassword | ext, wire.Protocol41},
		{wire.Protocol41, wire.Protocol41 | wire.QueryAttributes, wire.Protocol41},
	} {
		if got := wire.Negotiate(tt.server, tt.client); got != tt.want {
			t.Errorf("Negotiate(%x, %x) = %x, want %x", tt.server, tt.client, got, tt.want)
		}
	}
}

func TestParseError(t *testing.T) {
	for _, tt := range []struct {
		payload string
		want    wire.Error
	}{
		{"\xff\x7a\x04#42S02Table 'x' doesn't exist", wire.Error{Errno: 1146, SQLState: "42S02", Message: "Table 'x' doesn't exist"}},
		{"\xff\x10\x04Too many connections", wire.Error{Errno: 1040, Message: "Too many connections"}},
		{"\xff\x10\x04", wire.Error{Errno: 1040}},
	} {
		if got := *wire.ParseError([]byte(tt.payload)); got != tt.want {
			t.Errorf("ParseError(%q) = %+v, want %+v", tt.payload, got, tt.want)
		}
		if got := wire.AppendError(nil, &tt.want); !bytes.Equal(got, []byte(tt.payload)) {
			t.Errorf("AppendError(%+v) = %q, want %q", tt.want, got, tt.payload)
		}
	}
}

func TestParseOK(t *testing.T) {
	for _, tt := range []struct {
		payload string
		caps    wire.Capabilities
		want    string
	}{
		{"\x00\x05\xfc\x10\x27\x03\x00\x02\x00", wire.Protocol41, "affected 5 id 10000 status 3 warnings 2 track \"\""},
		{"\x00\x00\x00\x02\x40\x00\x00\x00\x04\x01\x02\x01x", wire.Protocol41 | wire.SessionTrack, "affected 0 id 0 status 4002 warnings 0 track \"\\x01\\x02\\x01x\""},
		{"\x00\x00\x00\x02\x40\x00\x00", wire.Protocol41 | wire.SessionTrack, "affected 0 id 0 status 4002 warnings 0 track \"\""}, // announced and missing
	} {
		ok, err := wire.ParseOK([]byte(tt.payload), tt.caps)
		got := fmt.Sprintf("affected %d id %d status %x warnings %d track %q", ok.Affected, ok.LastInsertID, ok.Status, ok.Warnings, ok.Track)
		if err != nil || got != tt.want {
			t.Errorf("ParseOK(%q) = %s, %v, want %s", tt.payload, got, err, tt.want)
		}
	}
	if _, err := wire.ParseOK([]byte("\x00\x05\xfc"), wire.Protocol41); err == nil {
		t.Error("an OK cut short was read")
	}
}

func FuzzLogin(f *testing.F) {
	f.Add([]byte(mariaDBGreeting))
	response := wire.HandshakeResponse{Capabilities: wire.Protocol41 | wire.ConnectAttrs, User: "u", Attributes: []wire.Attribute{{Name: "a", Value: "b"}}}
	f.Add(response.Append(nil))
	f.Fuzz(func(t *testing.T, payload []byte) {
		wire.ParseGreeting(payload)
		if h, err := wire.ParseHandshakeResponse(payload, 0); err == nil && len(h.User)+len(h.Schema)+len(h.Plugin) > len(payload) {
			t.Error("more was read than there is")
		}
		wire.ParseChangeUser(payload)
		wire.ParseError(payload)
		wire.ParseOK(payload, wire.SessionTrack)
		wire.ChangeGreetingCapabilities(payload, wire.SSL, 0)
	})
}
