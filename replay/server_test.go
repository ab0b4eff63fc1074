package replay_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"redrive/capture"
	"redrive/internal/client"
	"redrive/internal/identity"
	"redrive/internal/mysqltest"
	"redrive/internal/pace"
	"redrive/internal/wire"
	"redrive/replay"
)

func TestMain(m *testing.M) { mysqltest.Main(m) }

// playTo plays a script to a real server, each session in the schema it names, and gives the result and the recording.
func playTo(t *testing.T, server *mysqltest.Server, c *script, scale int) (*replay.Result, []*capture.Record) {
	t.Helper()
	files := []replay.File{memoryFile("hand.rdt", c.bytes(t))}
	scan, err := replay.ScanFiles(context.Background(), files)
	if err != nil {
		t.Fatal(err)
	}
	clock := capture.NewClock()
	var out bytes.Buffer
	recorder := capture.NewRecorder(&out, capture.Header{Producer: "replay", Start: clock.Start()}, capture.RecorderOptions{OnFull: capture.Block})
	p := &replay.Player{
		Files: files, Scan: scan, Speed: pace.Max, Scale: scale, Recorder: recorder, Clock: clock,
		Config: client.Config{Address: server.Addr, User: mysqltest.User, Password: mysqltest.Password},
	}
	result, err := p.Run(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := recorder.Close(0); err != nil {
		t.Fatal(err)
	}
	checkBalance(t, result, scan)
	return result, records(t, out.Bytes())
}

// in puts the script's sessions into a schema of the server's.
func (c *script) in(schema string, capabilities wire.Capabilities) {
	for i := range c.records {
		c.records[i].Start.Schema, c.records[i].Start.Capabilities = schema, capabilities
	}
}

func outcome(rows, affected uint64, errno uint16) func(*capture.Statement) {
	return func(s *capture.Statement) {
		s.Outcome = capture.Outcome{Rows: rows, Affected: affected, Errno: errno, HasStatus: errno == 0}
	}
}

// Every kind of command reaches a real server as it was captured: outcomes, transactions and data come out the same.
func TestReplayToServer(t *testing.T) {
	server := mysqltest.Shared(t)
	schema := server.Schema(t)
	server.Exec(t, "CREATE TABLE "+schema+".t (id INT PRIMARY KEY, v LONGTEXT)")
	c := newScript()
	c.start(1, 0)
	step := 0
	add := func(command byte, text string, edit ...func(*capture.Statement)) {
		step++
		c.add(1, time.Duration(2*step)*ms, command, text, edit...)
	}
	const insert, selected = "INSERT INTO t VALUES (?, ?)", "SELECT * FROM t WHERE id > ?"
	params := func(id uint32, types string, values []byte) func(*capture.Statement) {
		return func(s *capture.Statement) {
			s.StatementID = id
			s.Params = capture.Params{Nulls: []byte{0}, Types: []byte(types), Values: values}
		}
	}
	long := binary.LittleEndian.AppendUint32(nil, 7)
	add(wire.ComQuery, "BEGIN", outcome(0, 0, 0))
	add(wire.ComStmtPrepare, insert, id(41))
	add(wire.ComStmtExecute, insert, outcome(0, 1, 0), params(41, "\x03\x00\xFD\x00", append(long, 1, 'a')))
	add(wire.ComQuery, "INSERT INTO t VALUES (7, 'again')", outcome(0, 0, 1062))
	add(wire.ComStmtSendLongData, "\x01\x00"+strings.Repeat("x", 100), id(41))
	add(wire.ComStmtExecute, insert, outcome(0, 1, 0), params(41, "\x03\x00\xFD\x00", binary.LittleEndian.AppendUint32(nil, 8)))
	bulk := []byte("\x00\x00" + "\x00\x09\x00\x00\x00\x00\x01i" + "\x00\x0A\x00\x00\x00\x00\x01j") // (9, 'i'), (10, 'j')
	add(wire.ComStmtBulkExecute, insert, outcome(0, 2, 0), params(41, "\x03\x00\xFD\x00", bulk))
	add(wire.ComStmtClose, insert, id(41))
	add(wire.ComQuery, "COMMIT", outcome(0, 0, 0))
	add(wire.ComQuery, "UPDATE t SET v = 'a' WHERE id = 7", outcome(0, 1, 0))                     // found, not changed
	add(wire.ComQuery, "SELECT 1; SELECT id FROM t", outcome(5, 0, 0))                            // several statements
	add(wire.ComStmtExecute, selected, outcome(4, 0, 0), params(55, "\x03\x00", make([]byte, 4))) // never prepared
	add(wire.ComStmtExecute, selected, outcome(0, 0, 0), params(55, "\x03\x00", make([]byte, 4)), func(s *capture.Statement) { s.Flags = capture.Cursor })
	add(wire.ComStmtFetch, selected, outcome(4, 0, 0), id(55))
	add(wire.ComStmtReset, selected, outcome(0, 0, 0), id(55))
	add(wire.ComQuery, "SELECT * FROM missing", outcome(0, 0, 1146))
	add(wire.ComInitDB, "information_schema", outcome(0, 0, 0))
	add(wire.ComQuery, "SELECT DATABASE()", outcome(1, 0, 0))
	add(wire.ComPing, "", outcome(0, 0, 0))
	add(wire.ComStatistics, "")
	add(wire.ComSetOption, "\x01\x00")
	add(wire.ComResetConnection, "", outcome(0, 0, 0))
	add(wire.ComQuit, "")
	c.end(1, ms*1000)
	c.in(schema, wire.FoundRows|wire.MultiStatements|wire.StmtBulk)

	r, recorded := playTo(t, server, c, 1)
	if len(r.Differences) > 0 || r.Errors.Same != 2 || !r.Complete() {
		t.Errorf("differences %+v, %d errors the same, complete %v, %v; want none, 2, true", r.Differences, r.Errors.Same, r.Complete(), r.Sessions.Reasons)
	}
	var length int
	if err := server.DB().QueryRow("SELECT LENGTH(v) FROM " + schema + ".t WHERE id = 8").Scan(&length); err != nil || length != 100 {
		t.Errorf("the long value has %d bytes (%v), want 100", length, err)
	}
	var transactions []string
	for _, rec := range recorded {
		if s := &rec.Statement; rec.Kind == capture.KindStatement && s.RunsSQL() && s.Number <= 9 {
			transactions = append(transactions, fmt.Sprintf("%d.%d/%d", s.Txn, s.Place, s.TxnEnd))
		}
	}
	want := []string{"1.1/0", "1.2/0", "1.3/0", "1.4/0", "1.5/0", fmt.Sprintf("1.6/%d", capture.TxnCommit)}
	if !slices.Equal(transactions, want) {
		t.Errorf("transactions recorded as %v, want %v", transactions, want)
	}
}

// A statement that fails inside a transaction does not stop what follows; copies leave the data alone.
func TestFailureWithinTransaction(t *testing.T) {
	server := mysqltest.Shared(t)
	schema := server.Schema(t)
	server.Exec(t, "CREATE TABLE "+schema+".t (id INT PRIMARY KEY)", "INSERT INTO "+schema+".t VALUES (1)")
	c := newScript()
	c.start(1, 0)
	c.query(1, 2*ms, "BEGIN", outcome(0, 0, 0))
	c.query(1, 4*ms, "INSERT INTO t VALUES (1)", outcome(0, 1, 0))
	c.query(1, 6*ms, "INSERT INTO t VALUES (2)", outcome(0, 1, 0))
	c.query(1, 8*ms, "COMMIT", outcome(0, 0, 0))
	c.in(schema, 0)
	r, _ := playTo(t, server, c, 3)
	if r.Errors.New != 1 || r.Differences[0].Where != "1.2" || r.Differences[0].Replayed != 1062 || !r.Complete() {
		t.Errorf("new errors %d, %+v, complete %v; want one, 1062 at 1.2, true", r.Errors.New, r.Differences, r.Complete())
	}
	var rows int
	if err := server.DB().QueryRow("SELECT COUNT(*) FROM " + schema + ".t").Scan(&rows); err != nil || rows != 2 {
		t.Errorf("%d rows (%v), want 2: the one there was and the second insert's", rows, err)
	}
	if r.Sessions.Opened != 3 || r.Copies.Statements.Replayed != 4 || r.Copies.Statements.Skipped != 4 || r.Copies.Errors != 0 {
		t.Errorf("opened %d, copies replayed %d, skipped %d, failed %d; want 3, 4, 4, 0", r.Sessions.Opened, r.Copies.Statements.Replayed, r.Copies.Statements.Skipped, r.Copies.Errors)
	}
}

// A schema that the target lacks refuses the login, and says so.
func TestLoginRefused(t *testing.T) {
	server := mysqltest.Shared(t)
	c := newScript()
	c.start(1, 0)
	c.query(1, ms, "SELECT 1")
	c.in("nowhere", 0)
	r, _ := playTo(t, server, c, 1)
	if r.Complete() || r.Sessions.Refused != 1 || len(r.Sessions.Reasons) != 1 || !strings.Contains(r.Sessions.Reasons[0], "1049") {
		t.Errorf("complete %v, refused %d because of %q, want false, 1, error 1049", r.Complete(), r.Sessions.Refused, r.Sessions.Reasons)
	}
	if strings.Contains(fmt.Sprint(r.Sessions.Reasons), mysqltest.Password) {
		t.Error("the password stands in the reason")
	}
}

// The gates against a real server, by every way to reach it.
func TestGateAtServer(t *testing.T) {
	server := mysqltest.Shared(t)
	ctx := context.Background()
	inspect := func(network, address string) replay.Target {
		t.Helper()
		target, err := replay.InspectTarget(ctx, server.DB(), network, address)
		if err != nil {
			t.Fatal(err)
		}
		return target
	}
	host, port, _ := net.SplitHostPort(server.Addr)
	own, err := identity.Probe(ctx, server.DB())
	if err != nil {
		t.Fatal(err)
	}
	probed, addressed := newScript(), newScript()
	probed.header.Server = &own
	addressed.header.Backend = net.JoinHostPort("localhost", port)
	addressed.header.Resolved = []string{net.JoinHostPort(host, port)}
	for _, c := range []*script{probed, addressed} {
		c.query(1, ms, "SELECT 1")
		for _, address := range []string{server.Addr, server.Socket} {
			network := "tcp"
			if address == server.Socket {
				network = "unix"
			}
			target := inspect(network, address)
			var refusal *replay.Refusal
			if _, err := (replay.Gate{}).Check(scanOf(t, c), &target); !errors.As(err, &refusal) {
				t.Errorf("captured from %+v, replayed to %s: %v, want a refusal", c.header, address, err)
			}
		}
	}
	if target := inspect("tcp", server.Addr); target.Marked {
		t.Error("a server without the schema is marked")
	}
	server.Exec(t, "CREATE DATABASE "+replay.MarkerSchema)
	t.Cleanup(func() { server.Exec(t, "DROP DATABASE "+replay.MarkerSchema) })
	if target := inspect("tcp", server.Addr); !target.Marked {
		t.Error("a server with the schema is not marked")
	}
}
