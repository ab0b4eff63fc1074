package session_test

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"net"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"redrive/capture"
	dialer "redrive/internal/client"
	"redrive/internal/mysqltest"
	"redrive/internal/session"
	"redrive/internal/wire"
)

var shutdown = &wire.Error{Errno: 1053, SQLState: "08S01", Message: "Server shutdown in progress"}

// An ERR may stand where the client waits for the first packet of a result, or for a row, and has the id that comes next.
func TestInterrupt(t *testing.T) {
	const caps = baseCaps | wire.DeprecateEOF
	query := command(wire.ComQuery, "SELECT c FROM t")
	load := []chunk{command(wire.ComQuery, "LOAD"), server(1, []byte("\xfbx")...)}
	change := command(wire.ComChangeUser, "other\x00\x04hushdb3\x00\x2d\x00")
	question := server(1, []byte("\xfemysql_native_password\x00abcdefghijklmnopqrst\x00")...)
	result := func(caps wire.Capabilities) []byte { return resultSet(1, caps, 2, []byte("\x01a"), []byte("\x01b")) }
	// packets are the first n of a reply, and some bytes of the next.
	packets := func(reply []byte, n, more int) chunk {
		end := 0
		for range n {
			end += wire.HeaderLen + int(reply[end])
		}
		return fromServer(reply[:end+more])
	}
	row := packet(255, []byte("\x01c"))
	progress := []byte{0xFF, 0xFF, 0xFF, 1, 1, 2, 0, 0, 0, 0}
	const no = -1
	tests := []struct {
		name   string
		caps   wire.Capabilities
		chunks []chunk
		seq    int    // of the ERR; no if there can be none
		want   string // what becomes of the commands then
	}{
		{"nothing asked", caps, nil, no, ""},
		{"a request half sent", caps, []chunk{{true, query.data[:9]}}, no, ""},
		{"no answer yet", caps, []chunk{query}, 1, `1 QUERY "SELECT c FROM t" error=1053/08S01 cut`},
		{"no answer yet to a request of two packets", caps, []chunk{command(wire.ComQuery, strings.Repeat("x", wire.MaxPayload))}, 2, ""},
		{"an answer given", caps, []chunk{query, server(1, ok...)}, no, `1 QUERY "SELECT c FROM t"`},
		{"half a packet", caps, []chunk{query, packets(result(caps), 0, 3)}, no, `1 QUERY "SELECT c FROM t" unanswered`},
		{"a column count", caps, []chunk{query, packets(result(caps), 1, 0)}, no, `1 QUERY "SELECT c FROM t" sets=1 rows=0 cut`},
		{"definitions", caps, []chunk{query, packets(result(caps), 2, 0)}, 3, `1 QUERY "SELECT c FROM t" sets=1 rows=0 error=1053/08S01 cut`},
		{"definitions, without the EOF behind them", baseCaps, []chunk{query, packets(result(baseCaps), 2, 0)}, no, `1 QUERY "SELECT c FROM t" sets=1 rows=0 cut`},
		{"definitions and their EOF", baseCaps, []chunk{query, packets(result(baseCaps), 3, 0)}, 4, `1 QUERY "SELECT c FROM t" sets=1 rows=0 error=1053/08S01 cut`},
		{"a row", caps, []chunk{query, packets(result(caps), 3, 0)}, 4, `1 QUERY "SELECT c FROM t" sets=1 rows=1 error=1053/08S01 cut`},
		{"a row and a half", caps, []chunk{query, packets(result(caps), 3, 5)}, no, `1 QUERY "SELECT c FROM t" sets=1 rows=1 cut`},
		{"a row with the last id there is", caps, []chunk{query, packets(result(caps), 3, 0), fromServer(row)}, 0, `1 QUERY "SELECT c FROM t" sets=1 rows=2 error=1053/08S01 cut`},
		{"the first of two results", caps, []chunk{query, server(1, okPayload(3, 2|wire.StatusMoreResults)...)}, 2, `1 QUERY "SELECT c FROM t" affected=3 error=1053/08S01 cut`},
		{"progress", caps | wire.Progress, []chunk{query, server(1, progress...), server(2, progress...)}, 3, `1 QUERY "SELECT c FROM t" error=1053/08S01 cut`},
		{"several asked", caps, []chunk{query, command(wire.ComPing, "")}, 1, `1 QUERY "SELECT c FROM t" error=1053/08S01 cut|2 PING "" unanswered`},
		{"several asked, one answered", caps, []chunk{query, command(wire.ComPing, ""), server(1, ok...)}, 1, `1 QUERY "SELECT c FROM t"|2 PING "" error=1053/08S01 cut`},
		{"several asked, the next half sent", caps, []chunk{query, {true, query.data[:9]}}, 1, `1 QUERY "SELECT c FROM t" error=1053/08S01 cut`},
		{"a statement to prepare", caps, []chunk{command(wire.ComStmtPrepare, "SELECT ?")}, 1, `1 STMT_PREPARE "SELECT ?" error=1053/08S01 cut`},
		{"a prepared statement, without the definitions", caps, []chunk{command(wire.ComStmtPrepare, "SELECT ?"), packets(prepareReply(3, 1, caps), 1, 0)}, no, ""},
		{"fields asked for", caps, []chunk{command(wire.ComFieldList, "t\x00")}, no, ""},
		{"a file asked for", caps, load, no, `1 QUERY "LOAD" cut infile`},
		{"a file half sent", caps, append(load[:2:2], client(2, 'x')), no, ""},
		{"a file sent", caps, append(load[:2:2], client(2, 'x'), client(3)), 4, `1 QUERY "LOAD" error=1053/08S01 cut infile`},
		{"another user", caps, []chunk{change}, 1, `1 CHANGE_USER "other" error=1053/08S01 cut`},
		{"another user, who is asked", caps, []chunk{change, question}, no, ""},
		{"another user, who has answered", caps, []chunk{change, question, client(2, 'h', 'u', 's', 'h')}, 3, `1 CHANGE_USER "other" error=1053/08S01 cut`},
		{"a binlog", caps, []chunk{command(wire.ComBinlogDump, "")}, no, ""},
		{"the server's own last word", caps, []chunk{query, server(0, errPayload(4031, "HY000", "idle")...)}, no, `1 QUERY "SELECT c FROM t" unanswered`},
	}
	for _, tt := range tests {
		for _, size := range []int{1, 1 << 20} {
			if size == 1 && len(tt.chunks) == 1 && len(tt.chunks[0].data) > wire.MaxPayload {
				continue
			}
			l := &listener{}
			memory := capture.NewMemory(1 << 30)
			f := session.Follower{Handler: l, Memory: memory}
			show(&f, size, login(tt.caps)...)
			show(&f, size, tt.chunks...)
			got, told := f.Interrupt([]byte("before"), shutdown)
			want := []byte("before")
			if tt.seq != no {
				want = append(want, packet(byte(tt.seq), errPayload(1053, "08S01", shutdown.Message))...)
			}
			if !bytes.Equal(got, want) || told != (tt.seq != no) {
				t.Errorf("%s, %d bytes a read: got %q, %t, want %q", tt.name, size, got, told, want)
			}
			if told {
				show(&f, size, server(byte(tt.seq), ok...)) // comes too late, and belongs to nobody
				if _, again := f.Interrupt(nil, shutdown); again {
					t.Errorf("%s: interrupted twice", tt.name)
				}
			}
			f.Close(time.Second)
			if got := strings.Join(l.lines, "|"); tt.want != "" && got != tt.want || l.lost != "" {
				t.Errorf("%s, %d bytes a read: got %s, lost %q, want %s", tt.name, size, got, l.lost, tt.want)
			}
			if used := memory.Used(); used != 0 {
				t.Errorf("%s: %d bytes still taken", tt.name, used)
			}
		}
	}
}

func TestInterruptBeforeTheLogin(t *testing.T) {
	for n := range 3 {
		f := session.Follower{Handler: discard{}}
		show(&f, 1<<20, login(baseCaps)[:n]...)
		if _, told := f.Interrupt(nil, shutdown); told {
			t.Errorf("interrupted behind %d packets of a login", n)
		}
	}
}

// Frames have ids of their own. An ERR without an SQLSTATE is given the one that says nothing.
func TestInterruptInFrames(t *testing.T) {
	z := framing{size: 1 << 20} // every chunk is a frame with the id 9
	caps := baseCaps | wire.DeprecateEOF | wire.Compress
	query := chunk{true, z.frames(command(wire.ComQuery, "SELECT c FROM t").data)}
	reply := z.frames(resultSet(1, caps, 2, []byte("\x01a"))[:35])
	for _, tt := range []struct {
		name   string
		chunks []chunk
		err    *wire.Error
		frame  byte
		told   bool
	}{
		{"no answer yet", []chunk{query}, &wire.Error{Errno: 1053, Message: "m"}, 10, true},
		{"half a frame", []chunk{query, {false, reply[:8]}}, shutdown, 0, false},
		{"half a packet in a whole frame", []chunk{query, {false, reply}}, shutdown, 0, false},
	} {
		f := session.Follower{Handler: discard{}}
		show(&f, 1<<20, login(caps)...)
		show(&f, 1<<20, tt.chunks...)
		got, told := f.Interrupt(nil, tt.err)
		var want []byte
		if tt.told {
			content := packet(1, errPayload(1053, "HY000", "m"))
			want = append([]byte{byte(len(content)), 0, 0, tt.frame, 0, 0, 0}, content...)
		}
		if told != tt.told || !bytes.Equal(got, want) {
			t.Errorf("%s: got %q, %t, want %q", tt.name, got, told, want)
		}
	}
}

// breakOff plays a server behind a follower: it lets a client in, answers each command with the next of replies, and
// interrupts after the last. It gives the address, and what the follower made of it.
func breakOff(t *testing.T, caps wire.Capabilities, replies ...[]byte) (address string, heard func() *listener) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	heardOf := &listener{}
	done := make(chan struct{})
	go func() {
		defer close(done)
		conn, err := l.Accept()
		if err != nil {
			return
		}
		defer conn.Close()
		playBreakOff(conn, heardOf, caps, replies)
	}()
	t.Cleanup(func() { l.Close(); <-done })
	return l.Addr().String(), func() *listener { <-done; return heardOf }
}

func playBreakOff(conn net.Conn, l *listener, caps wire.Capabilities, replies [][]byte) {
	f := session.Follower{Handler: l}
	defer func() { l.end = f.Close(time.Second) }()
	say := func(b []byte) {
		f.FromServer(b, time.Second)
		conn.Write(b)
	}
	buf := make([]byte, 64<<10)
	hear := func() bool {
		n, err := conn.Read(buf)
		f.FromClient(buf[:n], time.Second, time.Second)
		return err == nil
	}
	say(packet(0, greetingPayload(caps)))
	hear()
	say(packet(2, okPayload(0, wire.StatusAutocommit)))
	for i, reply := range replies {
		for f.Quiet() {
			if !hear() {
				return
			}
		}
		say(reply)
		if i == len(replies)-1 {
			err, _ := f.Interrupt(nil, shutdown)
			conn.Write(err)
		}
	}
}

// Clients take the ERR for the end of their reply: they report its number, not a broken connection.
func TestClientsTakeInterruptions(t *testing.T) {
	const caps = baseCaps | wire.DeprecateEOF
	const none = -1
	cut := func(caps wire.Capabilities, rows int) []byte { // a result, cut behind so many rows
		if rows == none {
			return nil
		}
		all := resultSet(1, caps, 2, slices.Repeat([][]byte{[]byte("\x01a")}, rows)...)
		end := len(all) - wire.HeaderLen - len(eofPayload(0))
		if caps.Has(wire.DeprecateEOF) {
			end = len(all) - wire.HeaderLen - len(okPayload(0, 2))
		}
		if caps.Has(wire.Compress) {
			return wire.AppendFrame(nil, 1, all[:end])
		}
		return all[:end]
	}
	tests := []struct {
		name string
		caps wire.Capabilities
		rows int
	}{
		{"in place of an answer", caps, none},
		{"in place of the first row", caps, 0},
		{"between rows", caps, 2},
		{"between rows, with ids that have wrapped", caps, 300},
		{"between rows, with EOFs", baseCaps, 2},
		{"in place of an answer, in frames", caps | wire.Compress, none},
		{"between rows, in frames", caps | wire.Compress, 2},
	}
	for _, tt := range tests {
		t.Run("go-sql-driver/"+tt.name, func(t *testing.T) {
			address, heard := breakOff(t, tt.caps, cut(tt.caps, tt.rows))
			config := mysql.NewConfig()
			config.User, config.Net, config.Addr, config.Params = "u", "tcp", address, nil
			config.MaxAllowedPacket = 1 << 20
			if tt.caps.Has(wire.Compress) {
				if err := config.Apply(mysql.EnableCompression(true)); err != nil {
					t.Fatal(err)
				}
			}
			connector, err := mysql.NewConnector(config)
			if err != nil {
				t.Fatal(err)
			}
			db := sql.OpenDB(connector)
			defer db.Close()
			n := 0
			result, err := db.QueryContext(context.Background(), "SELECT c FROM t")
			if err == nil {
				for result.Next() {
					n++
				}
				err = result.Err()
			}
			var refusal *mysql.MySQLError
			if !errors.As(err, &refusal) || refusal.Number != 1053 || n != max(tt.rows, 0) {
				t.Errorf("%d rows, error %v, want %d and error 1053", n, err, tt.rows)
			}
			check(t, heard(), max(tt.rows, 0))
		})
		t.Run("mariadb/"+tt.name, func(t *testing.T) {
			caps := tt.caps &^ wire.DeprecateEOF // which this client does not know
			tool, err := mysqltest.Tool("mariadb")
			if err != nil {
				t.Fatal(err)
			}
			address, heard := breakOff(t, caps, cut(caps, tt.rows))
			host, port, _ := net.SplitHostPort(address)
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			arguments := []string{"--no-defaults", "--host=" + host, "--port=" + port, "--user=u", "--skip-ssl", "--batch", "--quick", "-N", "-e", "SELECT c FROM t"}
			if tt.caps.Has(wire.Compress) {
				arguments = append(arguments, "--compress")
			}
			var complaint strings.Builder
			mariadb := exec.CommandContext(ctx, tool, arguments...)
			mariadb.Stderr = &complaint
			out, _ := mariadb.Output()
			if n := strings.Count(string(out), "a\n"); n != max(tt.rows, 0) || !strings.Contains(complaint.String(), "ERROR 1053 (08S01)") {
				t.Errorf("%d rows, %q, want %d and error 1053", n, complaint.String(), tt.rows)
			}
			check(t, heard(), max(tt.rows, 0))
		})
		if tt.caps.Has(wire.Compress) {
			continue // internal/client does not speak it
		}
		t.Run("internal/client/"+tt.name, func(t *testing.T) {
			address, heard := breakOff(t, tt.caps, cut(tt.caps, tt.rows))
			conn, err := dialer.Dial(context.Background(), dialer.Config{Address: address, User: "u"})
			if err != nil {
				t.Fatal(err)
			}
			reply, _, err := conn.Query("SELECT c FROM t")
			if err != nil || reply.Outcome.Errno != 1053 || reply.Outcome.Rows != uint64(max(tt.rows, 0)) {
				t.Errorf("%d rows, error %d, lost %v, want %d and error 1053", reply.Outcome.Rows, reply.Outcome.Errno, err, tt.rows)
			}
			conn.Close()
			check(t, heard(), max(tt.rows, 0))
		})
	}
}

func check(t *testing.T, l *listener, rows int) {
	t.Helper()
	if len(l.statements) != 1 || l.lost != "" {
		t.Fatalf("followed %q, lost %q, want one statement", l.lines, l.lost)
	}
	if s := l.statements[0]; s.Outcome.Errno != 1053 || !s.Flags.Has(capture.Cut) || s.Outcome.Rows != uint64(rows) {
		t.Errorf("followed %q, want %d rows, cut, error 1053", l.lines, rows)
	}
}
