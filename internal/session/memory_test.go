package session_test

import (
	"bytes"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"
	"time"

	"redrive/capture"
	"redrive/internal/session"
	"redrive/internal/wire"
)

// show gives a follower chunks, at most size bytes at a time.
func show(f *session.Follower, size int, chunks ...chunk) {
	for _, c := range chunks {
		for data := c.data; len(data) > 0; data = data[min(size, len(data)):] {
			if part := data[:min(size, len(data))]; c.fromClient {
				f.FromClient(part, time.Second, time.Second)
			} else {
				f.FromServer(part, time.Second)
			}
		}
	}
}

// loginWith is a login by a client that tells much about itself.
func loginWith(caps wire.Capabilities, attributes ...wire.Attribute) []chunk {
	chunks := login(caps)
	response := wire.HandshakeResponse{
		Capabilities: caps | wire.ConnectAttrs, User: "sbtest", AuthData: []byte("secret-scramble-1234"), Schema: "sbtest",
		Plugin: "mysql_native_password", Attributes: attributes,
	}
	chunks[1] = client(1, response.Append(nil)...)
	return chunks
}

// A follower at rest holds little, however large the things it has seen were.
func TestMemoryAtRest(t *testing.T) {
	const most = 8 << 10
	attributes := []wire.Attribute{
		{Name: "_client_name", Value: "libmysql"},
		{Name: "_client_version", Value: "8.0.36"},
		{Name: "_os", Value: "Linux"},
		{Name: "_pid", Value: "12345"},
		{Name: "_platform", Value: "x86_64"},
		{Name: "program_name", Value: "sysbench"},
	}
	z := framing{compress: zlibbed, size: 1 << 20}
	for _, tt := range []struct {
		name string
		caps wire.Capabilities
		n    int
	}{
		{"plain", baseCaps | wire.DeprecateEOF | wire.ConnectAttrs, 10_000},
		{"compressed", baseCaps | wire.DeprecateEOF | wire.ConnectAttrs | wire.Compress, 1000},
	} {
		chunks := []chunk{
			command(wire.ComQuery, "SELECT c FROM sbtest1 WHERE id=5012"), fromServer(resultSet(1, tt.caps, 2, []byte("\x01a"))),
			command(wire.ComStmtPrepare, "SELECT c FROM t WHERE id=?"), fromServer(prepareReply(3, 1, tt.caps)),
			execute(3, 0, []byte{8, 0}, 42, 0, 0, 0, 0, 0, 0, 0), fromServer(resultSet(1, tt.caps, 2, []byte{0, 0, 1, 'x'})),
			command(wire.ComQuery, "INSERT "+strings.Repeat("x", 40_000)), server(1, errPayload(1064, "42000", strings.Repeat("m", 9000))...),
			command(wire.ComQuery, "DO 1"), server(1, okPayload(0, 2)...),
		}
		for range 40 { // pipelined
			chunks = append(chunks, command(wire.ComQuery, "INSERT "+strings.Repeat("y", 900)))
		}
		for range 40 {
			chunks = append(chunks, server(1, okPayload(1, 2)...))
		}
		for i := range chunks {
			if tt.caps.Has(wire.Compress) {
				chunks[i].data = z.frames(chunks[i].data)
			}
		}
		chunks = append(loginWith(tt.caps, attributes...), chunks...)
		followers := make([]*session.Follower, tt.n)
		before := heap()
		for i := range followers {
			followers[i] = &session.Follower{Handler: discard{}}
			show(followers[i], 16<<10, chunks...)
			if !followers[i].Quiet() {
				t.Fatal("not between two commands")
			}
		}
		each := (heap() - before) / tt.n
		t.Logf("%s: %d bytes", tt.name, each)
		if each > most {
			t.Errorf("%s: a follower at rest holds %d bytes, want no more than %d", tt.name, each, most)
		}
		runtime.KeepAlive(followers)
	}
}

// heap is how many bytes are in use once the garbage, and what pools keep for a while, is gone.
func heap() int {
	var m runtime.MemStats
	for range 3 {
		runtime.GC()
	}
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc)
}

// Without memory a command is kept as far as it goes for nothing, and hashed on; the next one is as ever.
func TestWithoutMemory(t *testing.T) {
	text := strings.Repeat("SELECT 'abc';", 10_000)
	sum := fnv.New64a()
	sum.Write([]byte(text))
	for _, size := range []int{7, 4000, 1 << 20} {
		for _, limit := range []int{0, 5 << 10, 100 << 10} {
			memory := capture.NewMemory(limit)
			l := &listener{}
			f := session.Follower{Handler: l, Memory: memory}
			show(&f, size, login(baseCaps)...)
			for range 2 {
				show(&f, size, command(wire.ComQuery, text), server(1, ok...), command(wire.ComQuery, "DO 1"), server(1, ok...))
			}
			if len(l.statements) != 4 || l.lost != "" {
				t.Fatalf("limit %d, %d bytes a read: %d statements, lost %q", limit, size, len(l.statements), l.lost)
			}
			for i, s := range l.statements {
				if i%2 == 1 {
					if string(s.Text) != "DO 1" || s.Flags != 0 {
						t.Errorf("limit %d, %d bytes a read: %q, flags %q, want a DO as it was sent", limit, size, s.Text, s.Flags.Names())
					}
					continue
				}
				if !s.Flags.Has(capture.Truncated) || !strings.HasPrefix(text, string(s.Text)) || len(s.Text) < 1000 || s.TextLen != uint64(len(text)) || s.TextHash != sum.Sum64() {
					t.Errorf("limit %d, %d bytes a read: flags %q, %d bytes of text, length %d, hash %x, want truncated, %d, %x",
						limit, size, s.Flags.Names(), len(s.Text), s.TextLen, s.TextHash, len(text), sum.Sum64())
				}
			}
			if used := memory.Used(); used != 0 {
				t.Errorf("limit %d, %d bytes a read: %d bytes still taken", limit, size, used)
			}
		}
	}
}

// A file that there is no memory for is as one that is too long.
func TestFileWithoutMemory(t *testing.T) {
	memory := capture.NewMemory(8 << 10)
	l := &listener{}
	f := session.Follower{Handler: l, Memory: memory, KeepFiles: true}
	show(&f, 1<<20, login(baseCaps)...)
	for _, content := range []string{strings.Repeat("a", 3<<10), strings.Repeat("b", 9<<10), "c"} {
		show(&f, 1<<20, command(wire.ComQuery, "LOAD"), server(1, []byte("\xfbx")...), client(2, []byte(content)...), client(3), server(4, ok...))
	}
	var got []string
	for i, s := range l.statements {
		got = append(got, fmt.Sprintf("%d bytes, kept %t", len(l.files[i]), s.Flags.Has(capture.FileKept)))
	}
	if want := "3072 bytes, kept true|0 bytes, kept false|1 bytes, kept true"; strings.Join(got, "|") != want || memory.Used() != 0 {
		t.Errorf("got %q with %d bytes still taken, want %s", got, memory.Used(), want)
	}
}

// Executes of a statement whose text there was no memory for are told by their parameters only.
func TestPreparedWithoutMemory(t *testing.T) {
	memory := capture.NewMemory(400 << 10) // enough to gather one such text, not to keep it while another is gathered
	l := &listener{}
	f := session.Follower{Handler: l, Memory: memory}
	text := "SELECT ? " + strings.Repeat("-- long ", 16<<10) // 128 KiB
	show(&f, 1<<20, login(baseCaps)...)
	for id := byte(1); id <= 3; id++ {
		show(&f, 1<<20, command(wire.ComStmtPrepare, text), fromServer(prepareReply(id, 1, baseCaps)))
	}
	kept := memory.Used()
	if kept != len(text) {
		t.Errorf("%d bytes taken, want one text's, %d", kept, len(text))
	}
	show(&f, 1<<20, execute(3, 0, []byte{8, 0}, 1, 0, 0, 0, 0, 0, 0, 0), server(1, ok...))
	last := l.statements[len(l.statements)-1]
	if !last.Flags.Has(capture.TextUnknown) || len(last.Text) != 0 || l.lost != "" {
		t.Errorf("execute of a text that was not kept: flags %q, %d bytes of text, lost %q", last.Flags.Names(), len(last.Text), l.lost)
	}
	show(&f, 1<<20, command(wire.ComStmtClose, "\x01\x00\x00\x00"))
	if used := memory.Used(); used != 0 {
		t.Errorf("%d bytes still taken once the statement is closed", used)
	}
}

// A client that floods is followed as far as there is memory for its commands.
func TestFloodWithoutMemory(t *testing.T) {
	memory := capture.NewMemory(16 << 10)
	l := &listener{}
	f := session.Follower{Handler: l, Memory: memory}
	show(&f, 1<<20, login(baseCaps)...)
	for range 1000 {
		show(&f, 1<<20, command(wire.ComPing, ""))
	}
	if want := "no memory is left for so many commands without a reply"; l.lost != want || len(l.statements) < 9 || len(l.statements) > 100 {
		t.Errorf("lost %q with %d commands, want %q with some tens", l.lost, len(l.statements), want)
	}
	if used := memory.Used(); used != 0 {
		t.Errorf("%d bytes still taken", used)
	}
}

// Whatever ends a command, or the connection, what was taken for it is given back.
func TestMemoryIsGivenBack(t *testing.T) {
	long := command(wire.ComQuery, strings.Repeat("x", 50_000))
	half := chunk{true, long.data[:30_000]}
	load := []chunk{command(wire.ComQuery, "LOAD"), server(1, []byte("\xfbx")...), client(2, make([]byte, 20_000)...)}
	okTail := okPayload(0, 2)
	attributes := wire.Attribute{Name: "much", Value: strings.Repeat("y", 60_000)}
	z := framing{compress: zlibbed, size: 1 << 20}
	compressed := baseCaps | wire.Compress
	framed := func(c chunk) chunk { return chunk{c.fromClient, z.frames(c.data)} }
	noise := make([]byte, 20_000) // that zlib cannot make small
	rand.NewChaCha8([32]byte{}).Read(noise)
	cat := func(groups ...[]chunk) (all []chunk) {
		for _, g := range groups {
			all = append(all, g...)
		}
		return all
	}
	flood := login(baseCaps)
	for range 100 {
		flood = append(flood, command(wire.ComStmtReset, "\x01\x00\x00\x00"))
	}
	tests := []struct {
		name   string
		chunks []chunk // something is held behind them
		then   []chunk // nothing is held behind these, and Close
		open   bool    // nothing is held already before Close
	}{
		{"an answer", append(login(baseCaps), long), []chunk{server(1, ok...)}, true},
		{"several answers", cat(login(baseCaps), []chunk{long, long, long}), []chunk{server(1, ok...), server(1, ok...), server(1, ok...)}, true},
		{"an end without an answer", append(login(baseCaps), long), nil, false},
		{"an end in the midst of a command", append(login(baseCaps), half), nil, false},
		{"a refusal in the midst of a command", append(login(baseCaps), half, server(1, errPayload(1153, "08S01", "too long")...)), nil, false},
		{"an end in the midst of a file", append(login(baseCaps), load...), nil, false},
		{"the end of a file", append(login(baseCaps), load...), []chunk{client(3), server(4, okTail...)}, true},
		{"being lost", append(login(baseCaps), long), []chunk{server(1, 0xFC)}, true},
		{"being lost in the midst of a command", append(login(baseCaps), long, half), []chunk{server(1, 0xFC)}, true},
		{"a long packet that came in pieces", append(login(baseCaps), command(wire.ComQuery, "DO 1"), chunk{false, server(1, append(okPayload(0, 2), make([]byte, 9000)...)...).data[:5000]}), nil, false},
		{"many attributes", loginWith(baseCaps|wire.ConnectAttrs, attributes)[:2], nil, false},
		{"a login in pieces", []chunk{login(baseCaps)[0], {true, loginWith(baseCaps|wire.ConnectAttrs, attributes)[1].data[:40_000]}}, nil, false},
		{"a greeting in pieces", []chunk{{false, server(0, append(greetingPayload(baseCaps), make([]byte, 5000)...)...).data[:4000]}}, []chunk{{false, server(0, append(greetingPayload(baseCaps), make([]byte, 5000)...)...).data[4000:]}}, true},
		{"commands ahead of a login that failed", append(login(baseCaps)[:2:2], long), []chunk{server(2, errPayload(1045, "28000", "no")...)}, false},
		{"a flood", flood, nil, false},
		{"half a frame", append(login(compressed), chunk{true, framed(command(wire.ComQuery, string(noise))).data[:9000]}), nil, false},
		{"a command in frames", append(login(compressed), framed(long)), []chunk{framed(server(1, ok...))}, true},
		{"frames that cannot be read", append(login(compressed), framed(long)), []chunk{{false, []byte{3, 0, 0, 1, 3, 0, 0, 1, 2, 3}}}, true},
		{"half a CHANGE_USER's answer", append(login(baseCaps), command(wire.ComChangeUser, "other\x00\x04hushdb3\x00\x2d\x00"), chunk{false, server(1, make([]byte, 9000)...).data[:5000]}), nil, false},
	}
	for _, tt := range tests {
		for _, size := range []int{1000, 1 << 20} {
			memory := capture.NewMemory(1 << 30)
			f := session.Follower{Handler: discard{}, Memory: memory, KeepFiles: true}
			show(&f, size, tt.chunks...)
			if memory.Used() == 0 {
				t.Errorf("%s: nothing was taken to begin with", tt.name)
			}
			show(&f, size, tt.then...)
			if used := memory.Used(); tt.open && used != 0 {
				t.Errorf("%s, %d bytes a read: %d bytes still taken", tt.name, size, used)
			}
			f.Close(time.Second)
			show(&f, size, command(wire.ComQuery, strings.Repeat("late", 3000)))
			if used := memory.Used(); used != 0 {
				t.Errorf("%s, %d bytes a read: %d bytes still taken after Close", tt.name, size, used)
			}
		}
	}
}

// Names as long as no server takes them are not kept.
func TestLongNames(t *testing.T) {
	l := &listener{}
	f := session.Follower{Handler: l}
	chunks := login(baseCaps)
	name := strings.Repeat("n", 100_000)
	response := wire.HandshakeResponse{Capabilities: baseCaps, User: name, AuthData: []byte("s"), Schema: name, Plugin: "mysql_native_password"}
	chunks[1] = client(1, response.Append(nil)...)
	show(&f, 1<<20, chunks...)
	show(&f, 1<<20, command(wire.ComChangeUser, name), server(1, ok...))
	if s := l.starts[0]; len(s.User) != 2<<10 || len(s.Schema) != 2<<10 {
		t.Errorf("a user of %d and a schema of %d bytes are kept, want 2 KiB", len(s.User), len(s.Schema))
	}
	if n := len(l.statements[0].Text); n > 2<<10 {
		t.Errorf("another user of %d bytes is kept, want no more than 2 KiB", n)
	}
}

// clumsy is a handler that panics at its first statement.
type clumsy struct{ listener }

func (c *clumsy) Done(*capture.Statement) { panic("clumsy") }

func TestMemoryAfterAPanic(t *testing.T) {
	memory := capture.NewMemory(1 << 30)
	l := &clumsy{}
	f := session.Follower{Handler: l, Memory: memory}
	show(&f, 1<<20, login(baseCaps)...)
	show(&f, 1<<20, command(wire.ComQuery, strings.Repeat("x", 50_000)), server(1, ok...))
	if l.lost != "internal error: clumsy" || memory.Used() != 0 {
		t.Errorf("lost %q, %d bytes still taken", l.lost, memory.Used())
	}
}

// Two followers never share memory at one time, though they take it from the same pools.
func TestBuffersAreNotShared(t *testing.T) {
	texts := []string{strings.Repeat("a", 5000), strings.Repeat("b", 6000), strings.Repeat("c", 60_000)}
	var listeners [3]listener
	var followers [3]session.Follower
	for i := range followers {
		followers[i].Handler = &listeners[i]
		show(&followers[i], 1<<20, login(baseCaps)...)
	}
	for range 3 {
		for i := range followers {
			show(&followers[i], 1000, command(wire.ComQuery, texts[i]))
		}
		for i := range followers {
			show(&followers[i], 1000, server(1, ok...))
		}
	}
	for i, l := range listeners {
		for _, s := range l.statements {
			if !bytes.Equal(s.Text, []byte(texts[i])) {
				t.Errorf("follower %d: a text of %d bytes beginning with %.5q, want its own", i, len(s.Text), s.Text)
			}
		}
		if len(l.statements) != 3 {
			t.Errorf("follower %d: %d statements", i, len(l.statements))
		}
	}
}
