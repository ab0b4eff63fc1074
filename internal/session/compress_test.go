package session_test

import (
	"bytes"
	"compress/zlib"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"

	"redrive/internal/session"
	"redrive/internal/wire"
)

// A framing puts the bytes of one direction into frames.
type framing struct {
	name     string
	compress func([]byte) []byte // nil: stored
	size     int                 // bytes of content a frame
}

func (z *framing) frames(content []byte) (out []byte) {
	for seq := byte(9); len(content) > 0; seq++ { // not the packets' sequence ids
		part := content[:min(z.size, len(content))]
		content = content[len(part):]
		payload, inflated := part, 0
		if z.compress != nil {
			payload, inflated = z.compress(part), len(part)
		}
		n := len(payload)
		out = append(out, byte(n), byte(n>>8), byte(n>>16), seq, byte(inflated), byte(inflated>>8), byte(inflated>>16))
		out = append(out, payload...)
	}
	return out
}

func zlibbed(content []byte) []byte {
	var b bytes.Buffer
	w := zlib.NewWriter(&b)
	w.Write(content)
	w.Close()
	return b.Bytes()
}

var zstdEncoder, _ = zstd.NewWriter(nil)

func zstandard(content []byte) []byte { return zstdEncoder.EncodeAll(content, nil) }

// Frames and packets begin and end anywhere in one another, a CHANGE_USER runs inside, and sequence ids say nothing.
// Of zstd there is no server at hand that speaks it (MariaDB 10.11 does not), hence its frames are made here.
func TestCompressed(t *testing.T) {
	for algorithm, capability := range map[string]wire.Capabilities{"zlib": wire.Compress, "zstd": wire.Zstd} {
		compress := zlibbed
		if algorithm == "zstd" {
			compress = zstandard
		}
		for _, z := range []framing{
			{"stored", nil, 1 << 20},
			{"stored, 3 bytes a frame", nil, 3},
			{"compressed", compress, 1 << 20},
			{"compressed, 5 bytes a frame", compress, 5},
		} {
			caps := baseCaps | capability
			chunks := login(caps)
			for _, c := range []chunk{
				command(wire.ComQuery, "SELECT c FROM t"), fromServer(resultSet(77, caps, 2, []byte("\x01a"), []byte("\x01b"))),
				command(wire.ComPing, ""), server(0, ok...),
				command(wire.ComQuery, "LOAD DATA LOCAL"), server(1, []byte("\xfbx")...), client(0, []byte("\x03data")...), client(0), server(0, okPayload(2, 2)...),
				command(wire.ComChangeUser, "other\x00\x04hushdb2\x00\x2d\x00"), server(1, []byte("\xfemysql_native_password\x00abcdefghijklmnopqrst\x00")...), client(2, []byte("\x03hush")...), server(3, ok...),
				command(wire.ComQuery, "INSERT "+strings.Repeat("x", 300)), server(1, okPayload(1, 2)...),
			} {
				chunks = append(chunks, chunk{c.fromClient, z.frames(c.data)})
			}
			want := []string{
				`1 QUERY "SELECT c FROM t" sets=1 rows=2`, `2 PING ""`, `3 QUERY "LOAD DATA LOCAL" affected=2 infile`, `4 CHANGE_USER "other"`,
				`5 QUERY "INSERT ` + strings.Repeat("x", 300) + `" affected=1`,
			}
			for _, size := range []int{1, 10, 1 << 20} {
				l := follow(t, size, 0, chunks...)
				if strings.Join(l.lines, "\n") != strings.Join(want, "\n") || l.lost != "" {
					t.Errorf("%s, %s, %d bytes a read: got %q, lost %q", algorithm, z.name, size, l.lines, l.lost)
				}
			}
		}
	}
}

// A packet has been seen when its frame is whole.
func TestTimesOfFrames(t *testing.T) {
	l := &listener{}
	f := session.Follower{Handler: l}
	for _, c := range login(baseCaps | wire.Compress) {
		if c.fromClient {
			f.FromClient(c.data, 1, 1)
		} else {
			f.FromServer(c.data, 1)
		}
	}
	z := framing{compress: zlibbed, size: 1 << 20}
	question := z.frames(append(command(wire.ComQuery, "DO 1").data, command(wire.ComQuery, "DO 2").data...))
	answer := z.frames(append(packet(1, ok), packet(1, ok)...))
	f.FromClient(question[:10], 10, 11)
	if f.Quiet() || len(l.lines) != 0 {
		t.Errorf("within a frame: Quiet() = %t, %d commands done", f.Quiet(), len(l.lines))
	}
	f.FromClient(question[10:], 20, 21)
	f.FromServer(answer[:10], 30)
	f.FromServer(answer[10:], 40)
	if len(l.statements) != 2 {
		t.Fatalf("got %q, want 2 commands", l.lines)
	}
	for _, s := range l.statements {
		if s.Received != 20 || s.Complete != 20 || s.Sent != 21 || s.First != 40 || s.Done != 40 {
			t.Errorf("%s: received %d, complete %d, sent %d, first %d, done %d, want 20, 20, 21, 40, 40", s.Text, s.Received, s.Complete, s.Sent, s.First, s.Done)
		}
	}
}

func TestBrokenFrames(t *testing.T) {
	chunks := append(login(baseCaps|wire.Compress), chunk{true, []byte("\x05\x00\x00\x00\x10\x00\x00hello")})
	l := follow(t, 1<<20, 0, chunks...)
	if want := "compressed frame of 5 bytes: zlib: invalid header"; l.lost != want {
		t.Errorf("lost %q, want %q", l.lost, want)
	}
}
