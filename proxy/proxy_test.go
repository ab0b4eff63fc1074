package proxy_test

import (
	"bytes"
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"redrive/capture"
	"redrive/internal/client"
	"redrive/internal/mysqltest"
	"redrive/internal/wire"
	"redrive/proxy"
)

func TestMain(m *testing.M) {
	mysql.SetLogger(quiet{})
	os.Exit(func() int {
		defer stopSecure()
		return mysqltest.Run(bothRelays{m})
	}())
}

// portableRelay says which relay the proxies of the tests use where they do not say so themselves.
var portableRelay bool

// bothRelays runs the tests over event loops, then over goroutines.
type bothRelays struct{ *testing.M }

func (b bothRelays) Run() int {
	code := b.M.Run()
	portableRelay = true
	return max(code, b.M.Run())
}

// A running proxy with its recording in memory.
type running struct {
	*proxy.Proxy
	addr string
	file bytes.Buffer
	stop func() error // drains, closes the recording; once
}

// start runs a proxy in front of a backend until the test ends or stop is called.
func start(t *testing.T, backend string, set ...func(*proxy.Proxy)) *running {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return startOn(t, listener, backend, set...)
}

// startOn is start with a listener of the test's own.
func startOn(t *testing.T, listener net.Listener, backend string, set ...func(*proxy.Proxy)) *running {
	t.Helper()
	clock := capture.NewClock()
	r := &running{addr: listener.Addr().String()}
	r.Proxy = &proxy.Proxy{
		Backend: backend, Clock: clock, Portable: portableRelay, Loops: 2,
		Dial: func(ctx context.Context) (net.Conn, error) {
			var d net.Dialer
			return d.DialContext(ctx, "tcp", backend)
		},
		Recorder: capture.NewRecorder(&r.file, capture.Header{Producer: "proxy", Start: clock.Start()}, capture.RecorderOptions{Lanes: 2}),
	}
	for _, f := range set {
		f(r.Proxy)
	}
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- r.Serve(ctx, listener) }()
	r.stop = sync.OnceValue(func() error {
		cancel()
		err := <-served
		if r.Recorder == nil {
			return err
		}
		ledger, closeErr := r.Recorder.Close(0)
		if ledger.Stored+ledger.Shed != ledger.Forwarded || ledger.Forwarded != r.Totals().Commands {
			err = fmt.Errorf("ledger %+v does not balance with %d commands", ledger, r.Totals().Commands)
		}
		return errors.Join(err, closeErr)
	})
	t.Cleanup(func() {
		if err := r.stop(); err != nil {
			t.Error(err)
		}
	})
	return r
}

// records stops the proxy and reads what it recorded.
func (r *running) records(t *testing.T) []capture.Record {
	t.Helper()
	if err := r.stop(); err != nil {
		t.Fatal(err)
	}
	var all []capture.Record
	reader := capture.NewReader(bytes.NewReader(r.file.Bytes()), "test")
	for reader.Next() {
		all = append(all, *reader.Record().Clone())
	}
	if err := reader.Err(); err != nil {
		t.Fatal(err)
	}
	// Connections on different loops may be recorded some time later than they were done.
	slices.SortStableFunc(all, func(a, b capture.Record) int { return cmp.Compare(recordedAt(&a), recordedAt(&b)) })
	return all
}

// recordedAt is when what a record tells of was over.
func recordedAt(r *capture.Record) time.Duration {
	switch r.Kind {
	case capture.KindSessionStart:
		return r.Start.At
	case capture.KindSessionEnd:
		return r.End.At
	case capture.KindBegin:
		return r.Statement.Sent
	case capture.KindGap:
		return r.Gap.To
	}
	return r.Statement.Done
}

// texts are the SQL texts recorded, in the order they were done.
func (r *running) texts(t *testing.T) []string {
	var texts []string
	for _, rec := range r.records(t) {
		if rec.Kind == capture.KindStatement && rec.Statement.RunsSQL() {
			texts = append(texts, string(rec.Statement.Text))
		}
	}
	return texts
}

func open(t *testing.T, addr, options string) *sql.DB {
	t.Helper()
	db, err := sql.Open("mysql", fmt.Sprintf("%s:%s@tcp(%s)/%s", mysqltest.User, mysqltest.Password, addr, options))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db
}

type quiet struct{}

func (quiet) Print(...any) {}

func TestRelaysAndRecords(t *testing.T) {
	server := mysqltest.Shared(t)
	schema := server.Schema(t)
	p := start(t, server.Addr)
	db := open(t, p.addr, schema+"?multiStatements=true")
	db.SetMaxOpenConns(1)
	exec := func(query string, args ...any) {
		t.Helper()
		if _, err := db.Exec(query, args...); err != nil {
			t.Fatal(err)
		}
	}
	exec("CREATE TABLE t (a INT PRIMARY KEY, b VARCHAR(20))")
	exec("INSERT INTO t VALUES (?, ?), (?, ?)", 1, "one", 2, nil)
	tx, err := db.Begin()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec("UPDATE t SET b = 'x'"); err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec("INSERT INTO t VALUES (1, 'again')"); err == nil {
		t.Fatal("a duplicate key went in")
	}
	if err := tx.Rollback(); err != nil {
		t.Fatal(err)
	}
	var n int
	if err := db.QueryRow("SELECT COUNT(*) FROM t WHERE a > ?", 0).Scan(&n); err != nil || n != 2 {
		t.Fatalf("%d rows, %v", n, err)
	}
	exec("SELECT 1; SELECT 2; DELETE FROM t WHERE a = 2")
	db.Close()

	var got []string
	for _, rec := range p.records(t) {
		s := &rec.Statement
		if rec.Kind != capture.KindStatement || !s.RunsSQL() {
			continue
		}
		o := s.Outcome
		got = append(got, fmt.Sprintf("%d.%d/%d %s: %d rows, %d affected, error %d", s.Txn, s.Place, s.TxnEnd, s.Text, o.Rows, o.Affected, o.Errno))
		if s.Received <= 0 || s.Complete < s.Received || s.Sent < s.Complete || s.First < s.Received || s.Done < s.First {
			t.Errorf("%s: times out of order: %d %d %d %d %d", s.Text, s.Received, s.Complete, s.Sent, s.First, s.Done)
		}
		if string(s.Schema) != schema {
			t.Errorf("%s: schema %q, want %q", s.Text, s.Schema, schema)
		}
	}
	want := []string{
		"1.1/1 CREATE TABLE t (a INT PRIMARY KEY, b VARCHAR(20)): 0 rows, 0 affected, error 0",
		"2.1/1 INSERT INTO t VALUES (?, ?), (?, ?): 0 rows, 2 affected, error 0",
		"3.1/0 START TRANSACTION: 0 rows, 0 affected, error 0",
		"3.2/0 UPDATE t SET b = 'x': 0 rows, 2 affected, error 0",
		"3.3/0 INSERT INTO t VALUES (1, 'again'): 0 rows, 0 affected, error 1062",
		"3.4/3 ROLLBACK: 0 rows, 0 affected, error 0",
		"4.1/1 SELECT COUNT(*) FROM t WHERE a > ?: 1 rows, 0 affected, error 0",
		"5.1/1 SELECT 1; SELECT 2; DELETE FROM t WHERE a = 2: 2 rows, 1 affected, error 0",
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// Everything passes as it is but the bits withheld of the server's offer, also what cannot be understood.
func TestBytesPassUnchanged(t *testing.T) {
	offer := wire.Protocol41 | wire.SecureConnection | wire.PluginAuth | wire.SSL | wire.Compress | wire.Zstd |
		wire.DeprecateEOF | wire.SessionTrack | wire.QueryAttributes | wire.OptionalMetadata | wire.LocalFiles |
		wire.CacheMetadata | wire.Progress
	upload, download := make([]byte, 1<<20), make([]byte, 1<<20)
	random := rand.NewChaCha8([32]byte{4})
	random.Read(upload)
	random.Read(download)
	copy(upload, "\x09\x00\x00\x01\x85\x04\x00\x00\x00old\x00") // an answer to the greeting of the protocol before 4.1
	received := make(chan []byte, 1)
	peer := mysqltest.NewPeer(t, func(c *mysqltest.PeerConn) {
		c.Greet("8.4.0", offer)
		go c.Conn.Write(download)
		got := make([]byte, len(upload))
		io.ReadFull(c.Conn, got)
		received <- got
	})
	p := start(t, peer.Addr, func(p *proxy.Proxy) { p.DrainTimeout = time.Millisecond })
	conn, err := net.Dial("tcp", p.addr)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	greeting, err := wire.ParseGreeting(readPacket(t, conn))
	if err != nil {
		t.Fatal(err)
	}
	if want := offer &^ (wire.SSL | wire.Compress | wire.Zstd); greeting.Capabilities != want {
		t.Errorf("capabilities %x offered, want %x", greeting.Capabilities, want)
	}
	go conn.Write(upload)
	got := make([]byte, len(download))
	if _, err := io.ReadFull(conn, got); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, download) {
		t.Error("what the server sent did not arrive as it was")
	}
	if !bytes.Equal(<-received, upload) {
		t.Error("what the client sent did not arrive as it was")
	}
	if p.Totals().Opaque != 1 {
		t.Errorf("%d connections given up, want 1", p.Totals().Opaque)
	}
}

// A server that hangs up within its greeting is passed on as far as it came.
func TestCutGreeting(t *testing.T) {
	for _, sent := range []string{"", "\x05", "\x05\x00\x00\x00\x0a8."} {
		peer := mysqltest.NewPeer(t, func(c *mysqltest.PeerConn) { c.Send([]byte(sent)) })
		conn, err := net.Dial("tcp", start(t, peer.Addr).addr)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		if got, err := io.ReadAll(conn); err != nil || string(got) != sent {
			t.Errorf("got %q, %v, want %q", got, err, sent)
		}
	}
}

func readPacket(t *testing.T, conn net.Conn) []byte {
	t.Helper()
	var header [wire.HeaderLen]byte
	if _, err := io.ReadFull(conn, header[:]); err != nil {
		t.Fatal(err)
	}
	payload := make([]byte, int(header[0])|int(header[1])<<8|int(header[2])<<16)
	if _, err := io.ReadFull(conn, payload); err != nil {
		t.Fatal(err)
	}
	return payload
}

func TestBackendDownThenUp(t *testing.T) {
	port, err := mysqltest.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	backend := fmt.Sprintf("127.0.0.1:%d", port)
	p := start(t, backend)
	err = open(t, p.addr, "").Ping()
	var refused *mysql.MySQLError
	if !errors.As(err, &refused) || refused.Number != 1105 || !strings.Contains(refused.Message, backend) {
		t.Fatalf("error %v, want 1105 that names %s", err, backend)
	}
	listener, err := net.Listen("tcp", backend) // the backend comes up
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	go func() {
		if conn, err := listener.Accept(); err == nil {
			conn.Write([]byte("\x17\x00\x00\x00\xff\x10\x04Too many connections"))
			conn.Close()
		}
	}()
	if err := open(t, p.addr, "").Ping(); !errors.As(err, &refused) || refused.Number != 1040 {
		t.Fatalf("error %v, want the backend's own 1040", err)
	}
}

// A client that shuts down its writing side still gets its answer.
func TestHalfClose(t *testing.T) {
	peer := mysqltest.NewPeer(t, func(c *mysqltest.PeerConn) {
		c.Accept("10.11", wire.Protocol41|wire.SecureConnection|wire.PluginAuth)
		c.ReadPacket()
		c.ExpectHangUp()
		c.Send([]byte("\x07\x00\x00\x01\x00\x05\x00\x02\x00\x00\x00"))
	})
	p := start(t, peer.Addr)
	conn := handshake(t, p.addr)
	conn.Write([]byte("\x05\x00\x00\x00\x03DO 1"))
	conn.(*net.TCPConn).CloseWrite()
	answer, err := io.ReadAll(conn)
	if want := "\x07\x00\x00\x01\x00\x05\x00\x02\x00\x00\x00"; err != nil || string(answer) != want {
		t.Errorf("answer %q, %v, want %q", answer, err, want)
	}
}

// handshake logs in at a peer that takes anybody.
func handshake(t *testing.T, addr string) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	greeting, err := wire.ParseGreeting(readPacket(t, conn))
	if err != nil {
		t.Fatal(err)
	}
	response := wire.HandshakeResponse{Capabilities: greeting.Capabilities, Collation: 45, User: "u", Plugin: "mysql_native_password"}
	packet, _ := wire.AppendPacket(nil, 1, response.Append(nil))
	conn.Write(packet)
	if ok := readPacket(t, conn); ok[0] != 0 {
		t.Fatalf("login answered by %q", ok)
	}
	return conn
}

// A server that refuses a statement in the middle of its upload, and hangs up, is heard by the client.
func TestErrorDuringUpload(t *testing.T) {
	refusal := []byte("\x20\x00\x00\x01\xff\x81\x04#08S01Got a packet bigger....")
	refusal[0] = byte(len(refusal) - 4)
	peer := mysqltest.NewPeer(t, func(c *mysqltest.PeerConn) {
		c.Accept("10.11", wire.Protocol41|wire.SecureConnection|wire.PluginAuth)
		io.ReadFull(c.Conn, make([]byte, 1000))
		c.Send(refusal)
		c.Conn.(*net.TCPConn).CloseWrite()
		io.Copy(io.Discard, c.Conn)
	})
	p := start(t, peer.Addr)
	conn := handshake(t, p.addr)
	go func() {
		conn.Write([]byte("\xff\xff\xff\x00\x03"))
		for range 100 {
			if _, err := conn.Write(make([]byte, 64<<10)); err != nil {
				return
			}
		}
	}()
	got, _ := io.ReadAll(conn)
	if !bytes.Equal(got, refusal) {
		t.Errorf("the client got %q, want %q", got, refusal)
	}
}

// A client that first sends all and reads then can do so, though the server was gone long before.
func TestServerGoneDuringUpload(t *testing.T) {
	refusal := []byte("\x1e\x00\x00\x01\xff\x81\x04#08S01Got a packet bigger..")
	peer := mysqltest.NewPeer(t, func(c *mysqltest.PeerConn) {
		c.Accept("10.11", wire.Protocol41|wire.SecureConnection|wire.PluginAuth)
		io.ReadFull(c.Conn, make([]byte, 1000))
		c.Send(refusal)
		c.Conn.Close() // with bytes unread: a reset
	})
	p := start(t, peer.Addr)
	conn := handshake(t, p.addr)
	conn.Write([]byte("\xff\xff\xff\x00\x03"))
	for i := range 200 {
		if _, err := conn.Write(make([]byte, 64<<10)); err != nil {
			t.Fatalf("after %d pieces of the statement: %v", i, err)
		}
	}
	if got, _ := io.ReadAll(conn); !bytes.Equal(got, refusal) {
		t.Errorf("the client got %q, want %q", got, refusal)
	}
}

// A statement open for more than a second gets a begin record, and its end says so.
func TestBeginRecords(t *testing.T) {
	server := mysqltest.Shared(t)
	p := start(t, server.Addr)
	db := open(t, p.addr, "")
	if _, err := db.Exec("SELECT SLEEP(1.6)"); err != nil {
		t.Fatal(err)
	}
	if _, err := db.Exec("DO 1"); err != nil {
		t.Fatal(err)
	}
	db.Close()
	var got []string
	for _, rec := range p.records(t) {
		if s := &rec.Statement; rec.Kind == capture.KindBegin || rec.Kind == capture.KindStatement && s.RunsSQL() {
			got = append(got, fmt.Sprintf("%d %s begun=%t", rec.Kind, s.Text, s.Flags.Has(capture.Begun)))
			if rec.Kind == capture.KindBegin && s.Done != 0 {
				t.Errorf("a begin record with an end: %d", s.Done)
			}
		}
	}
	want := fmt.Sprintf("[%d SELECT SLEEP(1.6) begun=false %d SELECT SLEEP(1.6) begun=true %d DO 1 begun=false]",
		capture.KindBegin, capture.KindStatement, capture.KindStatement)
	if fmt.Sprint(got) != want {
		t.Errorf("got %v, want %s", got, want)
	}
}

// Idle connections are closed at once, one within a transaction when it ends.
func TestDrain(t *testing.T) {
	server := mysqltest.Shared(t)
	p := start(t, server.Addr, func(p *proxy.Proxy) { p.DrainTimeout = time.Minute })
	idle, busy := login(t, p.addr), login(t, p.addr)
	query(t, busy, "BEGIN")
	stopped := make(chan error, 1)
	go func() { stopped <- p.stop() }()
	if _, _, err := idle.Do(append([]byte{wire.ComQuery}, "DO SLEEP(0)"...)); err == nil {
		for err == nil { // the command may still have been in time
			_, _, err = idle.Do([]byte{wire.ComPing})
		}
	}
	query(t, busy, "DO 1") // its transaction goes on
	query(t, busy, "COMMIT")
	if err := <-stopped; err != nil {
		t.Fatal(err)
	}
	if _, _, err := busy.Do([]byte{wire.ComPing}); err == nil {
		t.Error("a connection lives on behind the end")
	}
}

func login(t *testing.T, addr string) *client.Conn {
	t.Helper()
	conn, err := client.Dial(t.Context(), client.Config{Network: "tcp", Address: addr, User: mysqltest.User, Password: mysqltest.Password})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn
}

func query(t *testing.T, conn *client.Conn, text string) {
	t.Helper()
	reply, _, err := conn.Do(append([]byte{wire.ComQuery}, text...))
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	if reply.Outcome.Errno != 0 {
		t.Fatalf("%s: error %d", text, reply.Outcome.Errno)
	}
}

// Answers come back while the goroutine that sent their question is still on its way to the follower: however they
// race, no answer is shown before its question.
func TestManyConnections(t *testing.T) {
	server := mysqltest.Shared(t)
	p := start(t, server.Addr)
	const connections, statements = 16, 200
	var group sync.WaitGroup
	for range connections {
		group.Go(func() {
			db := open(t, p.addr, "?interpolateParams=false")
			db.SetMaxOpenConns(1)
			prepared, err := db.Prepare("SELECT ?")
			if err != nil {
				t.Error(err)
				return
			}
			for i := range statements {
				var got int
				if err := prepared.QueryRow(i).Scan(&got); err != nil || got != i {
					t.Errorf("got %d, %v, want %d", got, err, i)
					return
				}
			}
			db.Close()
		})
	}
	group.Wait()
	seen := map[uint64]int{}
	for _, rec := range p.records(t) {
		if s := &rec.Statement; rec.Kind == capture.KindStatement && s.RunsSQL() {
			params, err := wire.DecodeParams(s.Params.Nulls, s.Params.Types, s.Params.Values, nil)
			if err != nil {
				t.Fatal(err)
			}
			if got, want := string(params[0].AppendText(nil)), fmt.Sprint(seen[s.Session]); got != want || s.Outcome.Rows != 1 {
				t.Fatalf("session %d: parameter %s with %d rows, want %s with 1", s.Session, got, s.Outcome.Rows, want)
			}
			seen[s.Session]++
		}
	}
	if len(seen) != connections || p.Totals().Opaque != 0 {
		t.Errorf("%d sessions, %d given up, want %d and 0", len(seen), p.Totals().Opaque, connections)
	}
	for id, n := range seen {
		if n != statements {
			t.Errorf("session %d: %d statements, want %d", id, n, statements)
		}
	}
}

// What merely has the word in a name is recorded as it is: a replay without it would go astray.
func TestNamesLikePasswordAreRecorded(t *testing.T) {
	peer := mysqltest.NewPeer(t, func(c *mysqltest.PeerConn) {
		c.Accept("10.11", wire.Protocol41|wire.SecureConnection|wire.PluginAuth)
		for {
			if _, ok := c.Next(); !ok {
				return
			}
			c.SendPacket(wire.AppendOK(nil, 0, wire.OK{}))
		}
	})
	p := start(t, peer.Addr)
	conn := handshake(t, p.addr)
	for _, command := range []string{"\x02app_passwords", "\x03SELECT password FROM u WHERE id=1;\n"} {
		packet, _ := wire.AppendPacket(nil, 0, []byte(command))
		conn.Write(packet)
		readPacket(t, conn)
	}
	conn.Close()
	var got []string
	for _, rec := range p.records(t) {
		if s := &rec.Statement; rec.Kind == capture.KindStatement {
			got = append(got, fmt.Sprintf("%s masked=%t", s.Text, s.Flags.Has(capture.Masked)))
		}
	}
	if want := "[app_passwords masked=false SELECT password FROM u WHERE id=1;\n masked=false]"; fmt.Sprint(got) != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestPasswordsAreNotRecorded(t *testing.T) {
	server := mysqltest.Shared(t)
	p := start(t, server.Addr)
	db := open(t, p.addr, "")
	const secret = "Tr0ub4dor"
	for _, statement := range []string{
		"CREATE USER masked@localhost IDENTIFIED BY '" + secret + "'",
		"/* app */ ALTER USER masked@localhost IDENTIFIED BY '" + secret + "'",
		"SET PASSWORD FOR masked@localhost = PASSWORD('" + secret + "')",
		"GRANT SELECT ON *.* TO masked@localhost IDENTIFIED BY \"" + secret + "\"",
		"SELECT PASSWORD('" + secret + "'); DROP USER masked@localhost",
		"CREATE TABLE test.f (a INT) ENGINE=FEDERATED CONNECTION='mysql://u:" + secret + "@127.0.0.1/test/f'",
		"SET GLOBAL s3_secret_key='" + secret + "'",
		"SELECT PASSWORD('" + secret + "')",
		"UPDATE mysql.global_priv SET Priv = '" + secret + "' WHERE User = 'nobody at all'",
	} {
		db.Exec(statement) // those the server refuses must not be recorded in clear either
	}
	db.Exec("CREATE USER masked@localhost IDENTIFIED BY ?", secret)
	db.Close()
	texts := p.texts(t)
	if len(texts) < 5 {
		t.Fatalf("%d statements recorded: %q", len(texts), texts)
	}
	for _, rec := range p.records(t) {
		s := &rec.Statement
		if bytes.Contains(s.Text, []byte(secret)) || bytes.Contains(s.Params.Values, []byte(secret)) {
			t.Errorf("a password is in the record of %q", s.Text)
		}
	}
	if !strings.Contains(texts[0], "?") || !strings.Contains(strings.ToLower(texts[0]), "create user") {
		t.Errorf("masked text %q, want the statement's shape", texts[0])
	}
}
