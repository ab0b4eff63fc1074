package session_test

import (
	"bytes"
	"fmt"
	"hash/fnv"
	"slices"
	"strings"
	"testing"
	"time"

	"redrive/capture"
	"redrive/internal/session"
	"redrive/internal/wire"
)

// A listener keeps what a follower says, a line each.
type listener struct {
	lines      []string
	statements []capture.Statement
	files      []string // sent for LOCAL INFILE, by statement
	starts     []capture.SessionStart
	lost       string
	end        session.End
}

func (l *listener) LoggedIn(s *capture.SessionStart) {
	l.starts = append(l.starts, *s)
}

func (l *listener) Done(s *capture.Statement) {
	o := &s.Outcome
	line := fmt.Sprintf("%d %s %q", s.Number, strings.TrimPrefix(wire.CommandName(s.Command), "COM_"), s.Text[:min(len(s.Text), 10_000)])
	if s.StatementID != 0 {
		line += fmt.Sprintf(" id=%d", s.StatementID)
	}
	if o.ResultSets > 0 || s.Command == wire.ComStmtFetch {
		line += fmt.Sprintf(" sets=%d rows=%d", o.ResultSets, o.Rows)
	}
	if o.Affected > 0 {
		line += fmt.Sprintf(" affected=%d", o.Affected)
	}
	if o.Errno != 0 {
		line += fmt.Sprintf(" error=%d/%s", o.Errno, o.SQLState[:])
	}
	if s.Command == wire.ComStmtBulkExecute {
		line += fmt.Sprintf(" types=%x values=%x", s.Params.Types, s.Params.Values)
	} else if len(s.Params.Types) > 0 {
		params, err := wire.DecodeParams(s.Params.Nulls, s.Params.Types, s.Params.Values, s.Params.Long)
		if err != nil {
			line += " params: " + err.Error()
		}
		for _, p := range params {
			line += " " + string(p.AppendText(nil))
		}
	}
	for _, f := range []struct {
		flag capture.Flags
		name string
	}{
		{capture.Unanswered, "unanswered"},
		{capture.Cut, "cut"},
		{capture.Unparsed, "unparsed"},
		{capture.Truncated, "truncated"},
		{capture.TextUnknown, "text-unknown"},
		{capture.Cursor, "cursor"},
		{capture.Infile, "infile"},
		{capture.NoTypes, "no-types"},
	} {
		if s.Flags.Has(f.flag) {
			line += " " + f.name
		}
	}
	l.lines = append(l.lines, line)
	kept := *s
	kept.Text, kept.Schema, kept.Attributes = bytes.Clone(s.Text), bytes.Clone(s.Schema), bytes.Clone(s.Attributes)
	l.statements = append(l.statements, kept)
	l.files = append(l.files, string(s.File))
}

func (l *listener) Lost(reason string, _, _ uint64) { l.lost = reason }

// A chunk is what one read delivers, from one side.
type chunk struct {
	fromClient bool
	data       []byte
}

// client and server make a chunk of one packet.
func client(seq byte, payload ...byte) chunk { return chunk{true, packet(seq, payload)} }
func server(seq byte, payload ...byte) chunk { return chunk{false, packet(seq, payload)} }

func packet(seq byte, payload []byte) []byte {
	b, _ := wire.AppendPacket(nil, seq, payload)
	return b
}

func command(code byte, rest string) chunk { return client(0, append([]byte{code}, rest...)...) }

const baseCaps = wire.Protocol41 | wire.SecureConnection | wire.PluginAuth | wire.MultiResults | wire.MultiStatements |
	wire.PSMultiResults | wire.LocalFiles | wire.ConnectWithDB | wire.Transactions

func greetingPayload(caps wire.Capabilities) []byte {
	greeting := []byte{10}
	greeting = append(greeting, "5.5.5-10.11.19-MariaDB\x00"...)
	greeting = append(greeting, 7, 0, 0, 0)
	greeting = append(greeting, "abcdefgh\x00"...)
	greeting = append(greeting, byte(caps), byte(caps>>8), 45, 2, 0, byte(caps>>16), byte(caps>>24), 21)
	greeting = append(greeting, make([]byte, 6)...)
	greeting = append(greeting, byte(caps>>32), byte(caps>>40), byte(caps>>48), byte(caps>>56))
	greeting = append(greeting, "ijklmnopqrst\x00mysql_native_password\x00"...)
	return greeting
}

// login is a greeting, a response and an OK by which both sides agree on caps.
func login(caps wire.Capabilities) []chunk {
	response := wire.HandshakeResponse{Capabilities: caps, Collation: 45, User: "sbtest", AuthData: []byte("secret-scramble-1234"), Schema: "sbtest", Plugin: "mysql_native_password"}
	return []chunk{server(0, greetingPayload(caps)...), client(1, response.Append(nil)...), server(2, okPayload(0, wire.StatusAutocommit)...)}
}

func okPayload(affected uint64, status uint16) []byte {
	return wire.AppendOK(nil, 0, wire.OK{Affected: affected, Status: status})
}

func errPayload(errno uint16, state, message string) []byte {
	return wire.AppendError(nil, &wire.Error{Errno: errno, SQLState: state, Message: message})
}

func eofPayload(status uint16) []byte { return []byte{0xFE, 0, 0, byte(status), byte(status >> 8)} }

// resultSet is one result of a column, in the style of caps; rows are payloads.
func resultSet(seq byte, caps wire.Capabilities, status uint16, rows ...[]byte) []byte {
	var b []byte
	add := func(payload []byte) { b, seq = wire.AppendPacket(b, seq, payload) }
	definition := []byte("\x03def\x00\x00\x00\x01c\x00\x0c\x2d\x00\x78\x00\x00\x00\xfe\x00\x00\x00\x00\x00")
	switch {
	case caps.Has(wire.CacheMetadata):
		add([]byte{1, 0}) // no definitions follow
	default:
		add([]byte{1})
		add(definition)
	}
	if !caps.Has(wire.DeprecateEOF) {
		add(eofPayload(status &^ wire.StatusMoreResults))
	}
	for _, row := range rows {
		add(row)
	}
	if caps.Has(wire.DeprecateEOF) {
		add(wire.AppendOK(nil, 0xFE, wire.OK{Status: status}))
	} else {
		add(eofPayload(status))
	}
	return b
}

func fromServer(b []byte) chunk { return chunk{false, b} }

// prepareReply is the reply to a PREPARE of a statement with one column and n parameters.
func prepareReply(id byte, n int, caps wire.Capabilities) []byte {
	var b []byte
	seq := byte(1)
	add := func(payload []byte) { b, seq = wire.AppendPacket(b, seq, payload) }
	definition := []byte("\x03def\x00\x00\x00\x01?\x00\x0c\x3f\x00\x00\x00\x00\x00\xfd\x80\x00\x00\x00\x00")
	add([]byte{0, id, 0, 0, 0, 1, 0, byte(n), 0, 0, 0, 0})
	for range n {
		add(definition)
	}
	if n > 0 && !caps.Has(wire.DeprecateEOF) {
		add(eofPayload(2))
	}
	add(definition)
	if !caps.Has(wire.DeprecateEOF) {
		add(eofPayload(2))
	}
	return b
}

func execute(id uint32, flags byte, types []byte, values ...byte) chunk {
	payload := []byte{wire.ComStmtExecute, byte(id), byte(id >> 8), byte(id >> 16), byte(id >> 24), flags, 1, 0, 0, 0, 0}
	if types == nil {
		payload = append(payload, 0)
	} else {
		payload = append(append(payload, 1), types...)
	}
	return client(0, append(payload, values...)...)
}

// follow shows the chunks to a follower, cut into pieces of at most size bytes, one read each.
func follow(t *testing.T, size, maxStatement int, chunks ...chunk) *listener {
	t.Helper()
	l := &listener{}
	f := session.Follower{Handler: l, MaxStatement: maxStatement}
	at := time.Millisecond
	for _, c := range chunks {
		for data := c.data; len(data) > 0; {
			n := min(size, len(data))
			piece := bytes.Clone(data[:n]) // the follower must not keep what it is shown
			if c.fromClient {
				f.FromClient(piece, at, at+time.Microsecond)
			} else {
				f.FromServer(piece, at)
			}
			clear(piece)
			data = data[n:]
			at += time.Millisecond
		}
	}
	end := f.Close(at)
	l.end = end
	if l.lost == "" && end.LoggedIn && int(end.Commands) != len(l.lines) {
		t.Errorf("%d commands reported, %d counted", len(l.lines), end.Commands)
	}
	return l
}

func TestFollow(t *testing.T) {
	longlong := []byte{0x08, 0x00}
	one := []byte("\x01a")
	styles := map[string]wire.Capabilities{
		"EOF":                      baseCaps,
		"no EOF":                   baseCaps | wire.DeprecateEOF,
		"EOF, session track":       baseCaps | wire.SessionTrack,
		"EOF, metadata cached":     baseCaps | wire.CacheMetadata,
		"no EOF, metadata cached":  baseCaps | wire.CacheMetadata | wire.DeprecateEOF | wire.SessionTrack,
		"EOF, progress, ext. meta": baseCaps | wire.Progress | wire.ExtendedMetadata,
	}
	tests := []struct {
		name   string
		script func(caps wire.Capabilities) []chunk
		want   []string
		lost   string
	}{
		{
			"text queries", func(caps wire.Capabilities) []chunk {
				return []chunk{
					command(wire.ComQuery, "SELECT c FROM t"), fromServer(resultSet(1, caps, 2, one, []byte("\x00"), []byte("\xfb"))),
					command(wire.ComQuery, "UPDATE t SET k=1"), server(1, okPayload(5, 2)...),
					command(wire.ComQuery, "SELECT broken"), server(1, errPayload(1064, "42000", "near 'broken'")...),
					command(wire.ComPing, ""), server(1, okPayload(0, 2)...),
					command(wire.ComQuit, ""),
				}
			},
			[]string{
				`1 QUERY "SELECT c FROM t" sets=1 rows=3`, `2 QUERY "UPDATE t SET k=1" affected=5`,
				`3 QUERY "SELECT broken" error=1064/42000`, `4 PING ""`, `5 QUIT ""`,
			},
			"",
		},
		{
			"an error after rows, and one after definitions", func(caps wire.Capabilities) []chunk {
				rows := resultSet(1, caps, 2, one)
				end := 9
				if caps.Has(wire.DeprecateEOF) {
					end = 11
				}
				rows = append(rows[:len(rows)-end], packet(9, errPayload(1317, "70100", "interrupted"))...)
				return []chunk{
					command(wire.ComQuery, "SELECT slow"), fromServer(rows),
					command(wire.ComQuery, "SELECT 1"), fromServer(resultSet(1, caps, 2, one)),
				}
			},
			[]string{`1 QUERY "SELECT slow" sets=1 rows=1 error=1317/70100`, `2 QUERY "SELECT 1" sets=1 rows=1`},
			"",
		},
		{
			"several results", func(caps wire.Capabilities) []chunk {
				reply := resultSet(1, caps, 2|wire.StatusMoreResults, one, one)
				reply = append(reply, packet(6, okPayload(3, 2|wire.StatusMoreResults))...)
				reply = append(reply, resultSet(7, caps, 2)...)
				return []chunk{command(wire.ComQuery, "SELECT 1; UPDATE t SET a=1; SELECT 2"), fromServer(reply)}
			},
			[]string{`1 QUERY "SELECT 1; UPDATE t SET a=1; SELECT 2" sets=2 rows=2 affected=3`},
			"",
		},
		{
			"an error ends several results", func(caps wire.Capabilities) []chunk {
				reply := resultSet(1, caps, 2|wire.StatusMoreResults, one)
				reply = append(reply, packet(6, errPayload(1065, "42000", "empty"))...)
				return []chunk{
					command(wire.ComQuery, "SELECT 1;;"), fromServer(reply),
					command(wire.ComQuery, "DO 1"), server(1, okPayload(0, 2)...),
				}
			},
			[]string{`1 QUERY "SELECT 1;;" sets=1 rows=1 error=1065/42000`, `2 QUERY "DO 1"`},
			"",
		},
		{
			"prepared: types are remembered, rows beginning with 00 are no OKs", func(caps wire.Capabilities) []chunk {
				row := []byte{0, 0, 5, 'h', 'e', 'l', 'l', 'o'}
				return []chunk{
					command(wire.ComStmtPrepare, "SELECT c FROM t WHERE id=?"), fromServer(prepareReply(3, 1, caps)),
					execute(3, 0, longlong, 42, 0, 0, 0, 0, 0, 0, 0), fromServer(resultSet(1, caps, 2, row, row)),
					execute(3, 0, nil, 43, 0, 0, 0, 0, 0, 0, 0), fromServer(resultSet(1, caps, 2, row)),
					command(wire.ComStmtClose, "\x03\x00\x00\x00"),
					execute(3, 0, nil, 44, 0, 0, 0, 0, 0, 0, 0), server(1, errPayload(1243, "HY000", "unknown statement")...),
				}
			},
			[]string{
				`1 STMT_PREPARE "SELECT c FROM t WHERE id=?" id=3`,
				`2 STMT_EXECUTE "SELECT c FROM t WHERE id=?" id=3 sets=1 rows=2 42`,
				`3 STMT_EXECUTE "SELECT c FROM t WHERE id=?" id=3 sets=1 rows=1 43`,
				`4 STMT_CLOSE "SELECT c FROM t WHERE id=?" id=3`,
				`5 STMT_EXECUTE "" id=3 error=1243/HY000 text-unknown`,
			},
			"",
		},
		{
			"pipelined: prepare and execute −1, a close glued in front, replies later", func(caps wire.Capabilities) []chunk {
				return []chunk{
					command(wire.ComStmtPrepare, "SELECT c FROM t WHERE id=?"),
					execute(wire.LastStatementID, 0, longlong, 1, 0, 0, 0, 0, 0, 0, 0),
					command(wire.ComStmtClose, "\x09\x00\x00\x00"),
					command(wire.ComQuery, "DO 1"),
					fromServer(prepareReply(9, 1, caps)), fromServer(resultSet(1, caps, 2)), server(1, okPayload(0, 2)...),
				}
			},
			[]string{
				`1 STMT_PREPARE "SELECT c FROM t WHERE id=?" id=9`,
				`2 STMT_EXECUTE "SELECT c FROM t WHERE id=?" id=9 sets=1 rows=0 1`,
				`3 STMT_CLOSE "SELECT c FROM t WHERE id=?" id=9`, `4 QUERY "DO 1"`,
			},
			"",
		},
		{
			"a cursor: no rows until fetched", func(caps wire.Capabilities) []chunk {
				open := resultSet(1, caps, 2|wire.StatusCursorExists)
				if !caps.Has(wire.DeprecateEOF) { // one EOF only, behind the definitions
					open = open[:len(open)-9]
				}
				fetched := packet(1, []byte{0, 0, 1, 'x'})
				fetched = append(fetched, packet(2, eofPayload(2|wire.StatusLastRowSent))...)
				return []chunk{
					command(wire.ComStmtPrepare, "SELECT c FROM t WHERE id=?"), fromServer(prepareReply(4, 1, caps)),
					execute(4, wire.CursorReadOnly, longlong, 1, 0, 0, 0, 0, 0, 0, 0), fromServer(open),
					command(wire.ComStmtFetch, "\x04\x00\x00\x00\x0a\x00\x00\x00"), fromServer(fetched),
				}
			},
			[]string{
				`1 STMT_PREPARE "SELECT c FROM t WHERE id=?" id=4`,
				`2 STMT_EXECUTE "SELECT c FROM t WHERE id=?" id=4 sets=1 rows=0 1 cursor`,
				`3 STMT_FETCH "SELECT c FROM t WHERE id=?" id=4 sets=0 rows=1`,
			},
			"",
		},
		{
			"a cursor of a statement that is not known: the reply has no rows all the same", func(caps wire.Capabilities) []chunk {
				open := resultSet(1, caps, 2|wire.StatusCursorExists)
				if !caps.Has(wire.DeprecateEOF) {
					open = open[:len(open)-9]
				}
				return []chunk{
					execute(4, wire.CursorReadOnly, nil), fromServer(open),
					command(wire.ComPing, ""), server(1, okPayload(0, 2)...),
				}
			},
			[]string{`1 STMT_EXECUTE "" id=4 sets=1 rows=0 text-unknown cursor`, `2 PING ""`},
			"",
		},
		{
			"odd replies: SET_OPTION, STATISTICS, FIELD_LIST, an unknown command", func(caps wire.Capabilities) []chunk {
				fields := packet(1, []byte("\x03def\x00\x00\x00\x01c\x00\x0c\x2d\x00\x78\x00\x00\x00\xfe\x00\x00\x00\x00\x00\xfb"))
				fields = append(fields, packet(2, eofPayload(2))...)
				return []chunk{
					command(wire.ComSetOption, "\x00\x00"), server(1, eofPayload(2)...),
					command(wire.ComStatistics, ""), server(1, []byte("Uptime: 1  Threads: 2")...),
					command(wire.ComFieldList, "t\x00"), fromServer(fields),
					command(0x0F, ""), server(1, errPayload(1047, "08S01", "Unknown command")...),
				}
			},
			[]string{`1 SET_OPTION "\x00\x00"`, `2 STATISTICS ""`, `3 FIELD_LIST "t\x00"`, `4 TIME "" error=1047/08S01`},
			"",
		},
		{
			"LOCAL INFILE: what the client sends is a file, not commands", func(wire.Capabilities) []chunk {
				return []chunk{
					command(wire.ComQuery, "LOAD DATA LOCAL INFILE 'x' INTO TABLE t"), server(1, []byte("\xfbx")...),
					client(2, []byte("\x03DROP TABLE t")...), client(3), server(4, okPayload(1, 2)...),
					command(wire.ComQuery, "DO 1"), server(1, okPayload(0, 2)...),
				}
			},
			[]string{`1 QUERY "LOAD DATA LOCAL INFILE 'x' INTO TABLE t" affected=1 infile`, `2 QUERY "DO 1"`},
			"",
		},
		{
			"CHANGE_USER: rounds of authentication are no commands, and statements are gone after it", func(caps wire.Capabilities) []chunk {
				return []chunk{
					command(wire.ComStmtPrepare, "SELECT c FROM t WHERE id=?"), fromServer(prepareReply(1, 1, caps)),
					command(wire.ComChangeUser, "other\x00\x14"+"secretsecretsecretse"+"db2\x00\x2d\x00"),
					server(1, []byte("\xfemysql_native_password\x00abcdefghijklmnopqrst\x00")...),
					client(2, []byte("\x03DROP TABLE secrets!!")...), server(3, okPayload(0, 2)...),
					execute(1, 0, longlong, 1, 0, 0, 0, 0, 0, 0, 0), server(1, errPayload(1243, "HY000", "unknown")...),
				}
			},
			[]string{
				`1 STMT_PREPARE "SELECT c FROM t WHERE id=?" id=1`, `2 CHANGE_USER "other"`,
				`3 STMT_EXECUTE "" id=1 error=1243/HY000 text-unknown`,
			},
			"",
		},
		{
			"the end: unanswered, and cut within the reply", func(caps wire.Capabilities) []chunk {
				reply := resultSet(1, caps, 2, one, one)
				return []chunk{command(wire.ComQuery, "SELECT c"), fromServer(reply[:len(reply)-12]), command(wire.ComQuery, "SELECT d")}
			},
			[]string{`1 QUERY "SELECT c" sets=1 rows=1 cut`, `2 QUERY "SELECT d" unanswered`},
			"",
		},
		{
			"a parting error belongs to no statement", func(wire.Capabilities) []chunk {
				return []chunk{command(wire.ComPing, ""), server(1, okPayload(0, 2)...), server(0, errPayload(4031, "HY000", "idle")...)}
			},
			[]string{`1 PING ""`},
			"",
		},
		{
			"nonsense from the server", func(wire.Capabilities) []chunk {
				return []chunk{command(wire.ComQuery, "SELECT 1"), server(1, []byte("\xfe\x00\x00\x02\x00")...), command(wire.ComQuery, "SELECT 2")}
			},
			[]string{`1 QUERY "SELECT 1" unparsed`},
			"COM_QUERY: not the reply that was expected: an EOF in front of a result",
		},
		{
			"replication leaves the protocol", func(wire.Capabilities) []chunk {
				return []chunk{command(wire.ComBinlogDump, "\x04\x00\x00\x00"), server(1, []byte("\x00event")...)}
			},
			[]string{`1 BINLOG_DUMP "\x04\x00\x00\x00" unparsed`},
			"COM_BINLOG_DUMP turns the connection into another protocol",
		},
	}
	for _, tt := range tests {
		for style, caps := range styles {
			for _, size := range []int{1, 3, 1 << 20} {
				t.Run(fmt.Sprintf("%s/%s/%d bytes a read", tt.name, style, size), func(t *testing.T) {
					l := follow(t, size, 0, append(login(caps), tt.script(caps)...)...)
					if got, want := strings.Join(l.lines, "\n"), strings.Join(tt.want, "\n"); got != want {
						t.Errorf("got\n%s\nwant\n%s", got, want)
					}
					if l.lost != tt.lost {
						t.Errorf("lost %q, want %q", l.lost, tt.lost)
					}
				})
			}
		}
	}
}

func TestLogin(t *testing.T) {
	caps := baseCaps | wire.SessionTrack
	l := follow(t, 5, 0, login(caps)...)
	if len(l.starts) != 1 {
		t.Fatalf("%d logins, want 1", len(l.starts))
	}
	s := l.starts[0]
	got := fmt.Sprintf("%s %s %d %d %s %t", s.User, s.Schema, s.Collation, s.ConnectionID, s.ServerVersion, s.Capabilities == caps)
	if want := "sbtest sbtest 45 7 5.5.5-10.11.19-MariaDB true"; got != want {
		t.Errorf("login %q, want %q", got, want)
	}
}

func TestRefusedLogins(t *testing.T) {
	refused := login(baseCaps)
	refused[2] = server(2, errPayload(1045, "28000", "Access denied")...)
	for name, chunks := range map[string][]chunk{
		"wrong password":       refused,
		"too many connections": {server(0, []byte("\xff\x10\x04Too many connections")...)},
	} {
		l := &listener{}
		f := session.Follower{Handler: l}
		for _, c := range chunks {
			if c.fromClient {
				f.FromClient(c.data, 1, 1)
			} else {
				f.FromServer(c.data, 1)
			}
		}
		end := f.Close(2)
		if end.LoggedIn || end.Parting.Errno == 0 || l.lost != "" || len(l.starts) != 0 {
			t.Errorf("%s: end %+v, lost %q, %d starts", name, end, l.lost, len(l.starts))
		}
	}
}

// A packet of exactly 16 MiB − 1 bytes is continued by an empty one; a row whose first column is that long begins with
// FE and is no terminator.
func TestSixteenMiB(t *testing.T) {
	for _, length := range []int{wire.MaxPayload - 1, wire.MaxPayload, wire.MaxPayload + 1, 2 * wire.MaxPayload} {
		text := "SELECT '" + strings.Repeat("x", length-1-9) + "'"
		row := append([]byte{0xFE}, bytes.Repeat([]byte{0}, length-1)...)
		if length < wire.MaxPayload { // so short a packet beginning with FE could only be the terminator
			row[0] = 0xFD
		}
		l := follow(t, 1<<20, 0, append(login(baseCaps|wire.DeprecateEOF),
			command(wire.ComQuery, text), fromServer(resultSet(1, baseCaps|wire.DeprecateEOF, 2, row)),
			command(wire.ComQuery, "DO 1"), server(1, okPayload(0, 2)...))...)
		if len(l.lines) != 2 || string(l.statements[0].Text) != text || l.lines[1] != `2 QUERY "DO 1"` {
			t.Fatalf("payload of %d bytes: %d statements, lost %q", length, len(l.lines), l.lost)
		}
		if got := l.statements[0].Outcome.Rows; got != 1 {
			t.Errorf("payload of %d bytes: %d rows, want 1", length, got)
		}
		reply := resultSet(1, baseCaps|wire.DeprecateEOF, 2, row)
		if got := l.statements[0].Outcome.ReplyBytes; got != uint64(len(reply)) {
			t.Errorf("row of %d bytes: %d bytes of reply counted, want %d", length, got, len(reply))
		}
		wantBytes := uint64(length + wire.HeaderLen*(1+length/wire.MaxPayload))
		if got := l.statements[0].RequestBytes; got != wantBytes {
			t.Errorf("payload of %d bytes: %d bytes counted, want %d", length, got, wantBytes)
		}
	}
}

func TestLongStatementsKeepTheirBeginning(t *testing.T) {
	text := "INSERT INTO t VALUES ('" + strings.Repeat("abc", 1000) + "')"
	for _, size := range []int{1, 100, 1 << 20} {
		l := follow(t, size, 64, append(login(baseCaps), command(wire.ComQuery, text), server(1, okPayload(1, 2)...))...)
		s := l.statements[0]
		if !s.Flags.Has(capture.Truncated) || s.TextLen != uint64(len(text)) || !strings.HasPrefix(text, string(s.Text)) || len(s.Text) != 63 {
			t.Errorf("%d bytes a read: flags %b, text of %d bytes, length %d, want truncated, 63, %d", size, s.Flags, len(s.Text), s.TextLen, len(text))
		}
		want := fnv.New64a()
		want.Write([]byte(text))
		if s.TextHash != want.Sum64() {
			t.Errorf("%d bytes a read: hash %x, want that of the whole text, %x", size, s.TextHash, want.Sum64())
		}
	}
}

func TestSchema(t *testing.T) {
	track := wire.AppendOK(nil, 0, wire.OK{Status: 2 | wire.StatusStateChanged})
	track = append(track, 0)                        // info
	track = append(track, "\x06\x01\x04\x03db3"...) // schema
	for _, caps := range []wire.Capabilities{baseCaps, baseCaps | wire.SessionTrack} {
		use := okPayload(0, 2)
		third := command(wire.ComQuery, "USE `db3`;")
		if caps.Has(wire.SessionTrack) {
			use, third = track, command(wire.ComQuery, "CALL moves_to_db3()")
		}
		l := follow(t, 1<<20, 0, append(login(caps),
			command(wire.ComQuery, "DO 1"), server(1, okPayload(0, 2)...),
			command(wire.ComInitDB, "db2"), server(1, okPayload(0, 2)...),
			third, server(1, use...),
			command(wire.ComInitDB, "nosuch"), server(1, errPayload(1049, "42000", "unknown database")...),
			command(wire.ComQuery, "DO 2"), server(1, okPayload(0, 2)...))...)
		var got []string
		for _, s := range l.statements {
			got = append(got, string(s.Schema))
		}
		if want := "sbtest sbtest db2 db3 db3"; strings.Join(got, " ") != want {
			t.Errorf("session track %t: schemas %q, want %q", caps.Has(wire.SessionTrack), got, want)
		}
	}
}

func TestTimes(t *testing.T) {
	l := &listener{}
	f := session.Follower{Handler: l}
	for _, c := range login(baseCaps) {
		if c.fromClient {
			f.FromClient(c.data, 1, 1)
		} else {
			f.FromServer(c.data, 1)
		}
	}
	query := command(wire.ComQuery, "SELECT c FROM t").data
	reply := resultSet(1, baseCaps, 2, []byte("\x01a"))
	f.FromClient(query[:6], 100, 105)
	if got := f.Arriving(); got != 100 {
		t.Errorf("Arriving() = %d within a command, want 100", got)
	}
	f.FromClient(query[6:], 110, 0) // shown before the write returned
	if got := f.Arriving(); got != 0 {
		t.Errorf("Arriving() = %d between commands, want 0", got)
	}
	f.FromServer(reply[:2], 120)
	f.FromServer(reply[2:10], 125)
	f.Passed(130)
	f.Stalled(7)
	f.FromServer(reply[10:], 140)
	s := l.statements[0]
	got := []time.Duration{s.Received, s.Complete, s.Sent, s.First, s.Done, s.Stalled}
	if want := []time.Duration{100, 110, 130, 125, 140, 7}; fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("received, complete, sent, first, done, stalled = %v, want %v", got, want)
	}
}

// A file that is too long to be kept takes nothing from those that come later.
func TestKeptFiles(t *testing.T) {
	l := &listener{}
	f := session.Follower{Handler: l, MaxStatement: 100, KeepFiles: true}
	show := func(c chunk) {
		if c.fromClient {
			f.FromClient(c.data, 1, 1)
		} else {
			f.FromServer(c.data, 1)
		}
	}
	for _, c := range login(baseCaps) {
		show(c)
	}
	want := []string{"a,b\n", "", "c,d\n", ""}
	for _, content := range []string{"a,b\n", strings.Repeat("x", 101), "c,d\n", ""} {
		show(command(wire.ComQuery, "LOAD DATA LOCAL INFILE 'x' INTO TABLE t"))
		show(server(1, []byte("\xfbx")...))
		if content != "" {
			show(client(2, []byte(content)...))
		}
		show(client(3))
		show(server(4, okPayload(1, 2)...))
	}
	for i, s := range l.statements {
		kept := i != 1
		if l.files[i] != want[i] || s.Flags.Has(capture.FileKept) != kept {
			t.Errorf("file %d: %q, flags %q, want %q, kept %t", i, l.files[i], s.Flags.Names(), want[i], kept)
		}
	}
	if len(l.statements) != len(want) {
		t.Errorf("%d statements, want %d", len(l.statements), len(want))
	}
}

// The server accepted a login while the client was still within a packet of it: what is left of that is no command.
func TestPacketAcrossTheEndOfTheLogin(t *testing.T) {
	l := &listener{}
	f := session.Follower{Handler: l}
	chunks := login(baseCaps)
	f.FromServer(chunks[0].data, 1)
	f.FromClient(chunks[1].data, 1, 1)
	half := client(3, []byte("more-auth-data")...).data
	f.FromClient(half[:8], 2, 2)
	f.FromServer(chunks[2].data, 3)
	f.FromClient(half[8:], 4, 4)
	f.FromClient(command(wire.ComQuery, "DO 1").data, 5, 5)
	f.FromServer(server(1, okPayload(0, 2)...).data, 6)
	if want := `1 QUERY "DO 1"`; strings.Join(l.lines, "\n") != want || l.lost != "" {
		t.Errorf("got %q, lost %q, want %q", l.lines, l.lost, want)
	}
}

// Streams with bytes changed must never panic, every command is reported once, and it makes no difference how the chunks
// are cut. Of each chunk a stream has the side (odd is the client's), the length in one byte, and the bytes; the seeds in
// testdata were recorded from a real server.
func FuzzFollower(f *testing.F) {
	z := framing{compress: zlibbed, size: 50}
	for _, caps := range []wire.Capabilities{baseCaps, baseCaps | wire.DeprecateEOF | wire.CacheMetadata, baseCaps | wire.Compress} {
		var stream []byte
		for i, c := range conversation(caps) {
			if i > 2 && caps.Has(wire.Compress) {
				c.data = z.frames(c.data)
			}
			side := byte(0)
			if c.fromClient {
				side = 1
			}
			stream = append(append(stream, side, byte(len(c.data))), c.data...) // none is longer than 255 bytes
		}
		f.Add(stream)
	}
	f.Fuzz(func(t *testing.T, stream []byte) {
		const plenty = 1 << 30
		whole, split := replayStream(t, stream, 255, plenty), replayStream(t, stream, 3, plenty)
		if strings.HasPrefix(whole.lost, "internal error") {
			t.Fatalf("panic: %s", whole.lost)
		}
		for _, l := range []*listener{whole, replayStream(t, stream, 255, 0)} {
			if uint64(len(l.statements)) != l.end.Commands {
				t.Fatalf("%d commands reported, %d counted", len(l.statements), l.end.Commands)
			}
		}
		if !slices.Equal(whole.lines, split.lines) || whole.lost != split.lost || whole.end != split.end {
			t.Fatalf("at once\n%q, lost %q, %+v\nin pieces\n%q, lost %q, %+v", whole.lines, whole.lost, whole.end, split.lines, split.lost, split.end)
		}
	})
}

// replayStream shows a stream of FuzzFollower's to a follower with so much memory, at most size bytes at a time. In the
// end all memory must have been given back.
func replayStream(t *testing.T, stream []byte, size, limit int) *listener {
	l := &listener{}
	memory := capture.NewMemory(limit)
	follower := session.Follower{Handler: l, MaxStatement: 1 << 12, KeepFiles: true, Memory: memory}
	at := time.Duration(1)
	for ; len(stream) > 2; at++ {
		n := min(int(stream[1]), len(stream)-2)
		for data := stream[2 : 2+n]; len(data) > 0; data = data[min(size, len(data)):] {
			part := bytes.Clone(data[:min(size, len(data))])
			if stream[0]&1 == 1 {
				follower.FromClient(part, at, at)
			} else {
				follower.FromServer(part, at)
			}
			clear(part)
		}
		stream = stream[2+n:]
	}
	l.end = follower.Close(at)
	if used := memory.Used(); used != 0 {
		t.Fatalf("%d bytes a read, memory of %d: %d bytes still taken in the end", size, limit, used)
	}
	return l
}

// The statements that the cost of following is measured by.
func benchmarked(caps wire.Capabilities) map[string][2][]byte {
	text := append([]byte{119}, bytes.Repeat([]byte("1"), 119)...)
	binary := append([]byte{0, 0}, text...)
	return map[string][2][]byte{
		"point select": {command(wire.ComQuery, "SELECT c FROM sbtest1 WHERE id=5012").data, resultSet(1, caps, 2, text)},
		"execute":      {execute(3, 0, nil, 42, 0, 0, 0, 0, 0, 0, 0).data, resultSet(1, caps, 2, binary)},
		"100 rows":     {command(wire.ComQuery, "SELECT c FROM sbtest1 WHERE id BETWEEN 1 AND 100").data, resultSet(1, caps, 2, slices.Repeat([][]byte{text}, 100)...)},
	}
}

func BenchmarkFollower(b *testing.B) {
	caps := baseCaps | wire.DeprecateEOF | wire.SessionTrack
	for name, s := range benchmarked(caps) {
		b.Run(name, func(b *testing.B) {
			f := session.Follower{Handler: discard{}, Memory: capture.NewMemory(1 << 20)}
			for _, c := range append(login(caps), command(wire.ComStmtPrepare, "SELECT c FROM t WHERE id=?"), fromServer(prepareReply(3, 1, caps)),
				execute(3, 0, []byte{8, 0}, 42, 0, 0, 0, 0, 0, 0, 0), fromServer(s[1])) {
				if c.fromClient {
					f.FromClient(c.data, 1, 1)
				} else {
					f.FromServer(c.data, 1)
				}
			}
			b.ReportAllocs()
			for b.Loop() {
				f.FromClient(s[0], 1, 2)
				f.FromServer(s[1], 3)
			}
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "statements/s")
		})
	}
}

type discard struct{}

func (discard) LoggedIn(*capture.SessionStart) {}
func (discard) Done(*capture.Statement)        {}
func (discard) Lost(string, uint64, uint64)    {}
