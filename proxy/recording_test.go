package proxy_test

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"redrive/capture"
	"redrive/internal/mysqltest"
	"redrive/internal/wire"
	"redrive/proxy"
)

// A tape is a recording in memory.
type tape struct {
	file     bytes.Buffer
	recorder *capture.Recorder
}

func newTape(p *running) *tape {
	t := &tape{}
	t.recorder = capture.NewRecorder(&t.file, capture.Header{Producer: "proxy", Start: p.Clock.Start()}, capture.RecorderOptions{})
	return t
}

// records closes the tape and reads it; its ledger must balance and its file be consistent.
func (r *tape) records(t *testing.T, unfinished uint64) []capture.Record {
	t.Helper()
	ledger, err := r.recorder.Close(unfinished)
	if err != nil || ledger.Stored+ledger.Shed+ledger.Unfinished != ledger.Forwarded || ledger.Shed != 0 {
		t.Errorf("ledger %+v, %v", ledger, err)
	}
	if v := capture.Verify(capture.NewReader(bytes.NewReader(r.file.Bytes()), "tape")); !v.OK() {
		t.Errorf("verify: %v, %q", v.Err, v.Problems)
	}
	var all []capture.Record
	reader := capture.NewReader(bytes.NewReader(r.file.Bytes()), "tape")
	for reader.Next() {
		all = append(all, *reader.Record().Clone())
	}
	return all
}

func relayOnly(p *proxy.Proxy) { p.Recorder.Close(0); p.Recorder = nil }

// A session that is open joins at its next command, with what the follower knows of it; what it executes later can be
// understood by itself.
func TestJoinsInTheMidst(t *testing.T) {
	server := mysqltest.Shared(t)
	schema := server.Schema(t)
	p := start(t, server.Addr, relayOnly)
	conn := login(t, p.addr)
	query(t, conn, "USE "+schema)
	query(t, conn, "CREATE TABLE t (a BIGINT PRIMARY KEY)")
	insert, _, err := conn.Prepare("INSERT INTO t VALUES (?)")
	if err != nil {
		t.Fatal(err)
	}
	execute := func(n byte) {
		t.Helper()
		payload := wire.AppendExecute(nil, insert.ID, 0, []byte{0}, []byte{8, 0}, []byte{n, 0, 0, 0, 0, 0, 0, 0})
		if n > 1 { // types are known from before
			payload = append(append(payload[:11:11], 0), payload[len(payload)-8:]...)
		}
		if reply, _, err := conn.Do(payload); err != nil || reply.Outcome.Errno != 0 {
			t.Fatalf("execute: %v, error %d", err, reply.Outcome.Errno)
		}
	}
	query(t, conn, "BEGIN")
	execute(1)
	idle := login(t, p.addr)

	r := newTape(p)
	if before, _ := p.Record(r.recorder); before != nil {
		t.Error("there was a recording before")
	}
	execute(2)
	query(t, conn, "COMMIT")
	if before, unfinished := p.Record(nil); before != r.recorder || unfinished != 0 {
		t.Errorf("Record(nil) = %p, %d, want %p, 0", before, unfinished, r.recorder)
	}
	query(t, idle, "DO 1") // too late for this recording

	var got []string
	for _, rec := range r.records(t, 0) {
		switch rec.Kind {
		case capture.KindSessionStart:
			s := rec.Start
			got = append(got, fmt.Sprintf("joined %t: %s@%s status %04x", s.Joined, s.User, s.Schema, s.Status))
			for _, p := range s.Prepared {
				got = append(got, fmt.Sprintf("prepared %t: %s, %d parameters, types % x", p.ID == insert.ID, p.Text, p.Params, p.Types))
			}
		case capture.KindStatement:
			s := rec.Statement
			got = append(got, fmt.Sprintf("%d %s types % x, %d.%d, in %s", s.Command, s.Text, s.Params.Types, s.Txn, s.Place, s.Schema))
		case capture.KindSessionEnd:
			got = append(got, fmt.Sprintf("end: %s", rec.End.Reason))
		}
	}
	want := []string{
		"joined true: root@" + schema + " status 0003",
		"prepared true: INSERT INTO t VALUES (?), 1 parameters, types 08 00",
		"23 INSERT INTO t VALUES (?) types 08 00, 3.3, in " + schema,
		"3 COMMIT types , 3.4, in " + schema,
		"end: " + capture.EndStopped.String(),
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// Going over from one file to the next under load loses no statement, and stores none twice.
func TestRotationUnderLoad(t *testing.T) {
	server := mysqltest.Shared(t)
	p := start(t, server.Addr, relayOnly)
	const sessions = 6
	var group sync.WaitGroup
	stop := make(chan struct{})
	sent := make([]int, sessions)
	first := newTape(p)
	p.Record(first.recorder)
	for i := range sessions {
		conn := login(t, p.addr)
		group.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				query(t, conn, fmt.Sprintf("DO %d + 0 * %d", i, sent[i]))
				sent[i]++
			}
		})
	}
	tapes := []*tape{first}
	for range 4 {
		time.Sleep(50 * time.Millisecond) // some load for each file
		next := newTape(p)
		if _, unfinished := p.Record(next.recorder); unfinished != 0 {
			t.Errorf("%d commands unfinished; none takes long here", unfinished)
		}
		tapes = append(tapes, next)
	}
	close(stop)
	group.Wait()
	p.Record(nil)
	var texts []string
	for i, r := range tapes {
		n := 0
		for _, rec := range r.records(t, 0) {
			if rec.Kind == capture.KindStatement && rec.Statement.RunsSQL() {
				texts = append(texts, string(rec.Statement.Text))
				n++
			}
		}
		if n == 0 {
			t.Errorf("file %d has no statements: the test does not bite", i)
		}
	}
	total := 0
	for i, n := range sent {
		total += n
		for k := range n {
			if want := fmt.Sprintf("DO %d + 0 * %d", i, k); !slices.Contains(texts, want) {
				t.Fatalf("%q is in no file", want)
			}
		}
	}
	if len(texts) != total {
		t.Errorf("%d statements in the files, %d sent", len(texts), total)
	}
}

// A command that is in flight for long when files change is begun and unfinished in the first, and whole in the second.
func TestRecordingEndsBeforeAStatement(t *testing.T) {
	server := mysqltest.Shared(t)
	p := start(t, server.Addr, relayOnly)
	r := newTape(p)
	p.Record(r.recorder)
	conn := login(t, p.addr)
	done := make(chan error, 1)
	go func() {
		_, _, err := conn.Do(append([]byte{wire.ComQuery}, "DO SLEEP(5)"...))
		done <- err
	}()
	for p.Totals().BytesIn < 100 { // the login, and the command behind it
		time.Sleep(5 * time.Millisecond)
	}
	next := newTape(p)
	_, unfinished := p.Record(next.recorder)
	if unfinished != 1 {
		t.Errorf("%d unfinished, want 1", unfinished)
	}
	begun := 0
	for _, rec := range r.records(t, unfinished) {
		switch rec.Kind {
		case capture.KindBegin:
			begun++
		case capture.KindStatement:
			t.Errorf("%s is stored as done", rec.Statement.Text)
		}
	}
	if begun != 1 {
		t.Errorf("%d begin records, want 1", begun)
	}
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	query(t, conn, "DO 2")
	p.Record(nil)
	var texts []string
	for _, rec := range next.records(t, 0) {
		if rec.Kind == capture.KindStatement {
			texts = append(texts, string(rec.Statement.Text))
		}
	}
	if want := "[DO SLEEP(5) DO 2]"; fmt.Sprint(texts) != want {
		t.Errorf("the next file has %q, want %s", texts, want)
	}
}
