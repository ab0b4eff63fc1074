package session_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"redrive/internal/wire"
)

// What proxies, servers and drivers have been caught at while they followed the protocol, by kind, and where it is tried
// here. What only a relay or a client can get wrong is tried in package proxy and internal/client.
//
//	kind                                                        tests
//	errors in front of the login, with and without SQLSTATE     TestRefusedLogins, TestLoginKinds
//	capabilities of one side only, MariaDB's in MySQL's filler  TestLoginKinds, wire.TestNegotiate
//	rounds of authentication: switches, factors, empty packets  TestLoginKinds
//	commands ahead of the end of an authentication              TestLoginKinds, TestChangeUserKinds
//	CHANGE_USER and RESET_CONNECTION                            TestChangeUserKinds, TestFollow
//	status read at the other layout's offset, EOF styles        TestReplyKinds, TestFollow
//	an ERR anywhere, also a long one                            TestReplyKinds, TestFollow
//	rows taken for OKs or terminators                           TestReplyKinds, TestFollow, TestSixteenMiB
//	malformed counts and OKs                                    TestLostKinds, FuzzFollower
//	OKs with a tail that is missing, or of unknown types        TestReplyKinds, TestSchema
//	commands with odd replies or none                           TestFollow, TestReplyKinds
//	replies of PREPARE: short, without columns, with EOFs       TestPrepareKinds
//	cursors: several, over nothing, with both of their flags    TestPrepareKinds, TestFollow
//	types, NULLs and long data across executes                  TestPrepareKinds, wire.TestParameterValues
//	query attributes                                            TestPrepareKinds, wire.TestQueryText
//	bulk executes                                               TestPrepareKinds
//	LOCAL INFILE: file data as commands, two files, early ends  TestInfileKinds, TestFollow
//	several results: errors, OUT parameters, sums               TestReplyKinds, TestFollow
//	pipelining, EXECUTE −1, CLOSE in front                      TestFollow, TestAnySplit
//	packets of 16 MiB and more                                  TestSixteenMiB, TestInfileKinds
//	compression: frames and packets, sequence ids               TestCompressed
//	errors nobody asked for, and such in the middle of uploads  TestUnaskedKinds
//	being lost: said once, and never recovered from by guess    TestLostKinds
//	flags that lie about transactions                           TestTransactions
//	texts of prepared statements kept once                      TestPreparedTextsAreShared
//	times before the first byte                                 TestTimes
//	an ERR of ours in the place of a reply's rest               TestInterrupt, TestClientsTakeInterruptions

// A script is a conversation behind the login, and what a follower must make of it.
type script struct {
	name   string
	chunks func(caps wire.Capabilities) []chunk
	want   []string
	lost   string
}

func (s *script) run(t *testing.T, caps wire.Capabilities) {
	t.Helper()
	for _, size := range []int{1, 2, 7, 1 << 20} {
		t.Run(fmt.Sprintf("%s/%d bytes a read", s.name, size), func(t *testing.T) {
			l := follow(t, size, 0, append(login(caps), s.chunks(caps)...)...)
			if got, want := strings.Join(l.lines, "\n"), strings.Join(s.want, "\n"); got != want {
				t.Errorf("got\n%s\nwant\n%s", got, want)
			}
			if l.lost != s.lost {
				t.Errorf("lost %q, want %q", l.lost, s.lost)
			}
		})
	}
}

// both runs the scripts under capabilities of either EOF style.
func both(t *testing.T, extra wire.Capabilities, scripts []script) {
	for style, caps := range map[string]wire.Capabilities{"EOF": baseCaps, "no EOF": baseCaps | wire.DeprecateEOF} {
		t.Run(style, func(t *testing.T) {
			for _, s := range scripts {
				s.run(t, caps|extra)
			}
		})
	}
}

var ok = okPayload(0, 2)

func TestLoginKinds(t *testing.T) {
	ping := []chunk{command(wire.ComPing, ""), server(1, ok...)}
	plain := login(baseCaps)
	greeting := plain[0]
	response := wire.HandshakeResponse{Capabilities: baseCaps, Collation: 45, User: "u", Schema: "s"}
	attributes := wire.HandshakeResponse{Capabilities: baseCaps | wire.ConnectAttrs | wire.LenencAuthData, User: "u", AuthData: bytes.Repeat([]byte("t"), 1000)}
	for i := range 60 {
		attributes.Attributes = append(attributes.Attributes, wire.Attribute{Name: fmt.Sprint("name", i), Value: strings.Repeat("v", 1000)})
	}
	mysqlDialect := wire.HandshakeResponse{Capabilities: baseCaps | wire.LongPassword | wire.CacheMetadata, User: "u"}
	switchTo := []byte("\xfecaching_sha2_password\x00abcdefghijklmnopqrst\x00")
	tests := []struct {
		name   string
		chunks []chunk
		more   []chunk
		want   string
	}{
		{"no plugin fields", []chunk{greeting, client(1, (&wire.HandshakeResponse{Capabilities: wire.Protocol41 | wire.SecureConnection, User: "u"}).Append(nil)...), server(2, ok...)}, ping, "1 PING"},
		{"a switch to the plugin the client named, an empty packet, more data twice, another factor", []chunk{
			greeting, client(1, response.Append(nil)...),
			server(2, switchTo...), client(3), server(4, 1, 4), client(5, []byte("hush\x00")...),
			server(6, []byte("\x02mysql_clear_password\x00")...), client(7, []byte("\x03hush")...),
			server(8, 1, 3), server(9, ok...),
		}, ping, "1 PING"},
		{"plugin data that begins with 00", []chunk{greeting, client(1, response.Append(nil)...), server(2, 0, 1, 2), client(3, 1), server(4, ok...)}, ping, "1 PING"},
		{"attributes of 60 KB and a token of 1000 bytes", []chunk{server(0, greetingPayload(attributes.Capabilities)...), client(1, attributes.Append(nil)...), server(2, ok...)}, ping, "1 PING"},
		{"session state in the login's OK", []chunk{
			server(0, greetingPayload(baseCaps|wire.SessionTrack)...),
			client(1, (&wire.HandshakeResponse{Capabilities: baseCaps | wire.SessionTrack, User: "u"}).Append(nil)...),
			server(2, []byte("\x00\x00\x00\x02\x40\x00\x00\x00\x09\x00\x07\x01a\x04long\x01")...),
		}, ping, "1 PING"},
		{
			"MariaDB's capabilities in the filler of a MySQL client",
			[]chunk{server(0, greetingPayload(baseCaps|wire.CacheMetadata)...), client(1, mysqlDialect.Append(nil)...), server(2, ok...)},
			[]chunk{command(wire.ComQuery, "SELECT 1"), fromServer(resultSet(1, baseCaps, 2, []byte("\x011")))},
			"1 QUERY sets=1 rows=1",
		},
		{"a QUIT in one segment with the response", []chunk{
			greeting, {true, append(packet(1, response.Append(nil)), packet(0, []byte{wire.ComQuit})...)}, server(2, ok...),
		}, nil, "1 QUIT"},
		{"a round with sequence id 0 that the server asked for", []chunk{
			greeting, client(1, response.Append(nil)...), server(255, 1, 4), client(0, []byte("\x03hush")...), server(1, ok...),
		}, ping, "1 PING"},
	}
	for _, tt := range tests {
		for _, size := range []int{1, 5, 1 << 20} {
			l := follow(t, size, 0, append(tt.chunks, tt.more...)...)
			var got []string
			for _, line := range l.lines {
				got = append(got, strings.Join(strings.Fields(strings.NewReplacer(`"SELECT 1"`, "", `""`, "").Replace(line)), " "))
			}
			if strings.Join(got, "; ") != tt.want || l.lost != "" || !l.end.LoggedIn {
				t.Errorf("%s, %d bytes a read: got %q, lost %q, end %+v, want %q", tt.name, size, got, l.lost, l.end, tt.want)
			}
		}
	}
}

// Commands sent ahead of a login that fails have run nowhere.
func TestCommandsAheadOfAFailedLogin(t *testing.T) {
	chunks := login(baseCaps)
	chunks[1].data = append(chunks[1].data, packet(0, []byte{wire.ComQuit})...)
	chunks[2] = server(2, errPayload(1045, "28000", "Access denied")...)
	l := follow(t, 3, 0, chunks...)
	if len(l.lines) != 0 || l.end.Parting.Errno != 1045 || l.end.Commands != 0 {
		t.Errorf("got %q, end %+v, want no command, and error 1045", l.lines, l.end)
	}
}

func TestChangeUserKinds(t *testing.T) {
	changeUser := command(wire.ComChangeUser, "other\x00\x14secretsecretsecretsedb2\x00\x2d\x00")
	query := []chunk{command(wire.ComQuery, "DO 1"), server(1, ok...)}
	both(t, 0, []script{
		{"refused: the statements may still be there", func(caps wire.Capabilities) []chunk {
			return append([]chunk{
				command(wire.ComStmtPrepare, "SELECT c FROM t WHERE id=?"), fromServer(prepareReply(1, 1, caps)),
				changeUser, server(1, []byte("\xfemysql_native_password\x00abcdefghijklmnopqrst\x00")...), client(2, make([]byte, 20)...),
				server(3, errPayload(1045, "28000", "no")...),
				command(wire.ComStmtReset, "\x01\x00\x00\x00"), server(1, ok...),
			}, query...)
		}, []string{
			`1 STMT_PREPARE "SELECT c FROM t WHERE id=?" id=1`, `2 CHANGE_USER "other" error=1045/28000`,
			`3 STMT_RESET "SELECT c FROM t WHERE id=?" id=1`, `4 QUERY "DO 1"`,
		}, ""},
		{"taken at once, with a query behind it in the same segment", func(wire.Capabilities) []chunk {
			return []chunk{{true, append(bytes.Clone(changeUser.data), query[0].data...)}, server(1, ok...), query[1]}
		}, []string{`1 CHANGE_USER "other"`, `2 QUERY "DO 1"`}, ""},
		{"behind a query that is not answered", func(wire.Capabilities) []chunk {
			return []chunk{
				query[0], changeUser, query[1], server(1, 1, 4), client(2, []byte("\x03hush")...), server(3, ok...),
				query[0], query[1],
			}
		}, []string{`1 QUERY "DO 1"`, `2 CHANGE_USER "other"`, `3 QUERY "DO 1"`}, ""},
		{"RESET_CONNECTION drops statements; a CLOSE of one gone has no reply", func(caps wire.Capabilities) []chunk {
			return append([]chunk{
				command(wire.ComStmtPrepare, "SELECT c FROM t WHERE id=?"), fromServer(prepareReply(1, 1, caps)),
				command(wire.ComResetConnection, ""), server(1, ok...), command(wire.ComStmtClose, "\x01\x00\x00\x00"),
				execute(wire.LastStatementID, 0, nil), server(1, errPayload(1243, "HY000", "unknown")...),
			}, query...)
		}, []string{
			`1 STMT_PREPARE "SELECT c FROM t WHERE id=?" id=1`, `2 RESET_CONNECTION ""`, `3 STMT_CLOSE "" id=1`,
			`4 STMT_EXECUTE "" error=1243/HY000 text-unknown`, `5 QUERY "DO 1"`,
		}, ""},
	})
}

func TestReplyKinds(t *testing.T) {
	row := []byte("\x01a")
	tail := func(status uint16, tail string) chunk {
		return server(1, append(wire.AppendOK(nil, 0, wire.OK{Status: status}), tail...)...)
	}
	ping := []chunk{command(wire.ComPing, ""), server(1, ok...)}
	both(t, wire.SessionTrack|wire.Progress, []script{
		{"an ERR of 5000 bytes", func(wire.Capabilities) []chunk {
			return append([]chunk{command(wire.ComQuery, "SELECT x"), server(1, errPayload(1105, "HY000", strings.Repeat("m", 5000))...)}, ping...)
		}, []string{`1 QUERY "SELECT x" error=1105/HY000`, `2 PING ""`}, ""},
		{"an ERR in place of a definition", func(wire.Capabilities) []chunk {
			return append([]chunk{command(wire.ComQuery, "SELECT x"), server(1, 2), server(2, errPayload(1317, "70100", "")...)}, ping...)
		}, []string{`1 QUERY "SELECT x" sets=1 rows=0 error=1317/70100`, `2 PING ""`}, ""},
		{"progress in front of a result and between rows", func(caps wire.Capabilities) []chunk {
			progress := packet(1, []byte("\xff\xff\xff\x01\x01\x02\x00\x00\x00\x05stage"))
			set := resultSet(1, caps, 2, row)
			return append([]chunk{command(wire.ComQuery, "ALTER"), fromServer(progress), fromServer(progress), fromServer(set)}, ping...)
		}, []string{`1 QUERY "ALTER" sets=1 rows=1`, `2 PING ""`}, ""},
		{"a terminator in the EOF's form", func(caps wire.Capabilities) []chunk {
			set := resultSet(1, baseCaps, 2, row)
			if caps.Has(wire.DeprecateEOF) { // without the EOF behind the definitions
				set = resultSet(1, caps, 2, row)
				set = append(set[:len(set)-11], packet(9, eofPayload(2))...)
			}
			return append([]chunk{command(wire.ComQuery, "SELECT 1"), fromServer(set)}, ping...)
		}, []string{`1 QUERY "SELECT 1" sets=1 rows=1`, `2 PING ""`}, ""},
		{"warnings that look like more results", func(caps wire.Capabilities) []chunk {
			warned := wire.AppendOK(nil, 0, wire.OK{Status: 2, Warnings: 8})
			return append([]chunk{command(wire.ComQuery, "INSERT"), server(1, warned...)}, ping...)
		}, []string{`1 QUERY "INSERT"`, `2 PING ""`}, ""},
		{"session state announced and missing, of unknown types, cut off, not length-encoded", func(wire.Capabilities) []chunk {
			var chunks []chunk
			for _, t := range []string{"", "\x00", "\x00\x07\x63\x02ab\x02\x01\x31", "\x00\x50\x03\x09", "\x00\xff", "\x03inf\x06\x03\x04\x00\xffab"} {
				chunks = append(chunks, command(wire.ComQuery, "SET x"), tail(0x4002, t))
			}
			return append(chunks, ping...)
		}, []string{`1 QUERY "SET x"`, `2 QUERY "SET x"`, `3 QUERY "SET x"`, `4 QUERY "SET x"`, `5 QUERY "SET x"`, `6 QUERY "SET x"`, `7 PING ""`}, ""},
		{"a procedure: results, OUT parameters, its own OK", func(caps wire.Capabilities) []chunk {
			reply := resultSet(1, caps, 2|wire.StatusMoreResults, []byte{0, 0, 1, 'x'}, []byte{0, 0, 1, 'y'})
			reply = append(reply, resultSet(9, caps, 2|wire.StatusMoreResults|wire.StatusPSOutParams, []byte{0, 0, 1, 'o'})...)
			reply = append(reply, packet(14, okPayload(4, 2))...)
			return append([]chunk{command(wire.ComStmtPrepare, "CALL p(?)"), fromServer(prepareReply(1, 1, caps)), execute(1, 0, []byte{3, 0}, 1, 0, 0, 0), fromServer(reply)}, ping...)
		}, []string{`1 STMT_PREPARE "CALL p(?)" id=1`, `2 STMT_EXECUTE "CALL p(?)" id=1 sets=2 rows=3 affected=4 1`, `3 PING ""`}, ""},
		{"commands without a reply: two QUITs, a CLOSE of nothing; an empty packet", func(wire.Capabilities) []chunk {
			return []chunk{
				command(wire.ComStmtClose, "\x05\x00\x00\x00"), client(0), server(1, errPayload(1047, "08S01", "Unknown command")...),
				command(wire.ComQuit, ""), command(wire.ComQuit, ""),
			}
		}, []string{`1 STMT_CLOSE "" id=5`, `2 SLEEP "" error=1047/08S01`, `3 QUIT ""`, `4 QUIT ""`}, ""},
		{"a replication command that the server refuses", func(wire.Capabilities) []chunk {
			return append([]chunk{command(wire.ComBinlogDumpGTID, "\x00\x00"), server(1, errPayload(1047, "08S01", "Unknown command")...)}, ping...)
		}, []string{`1 BINLOG_DUMP_GTID "\x00\x00" error=1047/08S01`, `2 PING ""`}, ""},
	})
}

func TestManyColumns(t *testing.T) {
	for _, caps := range []wire.Capabilities{baseCaps, baseCaps | wire.DeprecateEOF} {
		definition := packet(2, []byte("\x03def\x00\x00\x00\x01c\x00\x0c\x2d\x00\x78\x00\x00\x00\xfe\x00\x00\x00\x00\x00"))
		reply := append(packet(1, []byte{0xFD, 0, 0, 1}), bytes.Repeat(definition, 65536)...)
		if !caps.Has(wire.DeprecateEOF) {
			reply = append(reply, packet(3, eofPayload(2))...)
		}
		reply = append(reply, packet(4, eofPayload(2))...)
		l := follow(t, 1000, 0, append(login(caps), command(wire.ComQuery, "SELECT many"), fromServer(reply), command(wire.ComPing, ""), server(1, ok...))...)
		if want := `1 QUERY "SELECT many" sets=1 rows=0|2 PING ""`; strings.Join(l.lines, "|") != want || l.lost != "" {
			t.Errorf("got %q, lost %q, want %s", l.lines, l.lost, want)
		}
	}
}

func TestPrepareKinds(t *testing.T) {
	ping := []chunk{command(wire.ComPing, ""), server(1, ok...)}
	two := []byte{3, 0, 0xFD, 0} // INT, VARCHAR
	insert := "INSERT INTO t VALUES (?,?)"
	prepare := func(caps wire.Capabilities) []chunk {
		reply := packet(1, []byte{0, 1, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0})
		definition := packet(2, []byte("\x03def\x00\x00\x00\x01?\x00\x0c\x3f\x00\x00\x00\x00\x00\xfd\x80\x00\x00\x00\x00"))
		reply = append(append(reply, definition...), definition...)
		if !caps.Has(wire.DeprecateEOF) {
			reply = append(reply, packet(4, eofPayload(2))...)
		}
		return []chunk{command(wire.ComStmtPrepare, insert), fromServer(reply)}
	}
	executed := func(nulls byte, types []byte, values string) []chunk {
		head := []byte{wire.ComStmtExecute, 1, 0, 0, 0, 0, 0, 0, 0, 0, nulls} // an iteration count of 0, as some drivers send
		if types != nil {
			head = append(append(head, 1), types...)
		} else {
			head = append(head, 0)
		}
		return []chunk{client(0, append(head, values...)...), server(1, ok...)}
	}
	join := func(groups ...[]chunk) func(wire.Capabilities) []chunk {
		return func(caps wire.Capabilities) []chunk {
			all := prepare(caps)
			for _, g := range append(groups, ping) {
				all = append(all, g...)
			}
			return all
		}
	}
	first := `1 STMT_PREPARE "INSERT INTO t VALUES (?,?)" id=1`
	line := func(n int, rest string) string { return fmt.Sprintf(`%d STMT_EXECUTE "%s" id=1 %s`, n, insert, rest) }
	long := func(param byte, data string) []chunk {
		return []chunk{client(0, append([]byte{wire.ComStmtSendLongData, 1, 0, 0, 0, param, 0}, data...)...)}
	}
	bulk := func(flags byte, rest string) []chunk {
		return []chunk{client(0, append([]byte{wire.ComStmtBulkExecute, 1, 0, 0, 0, flags, 0}, rest...)...), server(1, okPayload(3, 2)...)}
	}
	both(t, wire.StmtBulk, []script{
		{"types only in the first execute, NULLs in between", join(
			executed(0, two, "\x01\x00\x00\x00\x01a"), executed(2, nil, "\x02\x00\x00\x00"), executed(3, nil, ""), executed(0, nil, "\x03\x00\x00\x00\x01c"),
		), []string{first, line(2, `1 'a'`), line(3, `2 NULL`), line(4, `NULL NULL`), line(5, `3 'c'`), `6 PING ""`}, ""},
		{"the type NULL does not replace one that is known", join(
			executed(0, two, "\x01\x00\x00\x00\x01a"), executed(0, []byte{3, 0, 6, 0}, "\x02\x00\x00\x00"), executed(0, nil, "\x03\x00\x00\x00\x01c"),
		), []string{first, line(2, `1 'a'`), line(3, `2 NULL`), line(4, `3 'c'`), `5 PING ""`}, ""},
		{"types of an execute that failed are in force", join(
			append(executed(0, two, "\x01\x00\x00\x00\x01a")[:1], server(1, errPayload(1062, "23000", "dup")...)), executed(0, nil, "\x03\x00\x00\x00\x01c"),
		), []string{first, line(2, `error=1062/23000 1 'a'`), line(3, `3 'c'`), `4 PING ""`}, ""},
		{"NULLs without any types", join(executed(3, nil, "")), []string{first, line(2, `no-types`), `3 PING ""`}, ""},
		{"long data in two pieces, used up by the execute, cleared by a reset", join(
			long(1, "abc"), long(1, "def"), executed(0, two, "\x01\x00\x00\x00"), executed(0, nil, "\x02\x00\x00\x00\x01b"),
			long(0, "x"), []chunk{command(wire.ComStmtReset, "\x01\x00\x00\x00"), server(1, ok...)}, executed(0, nil, "\x03\x00\x00\x00\x01c"),
			long(9, "no such parameter"), executed(0, nil, "\x04\x00\x00\x00\x01d"),
		), []string{
			first, `2 STMT_SEND_LONG_DATA "\x01\x00abc" id=1`, `3 STMT_SEND_LONG_DATA "\x01\x00def" id=1`, line(4, `1 <long data>`), line(5, `2 'b'`),
			`6 STMT_SEND_LONG_DATA "\x00\x00x" id=1`, fmt.Sprintf("7 STMT_RESET %q id=1", insert), line(8, `3 'c'`),
			`9 STMT_SEND_LONG_DATA "\t\x00no such parameter" id=1`, line(10, `4 'd'`), `11 PING ""`,
		}, ""},
		{"bulk: one command, its types remembered, an execute after it", join(
			bulk(128, "\x03\x00\xfd\x00"+"\x00\x01\x00\x00\x00\x00\x01a"+"\x01\x01"), bulk(64, "\x02\x03"), executed(0, nil, "\x03\x00\x00\x00\x01c"),
		), []string{
			first, fmt.Sprintf("2 STMT_BULK_EXECUTE %q id=1 affected=3 types=0300fd00 values=0000000100000000016101%s", insert, "01"),
			fmt.Sprintf("3 STMT_BULK_EXECUTE %q id=1 affected=3 types=0300fd00 values=40000203", insert), line(4, `3 'c'`), `5 PING ""`,
		}, ""},
		{"two cursors in turn, both flags at the end, one over nothing", func(caps wire.Capabilities) []chunk {
			open := resultSet(1, caps, 2|wire.StatusCursorExists)
			fetched := func(flags uint16, rows int) chunk {
				b := bytes.Repeat(packet(1, []byte{0, 0, 1, 'x'}), rows)
				return fromServer(append(b, packet(3, eofPayload(2|flags))...))
			}
			if !caps.Has(wire.DeprecateEOF) {
				open = open[:len(open)-9]
			}
			var chunks []chunk
			for id := byte(4); id < 6; id++ {
				chunks = append(chunks, command(wire.ComStmtPrepare, "SELECT c FROM t WHERE id=?"), fromServer(prepareReply(id, 1, caps)),
					execute(uint32(id), wire.CursorReadOnly, []byte{8, 0}, 1, 0, 0, 0, 0, 0, 0, 0), fromServer(open))
			}
			return append(chunks,
				command(wire.ComStmtFetch, "\x04\x00\x00\x00\x02\x00\x00\x00"), fetched(wire.StatusCursorExists, 2),
				command(wire.ComStmtFetch, "\x05\x00\x00\x00\x02\x00\x00\x00"), fetched(wire.StatusCursorExists|wire.StatusLastRowSent, 0),
				command(wire.ComStmtFetch, "\x04\x00\x00\x00\x02\x00\x00\x00"), fetched(wire.StatusLastRowSent, 1),
				command(wire.ComStmtFetch, "\x04\x00\x00\x00\x02\x00\x00\x00"), server(1, errPayload(1421, "HY000", "no cursor")...))
		}, []string{
			`1 STMT_PREPARE "SELECT c FROM t WHERE id=?" id=4`, `2 STMT_EXECUTE "SELECT c FROM t WHERE id=?" id=4 sets=1 rows=0 1 cursor`,
			`3 STMT_PREPARE "SELECT c FROM t WHERE id=?" id=5`, `4 STMT_EXECUTE "SELECT c FROM t WHERE id=?" id=5 sets=1 rows=0 1 cursor`,
			`5 STMT_FETCH "SELECT c FROM t WHERE id=?" id=4 sets=0 rows=2`, `6 STMT_FETCH "SELECT c FROM t WHERE id=?" id=5 sets=0 rows=0`,
			`7 STMT_FETCH "SELECT c FROM t WHERE id=?" id=4 sets=0 rows=1`, `8 STMT_FETCH "SELECT c FROM t WHERE id=?" id=4 sets=0 rows=0 error=1421/HY000`,
		}, ""},
		{"a cursor asked for and not opened", func(caps wire.Capabilities) []chunk {
			return append([]chunk{
				command(wire.ComStmtPrepare, "CALL p(?)"), fromServer(prepareReply(4, 1, caps)),
				execute(4, wire.CursorReadOnly, []byte{8, 0}, 1, 0, 0, 0, 0, 0, 0, 0), fromServer(append(resultSet(1, caps, 2|wire.StatusMoreResults, []byte{0, 0, 1, 'x'}), packet(7, ok)...)),
			}, ping...)
		}, []string{`1 STMT_PREPARE "CALL p(?)" id=4`, `2 STMT_EXECUTE "CALL p(?)" id=4 sets=1 rows=1 1 cursor`, `3 PING ""`}, ""},
		{"replies of PREPARE: ten bytes, nothing behind them, an ERR in place of a definition", func(wire.Capabilities) []chunk {
			return append([]chunk{
				command(wire.ComStmtPrepare, "DO 1"), server(1, 0, 7, 0, 0, 0, 0, 0, 0, 0, 0),
				command(wire.ComStmtExecute, "\x07\x00\x00\x00\x00\x01\x00\x00\x00"), server(1, ok...),
				command(wire.ComStmtExecute, "\x07\x00\x00\x00\x00\x01\x00\x00\x00\x00"), server(1, ok...), // one byte more, as some drivers send
				command(wire.ComStmtPrepare, "SELECT ?"), server(1, 0, 8, 0, 0, 0, 1, 0, 1, 0, 0, 0, 0), server(2, errPayload(1317, "70100", "")...),
			}, ping...)
		}, []string{`1 STMT_PREPARE "DO 1" id=7`, `2 STMT_EXECUTE "DO 1" id=7`, `3 STMT_EXECUTE "DO 1" id=7`, `4 STMT_PREPARE "SELECT ?" error=1317/70100`, `5 PING ""`}, ""},
	})
}

// MySQL's clients may do without definitions: the count and the PREPARE's reply then say that none follow.
func TestMetadataLeftOut(t *testing.T) {
	both(t, wire.OptionalMetadata, []script{{"none, and all", func(caps wire.Capabilities) []chunk {
		withoutDefinitions := resultSet(1, caps|wire.CacheMetadata, 2, []byte("\x01a"), []byte("\x01b")) // the same layout as MariaDB's
		full := resultSet(1, caps, 2, []byte("\x01a"))
		full = append(packet(1, []byte{1, 1}), full[5:]...)
		return []chunk{
			command(wire.ComQuery, "SELECT a"), fromServer(withoutDefinitions), command(wire.ComQuery, "SELECT b"), fromServer(full),
			command(wire.ComStmtPrepare, "SELECT ?"), server(1, 0, 1, 0, 0, 0, 1, 0, 1, 0, 0, 0, 0, 0),
			command(wire.ComPing, ""), server(1, ok...),
		}
	}, []string{`1 QUERY "SELECT a" sets=1 rows=2`, `2 QUERY "SELECT b" sets=1 rows=1`, `3 STMT_PREPARE "SELECT ?" id=1`, `4 PING ""`}, ""}})
}
