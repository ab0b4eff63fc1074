package session_test

import (
	"bytes"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"unsafe"

	"redrive/capture"
	"redrive/internal/session"
	"redrive/internal/wire"
)

func TestInfileKinds(t *testing.T) {
	load := func(text string) []chunk {
		return []chunk{command(wire.ComQuery, text), server(1, []byte("\xfbx")...)}
	}
	data := client(2, []byte("\x03DROP TABLE t")...)
	end := client(3)
	query := []chunk{command(wire.ComQuery, "DO 1"), server(1, ok...)}
	cat := func(groups ...[]chunk) func(wire.Capabilities) []chunk {
		return func(wire.Capabilities) (all []chunk) {
			for _, g := range groups {
				all = append(all, g...)
			}
			return append(all, query...)
		}
	}
	full := chunk{true, packet(2, make([]byte, wire.MaxPayload))} // its continuation is empty, and is not the end
	scripts := []script{
		{"an empty file", cat(load("LOAD"), []chunk{end, server(4, ok...)}), []string{`1 QUERY "LOAD" infile`, `2 QUERY "DO 1"`}, ""},
		{
			"two files in one command, the second refused", cat(
				load("LOAD;LOAD"), []chunk{data, end, server(4, okPayload(3, 2|wire.StatusMoreResults)...), server(5, []byte("\xfby")...), end, server(7, errPayload(1046, "3D000", "no")...)}),
			[]string{`1 QUERY "LOAD;LOAD" affected=3 error=1046/3D000 infile`, `2 QUERY "DO 1"`},
			"",
		},
		{"an error once the file is read", cat(load("LOAD"), []chunk{data, data, end, server(5, errPayload(1317, "70100", "killed")...)}), []string{`1 QUERY "LOAD" error=1317/70100 infile`, `2 QUERY "DO 1"`}, ""},
		{"an error while the file is still being sent", cat(load("LOAD"), []chunk{data, server(4, errPayload(1317, "70100", "killed")...), data, end}), []string{`1 QUERY "LOAD" error=1317/70100 infile`, `2 QUERY "DO 1"`}, ""},
		{"the session's state is the last OK's", cat([]chunk{command(wire.ComQuery, "BEGIN"), server(1, okPayload(0, 3)...)}, load("LOAD"), []chunk{data, end, server(4, okPayload(1, 3)...)}), []string{`1 QUERY "BEGIN"`, `2 QUERY "LOAD" affected=1 infile`, `3 QUERY "DO 1"`}, ""},
	}
	for _, s := range scripts {
		s.run(t, baseCaps)
	}
	l := follow(t, 1<<20, 0, append(login(baseCaps), cat(load("LOAD"), []chunk{full, data, end, server(5, ok...)})(baseCaps)...)...)
	if len(l.lines) != 2 || l.lost != "" {
		t.Errorf("a packet of 16 MiB − 1 in a file: got %q, lost %q, want 2 commands", l.lines, l.lost)
	}
}

// Errors that the server sends unasked belong to no statement, wherever in the conversation they arrive.
func TestUnaskedKinds(t *testing.T) {
	query := command(wire.ComQuery, "DO 1")
	parting := func(errno uint16) chunk { return server(0, errPayload(errno, "HY000", "so long")...) }
	half := func(c chunk, tail bool) chunk {
		if tail {
			return chunk{c.fromClient, c.data[6:]}
		}
		return chunk{c.fromClient, c.data[:6]}
	}
	tests := []struct {
		name    string
		chunks  []chunk
		want    string
		parting uint16
	}{
		{"while nothing was asked", []chunk{query, server(1, ok...), parting(4031)}, `1 QUERY "DO 1"`, 4031},
		{"in front of a command that crosses it", []chunk{parting(4031), query}, `1 QUERY "DO 1" unanswered`, 4031},
		{"behind a command that crosses it", []chunk{query, parting(4031)}, `1 QUERY "DO 1" unanswered`, 4031},
		{"around a command that crosses it", []chunk{half(parting(3169), false), query, half(parting(3169), true)}, `1 QUERY "DO 1" unanswered`, 3169},
		{"within a command that crosses it", []chunk{half(query, false), parting(1053), half(query, true)}, `1 QUERY "DO 1" unanswered`, 1053},
		{"behind several in flight, and a QUIT", []chunk{query, query, parting(1927), command(wire.ComQuit, "")}, `1 QUERY "DO 1" unanswered|2 QUERY "DO 1" unanswered|3 QUIT ""`, 1927},
		{"a killed statement's own error", []chunk{query, server(1, errPayload(1927, "70100", "killed")...)}, `1 QUERY "DO 1" error=1927/70100`, 0},
		{"an answer with a wrong sequence id, as the session goes on", []chunk{query, parting(1317), query, server(1, ok...)}, `1 QUERY "DO 1" error=1317/HY000|2 QUERY "DO 1"`, 0},
		{"another error with a wrong sequence id", []chunk{query, parting(1064)}, `1 QUERY "DO 1" error=1064/HY000`, 0},
	}
	for _, tt := range tests {
		for _, size := range []int{1, 4, 1 << 20} {
			l := follow(t, size, 0, append(login(baseCaps), tt.chunks...)...)
			if got := strings.Join(l.lines, "|"); got != tt.want || l.end.Parting.Errno != tt.parting || l.lost != "" {
				t.Errorf("%s, %d bytes a read: got %s, parting error %d, lost %q, want %s, %d", tt.name, size, got, l.end.Parting.Errno, l.lost, tt.want, tt.parting)
			}
			for _, s := range l.statements {
				if s.Flags.Has(capture.Unanswered) && s.First != 0 {
					t.Errorf("%s: a first byte at %v of an answer that never came", tt.name, s.First)
				}
			}
		}
	}
}

// A server may refuse a command before its last byte was sent: the error is that command's, whether the rest still
// comes or the connection ends there.
func TestRefusedInMidUpload(t *testing.T) {
	text := "INSERT INTO t VALUES ('" + strings.Repeat("x", 3000) + "')"
	whole := command(wire.ComQuery, text).data
	refusal := server(1, errPayload(1153, "08S01", "Got a packet bigger than 'max_allowed_packet' bytes")...)
	ping := []chunk{command(wire.ComPing, ""), server(1, ok...)}
	for _, size := range []int{1, 100, 1 << 20} {
		up := []chunk{{true, whole[:1000]}, refusal}
		l := follow(t, size, 0, append(append(login(baseCaps), up...), append([]chunk{{true, whole[1000:]}}, ping...)...)...)
		if want := fmt.Sprintf("1 QUERY %q error=1153/08S01|2 PING \"\"", text); strings.Join(l.lines, "|") != want || l.lost != "" {
			t.Errorf("%d bytes a read, sent to its end: got %q, lost %q", size, l.lines, l.lost)
		}
		l = follow(t, size, 0, append(login(baseCaps), up...)...)
		if want := fmt.Sprintf("1 QUERY %q error=1153/08S01 truncated", text[:1000-5]); strings.Join(l.lines, "|") != want {
			t.Errorf("%d bytes a read, broken off: got %q, want %s", size, l.lines, want)
		}
		if s := l.statements[0]; s.TextLen != 995 || s.TextHash == 0 || s.First == 0 || s.Done < s.First {
			t.Errorf("%d bytes a read, broken off: length %d, hash %x, first %v, done %v", size, s.TextLen, s.TextHash, s.First, s.Done)
		}
	}
	if l := follow(t, 1<<20, 0, append(login(baseCaps), chunk{true, whole[:1000]})...); len(l.lines) != 0 {
		t.Errorf("a command that never came whole, and was not answered: got %q", l.lines)
	}
}

// What cannot be the reply is said once, and nothing more is made of the connection.
func TestLostKinds(t *testing.T) {
	query := command(wire.ComQuery, "SELECT 1")
	const odd = "COM_QUERY: not the reply that was expected: "
	tests := []struct {
		name  string
		reply chunk
		lost  string
	}{
		{"a column count of 0 with more behind it", server(1, 0xFC, 0, 0), odd + "3 bytes beginning with FC where a column count was due"},
		{"a column count that is cut off", server(1, 0xFC), odd + "1 bytes beginning with FC where a column count was due"},
		{"a count and too much", server(1, 1, 2, 3), odd + "3 bytes beginning with 01 where a column count was due"},
		{"an OK that ends too early", server(1, 0, 0, 0, 2), odd + "OK packet: packet ends too early"},
		{"an empty packet", server(1), odd + "empty packet"},
		{"an ERR of two bytes", server(1, 0xFF, 1), odd + "packet ends too early"},
		{"an EOF among the definitions", fromServer(append(packet(1, []byte{2}), packet(2, eofPayload(2))...)), odd + "packet beginning with FE behind the end"},
		{"an answer too many", fromServer(append(packet(1, ok), packet(1, ok)...)), "the server sent 7 bytes unasked"},
	}
	for _, tt := range tests {
		for _, size := range []int{1, 1 << 20} {
			l := follow(t, size, 0, append(login(baseCaps), query, tt.reply, query, server(1, ok...))...)
			if l.lost != tt.lost {
				t.Errorf("%s: lost %q, want %q", tt.name, l.lost, tt.lost)
			}
			if len(l.lines) != 1 {
				t.Errorf("%s: got %q, want the first command only", tt.name, l.lines)
			}
		}
	}
	l := follow(t, 1<<20, 0, append(login(baseCaps&^wire.LocalFiles), query, server(1, []byte("\xfb/etc/passwd")...))...)
	if want := odd + "a file request that was not negotiated"; l.lost != want {
		t.Errorf("lost %q, want %q", l.lost, want)
	}
}

// Found by the fuzzer: an OK within a CHANGE_USER that is still being sent.
func TestAnswerWithinChangeUser(t *testing.T) {
	change := command(wire.ComChangeUser, "other\x00\x04hushdb2\x00\x2d\x00")
	l := follow(t, 1<<20, 0, append(login(baseCaps), chunk{true, change.data[:8]}, server(3, ok...), chunk{true, change.data[8:]})...)
	if want := "the server sent 7 bytes unasked"; l.lost != want || len(l.lines) != 0 {
		t.Errorf("got %q, lost %q, want nothing and %q", l.lines, l.lost, want)
	}
}

func TestTooManyInFlight(t *testing.T) {
	chunks := login(baseCaps)
	for range 4097 {
		chunks = append(chunks, command(wire.ComPing, ""))
	}
	l := follow(t, 1<<20, 0, chunks...)
	if want := "too many commands without a reply"; l.lost != want || len(l.lines) != 4096 {
		t.Errorf("lost %q with %d commands, want %q with 4096", l.lost, len(l.lines), want)
	}
}

func TestQueryAttributes(t *testing.T) {
	caps := baseCaps | wire.QueryAttributes
	l := follow(t, 3, 0, append(login(caps),
		command(wire.ComQuery, "\x00\x01SELECT 1"), server(1, ok...),
		command(wire.ComQuery, "\x01\x01\x00\x01\xfd\x00\x05trace\x03abcSELECT 2"), server(1, ok...),
		command(wire.ComStmtPrepare, "SELECT c FROM t WHERE id=?"), fromServer(prepareReply(1, 1, caps)),
		command(wire.ComStmtExecute, "\x01\x00\x00\x00\x08\x01\x00\x00\x00"+"\x02\x00\x01"+"\x01\x00\x00\xfd\x00\x05trace"+"\x07\x03abc"), server(1, ok...),
		command(wire.ComStmtSendLongData, "\x01\x00\x00\x00\x00\x00long"),
		command(wire.ComStmtExecute, "\x01\x00\x00\x00\x08\x01\x00\x00\x00"+"\x02\x00\x01"+"\xfd\x00\x00\xfd\x00\x05trace"+"\x03abc"), server(1, ok...))...)
	want := []string{
		`1 QUERY "SELECT 1"`, `2 QUERY "SELECT 2"`, `3 STMT_PREPARE "SELECT c FROM t WHERE id=?" id=1`,
		`4 STMT_EXECUTE "SELECT c FROM t WHERE id=?" id=1 7`, `5 STMT_SEND_LONG_DATA "\x00\x00long" id=1`,
		`6 STMT_EXECUTE "SELECT c FROM t WHERE id=?" id=1 <long data>`,
	}
	if strings.Join(l.lines, "\n") != strings.Join(want, "\n") || l.lost != "" {
		t.Errorf("got\n%s\nlost %q, want\n%s", strings.Join(l.lines, "\n"), l.lost, strings.Join(want, "\n"))
	}
	if got := string(l.statements[1].Attributes); got != "\x01\x01\x00\x01\xfd\x00\x05trace\x03abc" {
		t.Errorf("attributes %q", got)
	}
}

// Not even a hash is kept of a COM_CHANGE_USER's secret, however little of a command is to be kept.
func TestChangeUserIsNotHashed(t *testing.T) {
	l := follow(t, 1<<20, 8, append(login(baseCaps), command(wire.ComChangeUser, "u\x00\x04hushdb2\x00"), server(1, ok...))...)
	if s := l.statements[0]; s.TextHash != 0 || bytes.Contains(s.Text, []byte("hush")) {
		t.Errorf("text %q, hash %x", s.Text, s.TextHash)
	}
}

// A text that many sessions prepare is in memory once.
func TestPreparedTextsAreShared(t *testing.T) {
	seen := map[*byte]bool{}
	var followers [3]session.Follower
	for i := range followers {
		keep := &texts{}
		f := &followers[i]
		f.Handler = keep
		for _, c := range append(login(baseCaps), command(wire.ComStmtPrepare, "SELECT c FROM t WHERE id=?"), fromServer(prepareReply(1, 1, baseCaps)),
			command(wire.ComStmtReset, "\x01\x00\x00\x00"), server(1, ok...)) {
			if c.fromClient {
				f.FromClient(c.data, 1, 1)
			} else {
				f.FromServer(c.data, 1)
			}
		}
		seen[unsafe.SliceData(keep.text)] = true
	}
	runtime.KeepAlive(&followers)
	if len(seen) != 1 {
		t.Errorf("%d copies of the text, want 1", len(seen))
	}
}

// texts keeps the text of the statement that was reset last.
type texts struct {
	discard
	text []byte
}

func (t *texts) Done(s *capture.Statement) {
	if s.Command == wire.ComStmtReset {
		t.text = s.Text
	}
}
