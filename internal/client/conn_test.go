package client_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"redrive/internal/client"
	"redrive/internal/mysqltest"
	"redrive/internal/wire"
)

// twoRows is a text result of one column and two rows under DeprecateEOF.
func twoRows() []byte {
	var b []byte
	for i, payload := range [][]byte{
		{1},
		[]byte("\x03def\x00\x00\x00\x01c\x00\x0c-\x00\x01\x00\x00\x00\x08\x00\x00\x00\x00"),
		{1, 'a'},
		{1, 'b'},
		{0xFE, 0, 0, 2, 0, 0, 0},
	} {
		b = append(b, packet(byte(i+1), payload)...)
	}
	return b
}

func TestDo(t *testing.T) {
	long := bytes.Repeat([]byte("x"), wire.MaxPayload) // with the command byte: one over, a second packet of one byte
	exact := long[:wire.MaxPayload-1]
	query := func(text []byte) []byte { return append([]byte{wire.ComQuery}, text...) }
	conn := dialScript(t, func(command []byte) []byte {
		switch {
		case bytes.Equal(command, query([]byte("rows"))):
			return twoRows()
		case bytes.Equal(command, query(long)), bytes.Equal(command, query(exact)):
			return okPacket(1, wire.OK{Affected: uint64(len(command))})
		case bytes.Equal(command, []byte{wire.ComPing}):
			return okPacket(1, wire.OK{Status: 2})
		}
		return errPacket(1, 1064, "no such script")
	})
	tests := []struct {
		name                 string
		payload              []byte
		rows, affected, size uint64
		errno                uint16
	}{
		{"rows", query([]byte("rows")), 2, 0, uint64(len(twoRows())), 0},
		{"error", query([]byte("oops")), 0, 0, 27, 1064},
		{"over 16 MiB", query(long), 0, wire.MaxPayload + 1, 4 + 1 + 9 + 1 + 2 + 2, 0},
		{"exactly 16 MiB", query(exact), 0, wire.MaxPayload, 4 + 1 + 4 + 1 + 2 + 2, 0},
		{"ping", []byte{wire.ComPing}, 0, 0, 11, 0},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			reply, times, err := conn.Do(test.payload)
			if err != nil {
				t.Fatal(err)
			}
			o := reply.Outcome
			if o.Rows != test.rows || o.Affected != test.affected || o.Errno != test.errno {
				t.Errorf("rows %d, affected %d, errno %d; want %d, %d, %d", o.Rows, o.Affected, o.Errno, test.rows, test.affected, test.errno)
			}
			if o.ReplyBytes != test.size {
				t.Errorf("reply of %d bytes, want %d", o.ReplyBytes, test.size)
			}
			if times.Sent <= 0 || times.First < times.Sent || times.Done < times.First {
				t.Errorf("times %+v are out of order", times)
			}
			if e := conn.LastError(); (e != nil) != (test.errno != 0) || e != nil && e.Message != "no such script" {
				t.Errorf("LastError() = %v", e)
			}
		})
	}
}

// CLOSE and long data have no reply: Do must not wait for one, nor take the next command's for theirs.
func TestDoWithoutReply(t *testing.T) {
	conn := dialScript(t, func([]byte) []byte { return okPacket(1, wire.OK{Affected: 5}) })
	for _, command := range [][]byte{{wire.ComStmtClose, 1, 0, 0, 0}, {wire.ComStmtSendLongData, 1, 0, 0, 0, 0, 0, 'x'}} {
		_, times, err := conn.Do(command)
		if err != nil || times.Sent == 0 || times.Done != 0 {
			t.Errorf("%s: %+v, %v; want sent, and no reply", wire.CommandName(command[0]), times, err)
		}
	}
	reply, _, err := conn.Do([]byte{wire.ComPing})
	if err != nil || reply.Outcome.Affected != 5 {
		t.Errorf("the ping after them: affected %d, %v; want 5", reply.Outcome.Affected, err)
	}
}

func TestDoAsksForAFile(t *testing.T) {
	conns := make(chan net.Conn, 1)
	address := serve(t, func(c net.Conn) {
		letIn(c)
		readPacket(c)
		c.Write(packet(1, []byte("\xfb/etc/passwd")))
		if file := readPacket(c); len(file) == 0 {
			c.Write(okPacket(3, wire.OK{Affected: 9}))
		}
		readPacket(c)
		conns <- c
	})
	conn, err := client.Dial(t.Context(), client.Config{Address: address, Capabilities: wire.LocalFiles})
	if err != nil {
		t.Fatal(err)
	}
	reply, times, err := conn.Query("LOAD DATA LOCAL INFILE '/etc/passwd' INTO TABLE t")
	if err != nil || !reply.AskedFile() || reply.Outcome.Affected != 9 || times.Done < times.Sent {
		t.Errorf("asked %v, affected %d, %+v, %v; want a file asked for and 9", reply.AskedFile(), reply.Outcome.Affected, times, err)
	}
	conn.Close()
	<-conns
}

func TestConnectionLost(t *testing.T) {
	whole := twoRows()
	for _, cut := range []int{0, 2, len(whole) / 2, len(whole) - 1} {
		address := serve(t, func(c net.Conn) {
			letIn(c)
			readPacket(c)
			c.Write(whole[:cut])
		})
		conn, err := client.Dial(t.Context(), client.Config{Address: address})
		if err != nil {
			t.Fatal(err)
		}
		reply, times, err := conn.Query("rows")
		if !errors.Is(err, io.ErrUnexpectedEOF) || !strings.Contains(err.Error(), "COM_QUERY") {
			t.Errorf("reply cut at %d: %v, want COM_QUERY and an unexpected EOF", cut, err)
		}
		if begun := cut > wire.HeaderLen; reply.Begun() != begun || (times.First != 0) != begun || times.Done != 0 {
			t.Errorf("reply cut at %d: begun %v, %+v", cut, reply.Begun(), times)
		}
		conn.Close()
	}
}

func TestNonsenseForAReply(t *testing.T) {
	conn := dialScript(t, func([]byte) []byte { return packet(1, []byte{0xFE, 1, 2, 3}) })
	if _, _, err := conn.Query("x"); !errors.Is(err, wire.ErrLost) {
		t.Errorf("error %v, want ErrLost", err)
	}
}

// A server that ends an idle session may say so unasked; the next command must not take that for its reply.
func TestParting(t *testing.T) {
	conn := dialScript(t, func([]byte) []byte {
		return append(okPacket(1, wire.OK{}), errPacket(0, 4031, "too idle")...)
	})
	if _, _, err := conn.Do([]byte{wire.ComPing}); err != nil {
		t.Fatal(err)
	}
	if _, _, err := conn.Do([]byte{wire.ComPing}); refusal(t, err).Errno != 4031 {
		t.Errorf("error %v, want 4031", err)
	}
}

func TestContextEndsTheConnection(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	address := serve(t, func(c net.Conn) {
		letIn(c)
		readPacket(c)
		cancel(errors.New("enough"))
		readPacket(c) // until the client hangs up
	})
	conn, err := client.Dial(ctx, client.Config{Address: address})
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := conn.Query("select sleep(1000)"); err == nil || !strings.Contains(err.Error(), "enough") {
		t.Errorf("error %v, want the cause", err)
	}
}

func TestDeadline(t *testing.T) {
	address := serve(t, func(c net.Conn) {
		letIn(c)
		readPacket(c)
		readPacket(c)
	})
	conn, err := client.Dial(t.Context(), client.Config{Address: address})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	var timeout net.Error
	if _, _, err := conn.Query("x"); !errors.As(err, &timeout) || !timeout.Timeout() {
		t.Errorf("error %v, want a timeout", err)
	}
}

func TestMariaDBCommands(t *testing.T) {
	s := mysqltest.Shared(t)
	schema := s.Schema(t)
	conn, err := client.Dial(t.Context(), client.Config{
		Address: s.Addr, User: mysqltest.User, Password: mysqltest.Password, Schema: schema, Capabilities: wire.MultiStatements,
	})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	query := func(text string) wire.Outcome {
		t.Helper()
		reply, _, err := conn.Query(text)
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		return reply.Outcome
	}
	query("CREATE TABLE t (i INT PRIMARY KEY, s VARCHAR(100))")
	if o := query("INSERT INTO t SELECT seq, REPEAT('x', 100) FROM seq_1_to_5000"); o.Affected != 5000 {
		t.Errorf("insert: affected %d, want 5000", o.Affected)
	}
	if o := query("SELECT * FROM t; SELECT i FROM t WHERE i <= 3"); o.Rows != 5003 || o.ResultSets != 2 {
		t.Errorf("two selects: %d rows in %d results, want 5003 in 2", o.Rows, o.ResultSets)
	}
	if o := query("SELECT nonsense"); o.Errno != 1054 || string(o.SQLState[:]) != "42S22" {
		t.Errorf("unknown column: error %d (%s), want 1054 (42S22)", o.Errno, o.SQLState)
	}
	if e := conn.LastError(); e == nil || !strings.Contains(e.Message, "nonsense") {
		t.Errorf("LastError() = %v, want the column named", e)
	}
	if o := query("BEGIN"); o.Status&wire.StatusInTrans == 0 {
		t.Errorf("BEGIN: status %04x, want a transaction", o.Status)
	}
	prepared, _, err := conn.Prepare("SELECT s FROM t WHERE i=?")
	if err != nil || prepared.Params != 1 || prepared.Columns != 1 {
		t.Fatalf("prepare: %+v, %v; want one parameter and one column", prepared, err)
	}
	for i := range 3 { // the server leaves the column definitions out after the first time
		payload := wire.AppendExecute(nil, prepared.ID, 0, []byte{0}, []byte{8, 0}, []byte{7, 0, 0, 0, 0, 0, 0, 0})
		reply, _, err := conn.Do(payload)
		if err != nil || reply.Outcome.Rows != 1 {
			t.Errorf("execute %d: %d rows, %v; want 1", i, reply.Outcome.Rows, err)
		}
	}
	if _, _, err := conn.Prepare("SELECT nonsense"); refusal(t, err).Errno != 1054 {
		t.Errorf("prepare: %v, want error 1054", err)
	}
	var number uint64
	if err := s.DB().QueryRow("SELECT COUNT(*) FROM information_schema.processlist WHERE id = ?", conn.Login.Greeting.ConnectionID).Scan(&number); err != nil || number != 1 {
		t.Errorf("%d sessions with our id, %v; want 1", number, err)
	}
}

func TestServerKilledTheSession(t *testing.T) {
	s := mysqltest.Shared(t)
	conn, err := client.Dial(t.Context(), client.Config{Network: "unix", Address: s.Socket, User: mysqltest.User, Password: mysqltest.Password})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := s.DB().Exec("KILL ?", conn.Login.Greeting.ConnectionID); err != nil {
		t.Fatal(err)
	}
	if _, _, err := conn.Query("DO 1"); err == nil || !strings.Contains(err.Error(), "connection lost") {
		t.Errorf("error %v, want a lost connection", err)
	}
}

func TestDoAllocatesNothing(t *testing.T) {
	reply, rows := append([]byte(nil), twoRows()...), []byte("\x03rows")
	address := serve(t, func(c net.Conn) {
		letIn(c)
		buf := make([]byte, 64)
		for {
			if _, err := io.ReadFull(c, buf[:wire.HeaderLen+len(rows)]); err != nil {
				return
			}
			c.Write(reply)
		}
	})
	conn, err := client.Dial(t.Context(), client.Config{Address: address})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if n := testing.AllocsPerRun(100, func() { conn.Do(rows) }); n != 0 {
		t.Errorf("Do allocates %v times, want 0", n)
	}
}

func FuzzCommand(f *testing.F) {
	f.Add([]byte("\x03rows"), twoRows(), uint64(wire.DeprecateEOF))
	f.Add([]byte("\x17\x01\x00\x00\x00\x01\x01\x00\x00\x00"), twoRows(), uint64(0))
	f.Add([]byte("\x03file"), packet(1, []byte("\xfbname")), uint64(wire.LocalFiles))
	f.Fuzz(func(t *testing.T, payload, reply []byte, caps uint64) {
		if len(payload) == 0 {
			return
		}
		var whole, pieces client.Command
		whole.Begin(payload, wire.Capabilities(caps))
		pieces.Begin(payload, wire.Capabilities(caps))
		sent := whole.AppendNext(nil)
		if string(sent[wire.HeaderLen:]) != string(payload) || string(pieces.AppendNext(nil)) != string(sent) {
			t.Fatalf("sent % x for % x", sent, payload)
		}
		if whole.Done() {
			return // a command without a reply
		}
		rest, err := whole.Feed(reply)
		var restPieces []byte
		var errPieces error
		for i := range reply {
			if restPieces, errPieces = pieces.Feed(reply[i : i+1]); errPieces != nil || pieces.Done() {
				restPieces = reply[i+1:]
				break
			}
		}
		if (err == nil) != (errPieces == nil) || whole.Done() != pieces.Done() || err == nil && whole.Done() && string(rest) != string(restPieces) {
			t.Fatalf("at once: done %v, %d left, %v; byte by byte: done %v, %d left, %v", whole.Done(), len(rest), err, pieces.Done(), len(restPieces), errPieces)
		}
	})
}

func BenchmarkDo(b *testing.B) {
	s := mysqltest.Shared(b)
	conn, err := client.Dial(b.Context(), client.Config{Address: s.Addr, User: mysqltest.User, Password: mysqltest.Password})
	if err != nil {
		b.Fatal(err)
	}
	defer conn.Close()
	payload := append([]byte{wire.ComQuery}, "SELECT 1"...)
	b.ReportAllocs()
	for b.Loop() {
		if _, _, err := conn.Do(payload); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "statements/s")
}
