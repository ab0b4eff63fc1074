package synth

import (
	"context"
	"encoding/binary"
	"fmt"
	"sync"
	"time"

	"redrive/capture"
	"redrive/internal/client"
	"redrive/internal/session"
	"redrive/internal/wire"
)

// Types of parameters, as the protocol manual numbers them.
const (
	typeLongLong  = 0x08
	typeVarString = 0xFD
)

// texts are the statements' texts with ? for values, by kind and table; one for kinds without a table.
type texts [kindCount][][]byte

func newTexts(kinds []Kind, tables int) *texts {
	t := new(texts)
	for _, kind := range kinds {
		n := 1
		if kind.HasTable() {
			n = tables
		}
		for table := range n {
			t[kind] = append(t[kind], []byte(kind.Text(table+1)))
		}
	}
	return t
}

// A conn is a session on the server, and what is recorded of it.
type conn struct {
	*client.Conn
	clock   capture.Clock
	sink    Sink
	record  capture.Statement // of the command at hand; used again
	payload []byte
	types   []byte
	values  []byte
	nulls   []byte
	texts   *texts
	ids     [kindCount][]uint32 // of prepared statements, as texts; 0 or none where the statement goes as text
	trx     session.Transactions

	mu       sync.Mutex    // guards what the watcher looks at
	since    time.Duration // from when on something is under way that is not recorded yet; 0: nothing
	sent     time.Duration // of the command under way
	begun    bool          // the record has a begin of the command under way
	promised time.Duration // the recorder has been told that nothing older will come
	commands uint64
	id       uint64
	open     bool // a session start has been recorded
}

// dial logs in. It is called once.
func (c *conn) dial(ctx context.Context, config client.Config) (err error) {
	config.Now = c.clock.Now
	c.underWay()
	c.Conn, err = client.Dial(ctx, config)
	if c.sink == nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.since = 0
	if err != nil {
		return err
	}
	c.record.Schema = []byte(config.Schema)
	login := c.Login
	c.sink.SessionStart(&capture.SessionStart{
		Session: c.id, At: c.Ready, Accepted: c.Dialed, User: config.User, Schema: config.Schema,
		Collation: uint16(login.Collation), Capabilities: login.Capabilities,
		ConnectionID: uint64(login.Greeting.ConnectionID), ServerVersion: login.Greeting.ServerVersion,
		Status: login.Status, Client: c.LocalAddr().String(), Attributes: config.Attributes,
	})
	c.open = true
	return nil
}

// underWay notes that from now on something is under way.
func (c *conn) underWay() {
	if c.sink == nil {
		return
	}
	c.mu.Lock()
	c.since, c.sent, c.begun = c.clock.Now(), 0, false
	c.mu.Unlock()
}

// end says goodbye, unless the connection is lost already, and records the end.
func (c *conn) end(reason capture.EndReason, detail string) {
	if c.Conn == nil {
		return
	}
	c.Close()
	if c.sink == nil || !c.open {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.sink.SessionEnd(&capture.SessionEnd{Session: c.id, At: c.clock.Now(), Reason: reason, Detail: detail, Commands: c.commands})
	c.open = false
}

// prepare has the server prepare every statement that kinds need, kind by kind. A server that does not prepare BEGIN or
// COMMIT gets them as text.
func (c *conn) prepare(kinds []Kind) error {
	for _, kind := range kinds {
		for _, text := range c.texts[kind] {
			id, err := c.prepareOne(text)
			if err != nil {
				return err
			}
			c.ids[kind] = append(c.ids[kind], id)
		}
	}
	return nil
}

const errUnsupportedPrepare = 1295

func (c *conn) prepareOne(text []byte) (id uint32, err error) {
	c.payload = append(append(c.payload[:0], wire.ComStmtPrepare), text...)
	c.record.Text = text
	reply, err := c.do(c.payload)
	switch {
	case err != nil:
		return 0, err
	case reply.Outcome.Errno == errUnsupportedPrepare:
		return 0, nil
	case reply.Outcome.Errno != 0:
		return 0, c.LastError()
	}
	return reply.Prepared.ID, nil
}

// run sends a statement, as it was prepared or else as text. intended is when it was due, 0 if nothing paced it. An
// error means that the connection is lost; an ERR is in the reply.
func (c *conn) run(s *Statement, intended time.Duration) (*wire.Reply, error) {
	c.record.Intended = intended
	place := max(0, s.Table-1)
	text := c.texts[s.Kind][place]
	if ids := c.ids[s.Kind]; place < len(ids) && ids[place] != 0 {
		return c.execute(ids[place], text, s.Args)
	}
	c.payload = s.AppendSQL(append(c.payload[:0], wire.ComQuery), text)
	c.record.Text = c.payload[1:]
	return c.do(c.payload)
}

// query sends a text.
func (c *conn) query(text []byte) (*wire.Reply, error) {
	c.payload = append(append(c.payload[:0], wire.ComQuery), text...)
	c.record.Text = c.payload[1:]
	return c.do(c.payload)
}

func (c *conn) execute(id uint32, text []byte, args []Arg) (*wire.Reply, error) {
	c.types, c.values, c.nulls = c.types[:0], c.values[:0], c.nulls[:0]
	for _, arg := range args {
		if arg.Text == nil {
			c.types = append(c.types, typeLongLong, 0)
			c.values = binary.LittleEndian.AppendUint64(c.values, uint64(arg.Int))
		} else {
			c.types = append(c.types, typeVarString, 0)
			c.values = wire.AppendLenencBytes(c.values, arg.Text)
		}
	}
	for range (len(args) + 7) / 8 {
		c.nulls = append(c.nulls, 0)
	}
	c.payload = wire.AppendExecute(c.payload[:0], id, 0, c.nulls, c.types, c.values)
	c.record.Text = text
	c.record.StatementID = id
	c.record.Params = capture.Params{Nulls: c.nulls, Types: c.types, Values: c.values}
	return c.do(c.payload)
}

// do runs the command whose own fields are in c.record, and records it.
func (c *conn) do(payload []byte) (*wire.Reply, error) {
	c.underWay()
	t, err := c.Send(payload)
	if err == nil {
		if c.sink != nil {
			c.mu.Lock()
			c.sent = t.Sent
			c.mu.Unlock()
		}
		err = c.Finish(&t)
	}
	reply := c.Reply()
	c.finish(payload, &t, reply, err)
	return reply, err
}

// finish completes the record and stores it, and clears what belonged to this command alone. Without a sink only the
// times are kept, for the tally.
func (c *conn) finish(payload []byte, t *client.Times, reply *wire.Reply, err error) {
	r := &c.record
	r.Sent, r.First, r.Done = t.Sent, t.First, t.Done
	if err != nil {
		r.Done = c.clock.Now()
	}
	if r.Sent == 0 {
		r.Sent = r.Done
	}
	if c.sink != nil {
		c.store(payload, reply, err)
	}
	r.Intended, r.StatementID, r.Params = 0, 0, capture.Params{}
}

func (c *conn) store(payload []byte, reply *wire.Reply, err error) {
	r := &c.record
	c.mu.Lock()
	defer c.mu.Unlock()
	c.commands++
	r.Session, r.Number, r.Command = c.id, c.commands, payload[0]
	r.RequestBytes = uint64(len(payload) + wire.HeaderLen*(1+len(payload)/wire.MaxPayload))
	r.Outcome = reply.Outcome
	r.Txn, r.Place, r.TxnEnd, r.Flags = 0, 0, capture.TxnOpen, 0
	switch {
	case err != nil && reply.Begun():
		r.Flags = capture.Cut
	case err != nil:
		r.Flags = capture.Unanswered
	}
	switch {
	case !r.RunsSQL():
	case err != nil:
		c.trx.Abandon(r)
	default:
		c.trx.Assign(r)
	}
	if r.Command == wire.ComStmtPrepare {
		r.StatementID = reply.Prepared.ID
	}
	if c.begun {
		// The end of a command that had a begin has its place by Done, which was taken before the lock: the recorder
		// may have been promised in between that nothing this old will come.
		r.Flags |= capture.Begun
		r.Done = max(r.Done, c.promised)
	}
	c.sink.Statement(r)
	c.since = 0
}

// service is how long the database took for the command that ended last.
func (c *conn) service() time.Duration { return c.record.Done - c.record.Sent }

// look is the watcher's: it stores a begin of a command that has been open for long, and gives the time from when on
// something that the record does not know of is under way; now if nothing is.
func (c *conn) look(now, limit time.Duration) time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.promised = now
	switch {
	case c.since == 0 || c.begun:
		return now
	case c.open && c.sent != 0 && now-c.since >= limit:
		c.storeBegin()
		return now
	}
	return min(now, c.since)
}

// storeBegin stores what is known of the command under way. Its own goroutine is waiting for the reply, and does not
// touch the record before it has the lock.
func (c *conn) storeBegin() {
	s := capture.Statement{
		Session: c.id, Number: c.commands + 1, Command: c.payload[0], Flags: capture.Begun, Schema: c.record.Schema,
		Text: c.record.Text, StatementID: c.record.StatementID, Params: c.record.Params,
		Intended: c.record.Intended, Sent: c.sent,
		RequestBytes: uint64(len(c.payload) + wire.HeaderLen*(1+len(c.payload)/wire.MaxPayload)),
	}
	c.begun = true
	c.sink.Begin(&s)
}

// lostText is how the client library puts what the Go error says in more words.
func lostText(err error) string {
	return fmt.Sprintf("Lost connection to MySQL server during query (%v)", err)
}
