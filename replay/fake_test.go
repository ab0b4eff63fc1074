package replay_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"redrive/capture"
	"redrive/internal/client"
	"redrive/internal/wire"
	"redrive/replay"
)

const ms = time.Millisecond

// A script is a capture made by hand.
type script struct {
	header  capture.Header
	records []capture.Record
	numbers map[uint64]uint64
}

func newScript() *script {
	return &script{
		header:  capture.Header{Producer: "proxy", Start: time.Unix(1000, 0), Clock: "monotonic"},
		numbers: map[uint64]uint64{},
	}
}

// start opens a session whose schema is its name: s1, s2, …
func (c *script) start(session uint64, at time.Duration) {
	c.records = append(c.records, capture.Record{Kind: capture.KindSessionStart, Start: capture.SessionStart{
		Session: session, At: at, Accepted: at, Schema: fmt.Sprintf("s%d", session),
	}})
}

func (c *script) end(session uint64, at time.Duration) {
	c.records = append(c.records, capture.Record{Kind: capture.KindSessionEnd, End: capture.SessionEnd{
		Session: session, At: at, Reason: capture.EndClient,
	}})
}

// add adds a statement that took 1 ms, changed as edit says.
func (c *script) add(session uint64, at time.Duration, command byte, text string, edit ...func(*capture.Statement)) {
	c.numbers[session]++
	s := capture.Statement{
		Session: session, Number: c.numbers[session], Command: command, Text: []byte(text), Schema: fmt.Appendf(nil, "s%d", session),
		Received: at, Complete: at, Sent: at, First: at + ms, Done: at + ms,
	}
	for _, e := range edit {
		e(&s)
	}
	c.records = append(c.records, capture.Record{Kind: capture.KindStatement, Statement: s})
}

func (c *script) query(session uint64, at time.Duration, text string, edit ...func(*capture.Statement)) {
	c.add(session, at, wire.ComQuery, text, edit...)
}

// begun turns the last statement into a begin and, where it was done, its end.
func (c *script) begun() {
	last := &c.records[len(c.records)-1]
	begin := *last
	begin.Kind = capture.KindBegin
	begin.Statement.Outcome, begin.Statement.Done, begin.Statement.First, begin.Statement.StatementID = capture.Outcome{}, 0, 0, 0
	last.Statement.Flags |= capture.Begun
	c.records = slices.Insert(c.records, len(c.records)-1, begin)
}

// bytes is the file, its records in the order they were done.
func (c *script) bytes(t testing.TB) []byte {
	t.Helper()
	done := func(r *capture.Record) time.Duration {
		if r.Kind == capture.KindStatement {
			return r.Statement.Done
		}
		return r.Place()
	}
	records := slices.Clone(c.records)
	slices.SortStableFunc(records, func(a, b capture.Record) int { return int(done(&a) - done(&b)) })
	var file bytes.Buffer
	w := capture.NewWriter(&file, c.header)
	for i := range records {
		switch r := &records[i]; r.Kind {
		case capture.KindSessionStart:
			w.SessionStart(&r.Start)
		case capture.KindSessionEnd:
			w.SessionEnd(&r.End)
		case capture.KindBegin:
			w.Begin(&r.Statement)
		default:
			w.Statement(&r.Statement)
		}
	}
	if err := w.Close(capture.Ledger{}); err != nil {
		t.Fatal(err)
	}
	return file.Bytes()
}

func memoryFile(name string, content []byte) replay.File {
	return replay.File{Name: name, Open: func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(content)), nil }}
}

// A command is one that a fake target was sent.
type command struct {
	session string // the schema it logged in with
	at      time.Duration
	code    byte
	text    string // what follows the command byte
}

func (c command) String() string {
	return fmt.Sprintf("%v %s: %s %q", c.at, c.session, wire.CommandName(c.code), c.text)
}

// A target is a server in memory. Statements with "fail" in them fail, "lose" loses the connection, "slow 250ms" takes
// that long, and everything else takes 1 ms.
type target struct {
	clock    capture.Clock
	refuse   string // schemas that begin so nobody may log in with; empty: none
	down     bool   // nobody may log in at all: a statement with "stop" in it has lost all connections
	mu       sync.Mutex
	commands []command
	open     int
	mostOpen int
	ids      uint32
	locks    map[string]chan struct{} // "lock NAME" waits for "unlock NAME"
}

func (f *target) dial(ctx context.Context, c client.Config) (replay.Conn, *capture.SessionStart, error) {
	if f.stopped() || f.refuse != "" && strings.HasPrefix(c.Schema, f.refuse) {
		return nil, nil, errors.New("log in: no such schema")
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.open++
	f.mostOpen = max(f.mostOpen, f.open)
	return &connection{target: f, ctx: ctx, session: c.Schema}, &capture.SessionStart{At: c.Now(), Accepted: c.Now(), Schema: c.Schema}, nil
}

type connection struct {
	*target
	ctx     context.Context
	session string
	reply   wire.Reply
}

func (c *connection) Offer([]byte) {}

func (c *connection) Do(payload []byte) (*wire.Reply, client.Times, error) {
	c.mu.Lock()
	sent := c.clock.Now()
	c.commands = append(c.commands, command{c.session, sent, payload[0], string(payload[1:])})
	c.mu.Unlock()
	c.reply.Begin(payload[0], wire.Protocol41, false)
	text := string(payload)
	if err := c.work(text); err != nil {
		return &c.reply, client.Times{Sent: sent}, err
	}
	t := client.Times{Sent: sent}
	if wire.HasReply(payload[0]) {
		t.First, t.Done = c.clock.Now(), c.clock.Now()
		c.answer(payload[0], text)
	}
	return &c.reply, t, nil
}

// work takes the time that a statement takes.
func (c *connection) work(text string) error {
	if strings.Contains(text, "stop") {
		c.mu.Lock()
		c.down = true
		c.mu.Unlock()
	}
	if strings.Contains(text, "lose") || c.stopped() {
		return io.ErrUnexpectedEOF
	}
	if _, name, ok := strings.Cut(text, "unlock "); ok {
		close(c.lock(name))
	} else if _, name, ok := strings.Cut(text, "lock "); ok {
		select {
		case <-c.lock(name):
		case <-c.ctx.Done():
			return c.ctx.Err()
		}
	}
	took := ms
	if _, d, ok := strings.Cut(text, "slow "); ok {
		took, _ = time.ParseDuration(d)
	}
	select {
	case <-time.After(took):
		return nil
	case <-c.ctx.Done():
		return c.ctx.Err()
	}
}

func (f *target) stopped() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.down
}

func (c *connection) lock(name string) chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.locks == nil {
		c.locks = map[string]chan struct{}{}
	}
	if c.locks[name] == nil {
		c.locks[name] = make(chan struct{})
	}
	return c.locks[name]
}

func (c *connection) answer(code byte, text string) {
	switch {
	case strings.Contains(text, "fail"):
		c.feed(wire.AppendError(nil, &wire.Error{Errno: 1105, SQLState: "HY000", Message: "failed"}))
	case code == wire.ComStmtPrepare:
		c.mu.Lock()
		c.ids++
		ok := binary.LittleEndian.AppendUint32([]byte{0}, 1000+c.ids)
		c.mu.Unlock()
		c.feed(append(ok, 0, 0, 0, 0, 0, 0, 0)) // no columns, no parameters
	default:
		c.feed(wire.AppendOK(nil, 0, wire.OK{Affected: 1, Status: wire.StatusAutocommit}))
	}
}

func (c *connection) feed(payload []byte) {
	if _, err := c.reply.Feed(wire.Piece{Data: payload, Length: len(payload), Head: true, Tail: true}); err != nil {
		panic(err)
	}
}

func (c *connection) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.open--
	return nil
}

// play plays a script to a fake target and gives the result and the recording. setup may change the player.
func play(t testing.TB, ctx context.Context, c *script, f *target, setup func(*replay.Player)) (*replay.Result, []byte) {
	t.Helper()
	files := []replay.File{memoryFile("hand.rdt", c.bytes(t))}
	scan, err := replay.ScanFiles(context.Background(), files)
	if err != nil {
		t.Fatal(err)
	}
	clock := capture.NewClock()
	f.clock = clock
	var out bytes.Buffer
	recorder := capture.NewRecorder(&out, capture.Header{Producer: "replay", Start: clock.Start()}, capture.RecorderOptions{OnFull: capture.Block})
	p := &replay.Player{Files: files, Scan: scan, Recorder: recorder, Clock: clock, Dial: f.dial}
	if setup != nil {
		setup(p)
	}
	result, err := p.Run(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := recorder.Close(0); err != nil {
		t.Fatal(err)
	}
	checkBalance(t, result, scan)
	return result, out.Bytes()
}

// checkBalance checks that every captured command has one fate.
func checkBalance(t testing.TB, r *replay.Result, scan *replay.Scan) {
	t.Helper()
	for name, a := range map[string]*replay.Account{
		"statements": &r.Statements, "commands": &r.Commands, "copies' statements": &r.Copies.Statements, "copies' commands": &r.Copies.Commands,
	} {
		if !a.Balances() {
			t.Errorf("%s do not balance: %+v", name, *a)
		}
	}
	if r.Statements.Captured != scan.Statements || r.Commands.Captured != scan.Commands {
		t.Errorf("the account has %d statements and %d commands, the scan %d and %d", r.Statements.Captured, r.Commands.Captured, scan.Statements, scan.Commands)
	}
}

// records reads a recording in start order.
func records(t testing.TB, file []byte) []*capture.Record {
	t.Helper()
	ordered := capture.InStartOrder(capture.NewReader(bytes.NewReader(file), "out.rdt"))
	var all []*capture.Record
	for ordered.Next() {
		all = append(all, ordered.Record().Clone())
	}
	if err := ordered.Err(); err != nil {
		t.Fatal(err)
	}
	return all
}
