package proxyproto_test

import (
	"bytes"
	"errors"
	"io"
	"net/netip"
	"strings"
	"testing"

	"redrive/internal/proxyproto"
)

const signature = "\r\n\r\n\x00\r\nQUIT\n"

func header(source, destination string) proxyproto.Header {
	return proxyproto.Header{Source: netip.MustParseAddrPort(source), Destination: netip.MustParseAddrPort(destination)}
}

func TestRead(t *testing.T) {
	v4, v6 := header("192.0.2.7:40000", "198.51.100.1:3306"), header("[2001:db8::7]:1", "[2001:db8::1]:65535")
	tests := []struct {
		name, sent string
		want       proxyproto.Header
	}{
		{"v1, IPv4", "PROXY TCP4 192.0.2.7 198.51.100.1 40000 3306\r\n", v4},
		{"v1, IPv6", "PROXY TCP6 2001:db8::7 2001:db8::1 1 65535\r\n", v6},
		{"v1, unknown", "PROXY UNKNOWN\r\n", proxyproto.Header{}},
		{"v1, unknown with addresses", "PROXY UNKNOWN ffff:f... whatever 1 2\r\n", proxyproto.Header{}},
		{"v2, IPv4", signature + "\x21\x11\x00\x0c\xc0\x00\x02\x07\xc6\x33\x64\x01\x9c\x40\x0c\xea", v4},
		{"v2, IPv4 with a fact behind", signature + "\x21\x11\x00\x10\xc0\x00\x02\x07\xc6\x33\x64\x01\x9c\x40\x0c\xea\x04\x00\x01x", v4},
		{"v2, IPv6", signature + "\x21\x21\x00\x24\x20\x01\x0d\xb8" + strings.Repeat("\x00", 11) + "\x07\x20\x01\x0d\xb8" + strings.Repeat("\x00", 11) + "\x01\x00\x01\xff\xff", v6},
		{"v2, local", signature + "\x20\x00\x00\x00", proxyproto.Header{}},
		{"v2, local with addresses", signature + "\x20\x11\x00\x0c\xc0\x00\x02\x07\xc6\x33\x64\x01\x9c\x40\x0c\xea", proxyproto.Header{}},
		{"v2, Unix socket", signature + "\x21\x31\x00\x02xx", proxyproto.Header{}},
	}
	for _, tt := range tests {
		r := strings.NewReader(tt.sent + "behind")
		got, err := proxyproto.Read(r)
		if err != nil || got != tt.want {
			t.Errorf("%s: got %v, %v, want %v", tt.name, got, err, tt.want)
		}
		if rest, _ := io.ReadAll(r); string(rest) != "behind" {
			t.Errorf("%s: %q left, want what stands behind the header", tt.name, rest)
		}
		for cut := 1; cut < len(tt.sent); cut++ {
			if _, err := proxyproto.Read(strings.NewReader(tt.sent[:cut])); err == nil || err == io.EOF {
				t.Errorf("%s, cut after %d bytes: error %v, want one that says so", tt.name, cut, err)
			}
		}
	}
	if _, err := proxyproto.Read(strings.NewReader("")); !errors.Is(err, io.EOF) {
		t.Errorf("nothing at all: %v, want io.EOF", err)
	}
}

func TestMalformed(t *testing.T) {
	for _, sent := range []string{
		"GET / HTTP/1.1\r\n", "PROXY TCP4\r\n   ", "PROXY TCP5 192.0.2.7 198.51.100.1 1 2\r\n",
		"PROXY TCP4 192.0.2.7 198.51.100.1 1 65536\r\n", "PROXY TCP4 192.0.2.7 198.51.100.1 +1 2\r\n",
		"PROXY TCP4 2001:db8::7 2001:db8::1 1 2\r\n", "PROXY TCP6 192.0.2.7 198.51.100.1 1 2\r\n",
		"PROXY TCP6 fe80::1%eth0 fe80::2 1 2\r\n", "PROXY TCP4 192.0.2.777 198.51.100.1 1 2\r\n",
		"PROXY TCP4 192.0.2.7  198.51.100.1 1 2\r\n", "PROXY UNKNOWN" + strings.Repeat(" ", 100) + "\r\n",
		signature + "\x11\x11\x00\x00", signature + "\x22\x11\x00\x00", signature + "\x21\x11\x00\x0b" + strings.Repeat("x", 11),
	} {
		if h, err := proxyproto.Read(strings.NewReader(sent)); err == nil {
			t.Errorf("%q was read as %v", sent, h)
		}
	}
}

func TestAppend(t *testing.T) {
	for _, tt := range []struct {
		header, read proxyproto.Header
		v1           string
	}{
		{header("192.0.2.7:40000", "198.51.100.1:3306"), header("192.0.2.7:40000", "198.51.100.1:3306"), "PROXY TCP4 192.0.2.7 198.51.100.1 40000 3306\r\n"},
		{header("[::ffff:192.0.2.7]:1", "198.51.100.1:2"), header("192.0.2.7:1", "198.51.100.1:2"), "PROXY TCP4 192.0.2.7 198.51.100.1 1 2\r\n"},
		{header("[::1]:1", "[::1]:2"), header("[::1]:1", "[::1]:2"), "PROXY TCP6 ::1 ::1 1 2\r\n"},
		{header("192.0.2.7:1", "[::1]:2"), header("192.0.2.7:1", "[::1]:2"), "PROXY TCP6 ::ffff:192.0.2.7 ::1 1 2\r\n"},
		{proxyproto.Header{}, proxyproto.Header{}, "PROXY UNKNOWN\r\n"},
	} {
		v1 := tt.header.AppendV1(nil)
		if string(v1) != tt.v1 {
			t.Errorf("%v: %q, want %q", tt.header, v1, tt.v1)
		}
		for _, sent := range [][]byte{v1, tt.header.AppendV2(nil)} {
			if got, err := proxyproto.Read(bytes.NewReader(sent)); err != nil || got != tt.read {
				t.Errorf("%q is read as %v, %v, want %v", sent, got, err, tt.read)
			}
		}
	}
}

// Whatever is read can be written and read again, and nothing behind the header is touched.
func FuzzRead(f *testing.F) {
	f.Add([]byte("PROXY TCP4 192.0.2.7 198.51.100.1 40000 3306\r\nrest"))
	f.Add([]byte("PROXY TCP6 ::1 ::1 1 2\r\n"))
	f.Add([]byte("PROXY UNKNOWN\r\n"))
	f.Add([]byte(signature + "\x21\x11\x00\x0c\xc0\x00\x02\x07\xc6\x33\x64\x01\x9c\x40\x0c\xea"))
	f.Add([]byte(signature + "\x20\x00\x00\x00"))
	f.Fuzz(func(t *testing.T, sent []byte) {
		h, err := proxyproto.Read(bytes.NewReader(sent))
		if err != nil {
			return
		}
		for _, again := range [][]byte{h.AppendV1(nil), h.AppendV2(nil)} {
			if got, err := proxyproto.Read(bytes.NewReader(again)); err != nil || got != h {
				t.Errorf("%q is read as %v, but %q, written from that, as %v, %v", sent, h, again, got, err)
			}
		}
	})
}
