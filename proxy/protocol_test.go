package proxy_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"io"
	"strings"
	"testing"
	"time"

	"redrive/capture"
	"redrive/internal/mysqltest"
	"redrive/internal/wire"
	"redrive/proxy"
)

// A step is one command of a conversation, and the file it uploads. Of some replies the bytes are another each time.
type step struct {
	payload string
	file    []string
	varies  bool
}

func ask(text string) step            { return step{payload: "\x03" + text} }
func com(code byte, rest string) step { return step{payload: string(code1(code)) + rest} }
func code1(code byte) []byte          { return []byte{code} }

func id(n uint32) string { return string(binary.LittleEndian.AppendUint32(nil, n)) }

// everything is every command of the protocol that leaves the connection alive, those that MariaDB does not know
// included. Statements' ids are given in order from 1 on.
func everything() []step {
	steps := []step{
		ask("CREATE OR REPLACE TABLE t (a INT PRIMARY KEY AUTO_INCREMENT, b VARCHAR(200) DEFAULT 'x', g POINT)"),
		ask("CREATE OR REPLACE PROCEDURE p(IN n INT, OUT o INT) BEGIN SELECT n; SELECT n, 2; SET o = 7; END"),
		ask("INSERT INTO t (b) VALUES ('one'), (NULL), ('')"), ask("SELECT * FROM t"), ask("SELECT * FROM t WHERE a > 99"),
		ask("INSERT INTO t (b) VALUES ('r') RETURNING a, b"), ask("SELECT nope"), ask(""), ask("/* nothing */"),
		ask("SELECT 1; SELECT 2, 'x'; UPDATE t SET b = 'y' WHERE a = 1; SELECT 3"), ask("SELECT 1;; SELECT 2"),
		ask("CALL p(1, @o)"), ask("BEGIN"), ask("COMMIT AND CHAIN"), ask("ROLLBACK"), ask("SET autocommit = 1"),
		ask("SELECT a, (SELECT b FROM t) FROM t"), ask("SELECT \x00\x1a\xff"), ask("SELECT '" + strings.Repeat("x", 300) + "'"),
		{payload: "\x03LOAD DATA LOCAL INFILE 'x' INTO TABLE t", file: []string{"\x03DROP TABLE t\n", "101\tfile\t\\N\n"}},
		{payload: "\x03LOAD DATA LOCAL INFILE 'x' INTO TABLE t"},
		{payload: "\x03LOAD DATA LOCAL INFILE 'x' INTO TABLE missing"},
		com(wire.ComStmtPrepare, "INSERT INTO t (a, b) VALUES (?, ?)"), com(wire.ComStmtPrepare, "SELECT a, b, ? FROM t WHERE a < ? ORDER BY a"),
		com(wire.ComStmtPrepare, "DO 1"), com(wire.ComStmtPrepare, "SELEC"), com(wire.ComStmtPrepare, "SELECT 1, 2 UNION SELECT 3, 4"),
		com(wire.ComStmtPrepare, "CALL p(?, ?)"),
	}
	for code := range 256 {
		switch byte(code) {
		case 0x00, 0x05, 0x06, 0x0B, 0x0F, 0x10, 0x13, 0x14, 0x1D, 0x1E, 0x20, 0x21, 0x22, 0x77, 0xA1, 0xA2, 0xA3, 0xFB, 0xFC, 0xFD, 0xFE:
			steps = append(steps, com(byte(code), "x")) // MariaDB knows none of them
		}
	}
	return append(append(steps, step{}), // an empty packet
		com(wire.ComInitDB, "information_schema"), com(wire.ComInitDB, "missing"), com(wire.ComFieldList, "CHARACTER_SETS\x00%"),
		com(wire.ComFieldList, "missing\x00"), com(0x07, "\x08"), step{payload: "\x09", varies: true}, step{payload: "\x0A", varies: true},
		com(wire.ComProcessKill, "\xff\xff\xff\x7f"), com(wire.ComDebug, ""), com(wire.ComPing, ""),
		com(wire.ComRegisterSlave, "\x01\x00\x00\x00\x00\x00\x00\xea\x0c\x00\x00\x00\x00\x00\x00\x00\x00"),
		com(wire.ComSetOption, "\x01\x00"), ask("SELECT 1; SELECT 2"), com(wire.ComSetOption, "\x00\x00"), com(wire.ComSetOption, "\x09\x00"),
		ask("SELECT 1; SELECT 2"),
	)
}

// prepared are commands of prepared statements: ids are those that the statements of everything were given.
func prepared(insert, selected, do, union, call uint32) []step {
	execute := func(id1 uint32, flags byte, rest string) step {
		return com(wire.ComStmtExecute, id(id1)+string(code1(flags))+"\x01\x00\x00\x00"+rest)
	}
	const types = "\x00\x01\x03\x00\xfd\x00" // no NULL; an INT, a string
	two := func(n uint32, s string) string { return id(n) + string(code1(byte(len(s)))) + s }
	return []step{
		execute(insert, 0, types+two(200, "typed")), execute(insert, 0, "\x00\x00"+two(201, "types from before")),
		execute(insert, 0, "\x02\x00"+id(202)), execute(insert, 0, types+two(200, "duplicate")),
		com(wire.ComStmtSendLongData, id(insert)+"\x01\x00long "), com(wire.ComStmtSendLongData, id(insert)+"\x01\x00data"), execute(insert, 0, "\x00\x00"+id(203)),
		com(wire.ComStmtSendLongData, id(insert)+"\x01\x00dropped"), com(wire.ComStmtReset, id(insert)), execute(insert, 0, "\x00\x00"+two(204, "kept")),
		com(wire.ComStmtBulkExecute, id(insert)+"\x80\x00\x03\x00\xfd\x00"+"\x00"+id(300)+"\x00\x01i"+"\x00"+id(301)+"\x01"),
		com(wire.ComStmtBulkExecute, id(insert)+"\x00\x00"+"\x00"+id(302)+"\x02"),
		execute(selected, 0, "\x00\x01\xfd\x00\x03\x00"+"\x01p"+id(250)), execute(selected, 1, "\x00\x00\x01q"+id(250)),
		com(wire.ComStmtFetch, id(selected)+id(2)), execute(union, 1, ""), com(wire.ComStmtFetch, id(union)+id(1)),
		com(wire.ComStmtFetch, id(selected)+id(999)), com(wire.ComStmtFetch, id(selected)+id(1)), com(wire.ComStmtFetch, id(union)+id(5)),
		execute(do, 0, ""), execute(do, 1, ""), execute(do, 0, "\x00"), execute(union, 0, ""),
		execute(call, 0, "\x00\x01\x03\x00\x03\x00"+id(5)+id(0)), execute(call, 1, "\x00\x00"+id(6)+id(0)),
		com(wire.ComStmtPrepare, "SELECT ?"), execute(wire.LastStatementID, 0, "\x00\x01\x03\x00"+id(77)),
		com(wire.ComStmtReset, id(9999)), com(wire.ComStmtClose, id(9999)), com(wire.ComStmtClose, id(do)), execute(do, 0, ""),
		com(wire.ComStmtFetch, id(9999)+id(1)), execute(9999, 1, ""),
		com(wire.ComResetConnection, ""), execute(selected, 0, "\x00\x00"), com(wire.ComStmtClose, id(selected)), ask("DROP TABLE IF EXISTS t"), com(wire.ComInitDB, "information_schema"),
		com(wire.ComPing, ""),
	}
}

// converse has every step of the conversation, changes to these users included, and gives the replies.
func converse(c *raw, schema string, users ...string) (steps []step, replies [][]byte) {
	say := func(s step) {
		var file [][]byte
		for _, part := range s.file {
			file = append(file, []byte(part))
		}
		steps = append(steps, s)
		replies = append(replies, c.do([]byte(s.payload), file...))
	}
	var ids []uint32
	for _, s := range everything() {
		say(s)
		if strings.HasPrefix(s.payload, string(code1(wire.ComStmtPrepare))) && c.reply.Outcome.Errno == 0 {
			ids = append(ids, c.reply.Prepared.ID)
		}
	}
	say(com(wire.ComInitDB, schema))
	for _, s := range prepared(ids[0], ids[1], ids[2], ids[3], ids[4]) {
		say(s)
	}
	for _, user := range users {
		steps = append(steps, com(wire.ComChangeUser, user))
		replies = append(replies, c.changeUser(user, schema))
	}
	return steps, replies
}

// A combination of the capabilities on which the shape of replies hangs.
var shaping = []wire.Capabilities{wire.DeprecateEOF, wire.SessionTrack, wire.CacheMetadata, wire.ExtendedMetadata}

func combinations() []wire.Capabilities {
	var all []wire.Capabilities
	for bits := range 1 << len(shaping) {
		var caps wire.Capabilities
		for i, c := range shaping {
			if bits>>i&1 == 1 {
				caps |= c
			}
		}
		all = append(all, caps)
	}
	return all
}

// checkText compares a text, or of one that is cut its beginning, length and hash.
func checkText(t *testing.T, s *capture.Statement, want string) {
	t.Helper()
	if !s.Flags.Has(capture.Truncated) && string(s.Text) == want {
		return
	}
	hash := fnv.New64a()
	io.WriteString(hash, want)
	if !s.Flags.Has(capture.Truncated) || !strings.HasPrefix(want, string(s.Text)) || s.TextLen != uint64(len(want)) || s.TextHash != hash.Sum64() {
		t.Errorf("command %d: text %.100q, flags %b, length %d, hash %x, want %.100q, %d, %x", s.Number, s.Text, s.Flags, s.TextLen, s.TextHash, want, len(want), hash.Sum64())
	}
}

// Every command, under every combination: the replies are those of a direct connection to the byte, and every command
// is in the record once.
func TestEveryCommand(t *testing.T) {
	server := mysqltest.Shared(t)
	schema := server.Schema(t)
	p := start(t, server.Addr)
	sent := map[uint64][]step{} // by the server's connection id
	for i, caps := range combinations() {
		direct := dialRaw(t, server.Addr, schema, caps)
		steps, want := converse(direct, schema, mysqltest.User)
		through := dialRaw(t, p.addr, schema, caps)
		if through.caps != direct.caps || !through.caps.Has(caps) {
			t.Fatalf("capabilities %x, and %x directly, want both to have %x", through.caps, direct.caps, caps)
		}
		_, got := converse(through, schema, mysqltest.User)
		sent[uint64(through.id)] = steps
		for n, s := range steps {
			if !s.varies && !bytes.Equal(got[n], want[n]) {
				t.Errorf("capabilities %x, %.60q: answered by\n%q, and directly by\n%q", caps, s.payload, got[n], want[n])
			}
		}
		if i%5 == 0 { // none, all, and two halves
			writeCorpus(t, fmt.Sprintf("commands-%x", uint64(caps)), direct.log)
		}
		direct.conn.Close()
		through.conn.Close()
	}
	checkRecord(t, p, sent)
}

// checkRecord compares what was recorded of each session with what was sent, by the server's connection id.
func checkRecord(t *testing.T, p *running, sent map[uint64][]step) {
	t.Helper()
	records := p.records(t)
	if n := p.Totals().Opaque; n != 0 {
		t.Errorf("%d connections given up, want none", n)
	}
	ids, got := map[uint64]uint64{}, map[uint64][]capture.Statement{}
	for _, rec := range records {
		switch rec.Kind {
		case capture.KindSessionStart:
			ids[rec.Start.Session] = rec.Start.ConnectionID
		case capture.KindStatement:
			got[ids[rec.Statement.Session]] = append(got[ids[rec.Statement.Session]], rec.Statement)
		case capture.KindSessionEnd:
			if rec.End.Reason == capture.EndOpaque {
				t.Errorf("session %d given up: %s", rec.End.Session, rec.End.Detail)
			}
		}
	}
	for connection, steps := range sent {
		statements := got[connection]
		for i, s := range statements {
			if i >= len(steps) {
				t.Errorf("connection %d: %d commands recorded, want %d", connection, len(statements), len(steps))
				break
			}
			var code byte
			if steps[i].payload != "" {
				code = steps[i].payload[0]
			}
			if s.Number != uint64(i+1) || s.Command != code || s.Flags&(capture.Unparsed|capture.Unanswered|capture.Cut) != 0 {
				t.Fatalf("connection %d, command %d: got %d %s, flags %b, want %.60q", connection, i+1, s.Number, wire.CommandName(s.Command), s.Flags, steps[i].payload)
			}
			if code == wire.ComQuery {
				checkText(t, &s, steps[i].payload[1:])
			}
		}
		if len(statements) < len(steps) {
			t.Errorf("connection %d: %d commands recorded, want %d", connection, len(statements), len(steps))
		}
	}
}

// Commands written byte by byte, and all of them in one segment.
func TestSegments(t *testing.T) {
	server := mysqltest.Shared(t)
	schema := server.Schema(t)
	p := start(t, server.Addr)
	slow := dialRaw(t, p.addr, schema, wire.DeprecateEOF|wire.SessionTrack)
	slow.pause = 20 * time.Microsecond
	steps, got := converse(slow, schema, mysqltest.User, "nobody")
	_, want := converse(dialRaw(t, server.Addr, schema, wire.DeprecateEOF|wire.SessionTrack), schema, mysqltest.User, "nobody") // the server takes a second to refuse one
	for i, s := range steps {
		if !s.varies && !bytes.Equal(got[i], want[i]) {
			t.Errorf("byte by byte, %.60q: answered by\n%q, and directly by\n%q", s.payload, got[i], want[i])
		}
	}
	glued := dialRaw(t, p.addr, schema, wire.CacheMetadata)
	pipelined, answers := pipeline(glued)
	_, wanted := pipeline(dialRaw(t, server.Addr, schema, wire.CacheMetadata))
	for i, s := range pipelined {
		if !s.varies && !bytes.Equal(answers[i], wanted[i]) {
			t.Errorf("in one segment, %.60q: answered by\n%q, and directly by\n%q", s.payload, answers[i], wanted[i])
		}
	}
	slow.conn.Close()
	glued.conn.Close()
	checkRecord(t, p, map[uint64][]step{uint64(slow.id): steps, uint64(glued.id): pipelined})
}

// pipeline sends all commands but those that wait for something (files, cursors of statements not yet prepared, streams)
// in one write, and reads the replies then.
func pipeline(c *raw) (steps []step, replies [][]byte) {
	var all []byte
	for _, s := range everything() {
		if strings.Contains(s.payload, "INFILE") || s.payload != "" && wire.LeavesProtocol(s.payload[0]) {
			continue
		}
		steps = append(steps, s)
		if strings.Contains(s.payload, "SELECT a, b, ?") {
			steps = append(steps, com(wire.ComStmtExecute, id(wire.LastStatementID)+"\x00\x01\x00\x00\x00\x00\x01\xfd\x00\x03\x00\x01p"+id(250)),
				com(wire.ComStmtClose, id(wire.LastStatementID)))
		}
	}
	steps = append(steps, com(wire.ComQuit, ""))
	for _, s := range steps {
		all = append(all, frame(0, []byte(s.payload))...)
	}
	c.log = append(c.log, exchanged{true, all})
	c.write(all)
	for _, s := range steps {
		replies = append(replies, c.receive([]byte(s.payload)))
	}
	writeCorpus(c.t, "pipelined", c.log)
	return steps, replies
}

// Packets around 16 MiB as command, row, execute and file.
func TestSizes(t *testing.T) {
	server := mysqltest.Start(t, "--max-allowed-packet=64M")
	schema := server.Schema(t)
	p := start(t, server.Addr, func(p *proxy.Proxy) { p.MaxStatement = 1 << 20 })
	direct, through := dialRaw(t, server.Addr, schema, wire.DeprecateEOF), dialRaw(t, p.addr, schema, wire.DeprecateEOF)
	var steps []step
	do := func(payload []byte, file ...[]byte) []byte {
		steps = append(steps, step{payload: string(payload)})
		reply := through.do(payload, file...)
		through.log = nil
		return reply
	}
	do([]byte("\x03CREATE TEMPORARY TABLE t (a INT, b LONGBLOB) ENGINE=MyISAM"))
	do([]byte("\x16SELECT CONCAT(LENGTH(?), '')"))
	statement := through.reply.Prepared.ID
	for _, size := range []int{0xFFFFFE, 0xFFFFFF, 0x1000000, 2 * 0xFFFFFF} {
		answers := func(what string, reply []byte, length int) {
			t.Helper()
			if !bytes.Contains(reply, []byte(fmt.Sprint(length))) {
				t.Errorf("%s of %d bytes: answered by %.100q, want a value of length %d", what, size, reply, length)
			}
		}
		const before, behind = "\x03SELECT LENGTH('", "')"
		text := strings.Repeat("x", size-len(before)-len(behind))
		answers("a command", do([]byte(before+text+behind)), len(text))

		row := fmt.Appendf(nil, "\x03SELECT REPEAT('y', %d)", size-4-5*(size>>24)) // with a length of 4 or 9 bytes in front
		if !bytes.Equal(do(row), direct.do(row)) || through.reply.Outcome.ReplyBytes < uint64(size) {
			t.Errorf("a row of %d bytes: not the %d bytes that came directly", size, through.reply.Outcome.ReplyBytes)
		}

		head := []byte(com(wire.ComStmtExecute, id(statement)+"\x00\x01\x00\x00\x00\x00\x01\xfc\x00\xfe").payload)
		value := bytes.Repeat([]byte("z"), size-len(head)-8)
		head = binary.LittleEndian.AppendUint64(head, uint64(len(value)))
		answers("an execute", do(append(head, value...)), len(value))

		do([]byte("\x03LOAD DATA LOCAL INFILE 'x' INTO TABLE t"), append(fmt.Appendf(nil, "%d\t", size), bytes.Repeat([]byte("w"), size-9)...))
		answers("a file", do(fmt.Appendf(nil, "\x03SELECT LENGTH(b) FROM t WHERE a = %d", size)), size-9)
	}
	direct.conn.Close()
	through.conn.Close()
	checkRecord(t, p, map[uint64][]step{uint64(through.id): steps})
}

// A server that refuses a COM_BINLOG_DUMP hangs up on it; the command is in the record with its error.
func TestBinlogDumpRefused(t *testing.T) {
	p := start(t, mysqltest.Shared(t).Addr)
	c := dialRaw(t, p.addr, "", wire.DeprecateEOF)
	dump := com(wire.ComBinlogDump, "\x04\x00\x00\x00\x00\x00\x01\x00\x00\x00missing")
	c.do([]byte(dump.payload))
	if c.reply.Outcome.Errno == 0 || !c.gone() {
		t.Errorf("error %d, want one, and a connection that ends", c.reply.Outcome.Errno)
	}
	checkRecord(t, p, map[uint64][]step{uint64(c.id): {dump}})
}

// COM_SHUTDOWN is answered, and then the server is gone.
func TestShutdown(t *testing.T) {
	server := mysqltest.Start(t)
	p := start(t, server.Addr)
	c := dialRaw(t, p.addr, "", 0)
	if reply := c.do([]byte{wire.ComShutdown}); len(reply) < 5 || reply[4] == 0xFF {
		t.Errorf("answered by %q", reply)
	}
	if !c.gone() {
		t.Error("the connection lives on")
	}
	checkRecord(t, p, map[uint64][]step{uint64(c.id): {com(wire.ComShutdown, "")}})
}
