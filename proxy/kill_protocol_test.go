package proxy_test

import (
	"fmt"
	"math/rand/v2"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"redrive/capture"
	"redrive/internal/mysqltest"
	"redrive/internal/wire"
)

// KILL QUERY and KILL CONNECTION at random moments: nothing hangs, and every statement is in the record once, with what
// the client saw of its outcome.
func TestKills(t *testing.T) {
	const workers, statements = 8, 10_000
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	server := mysqltest.Shared(t)
	schema := server.Schema(t)
	server.Exec(t, "CREATE TABLE "+schema+".t (a INT PRIMARY KEY, b INT)", "INSERT INTO "+schema+".t SELECT seq, seq FROM "+schema+".seq_1_to_200")
	p := start(t, server.Addr)
	var left atomic.Int64
	left.Store(statements)
	var kills killed
	stop := make(chan struct{})
	var killer, group sync.WaitGroup
	killer.Go(func() { kills.run(t, server, rand.New(rand.NewPCG(seed, 100)), stop) })
	var mu sync.Mutex
	seen := map[uint64][]outcome{} // by connection
	for i := range workers {
		group.Go(func() {
			rng := rand.New(rand.NewPCG(seed, uint64(i)))
			for left.Load() > 0 {
				id, outcomes := victim(t, p.addr, schema, rng, &left, &kills)
				mu.Lock()
				seen[id] = outcomes
				mu.Unlock()
			}
		})
	}
	group.Wait()
	close(stop)
	killer.Wait()
	compareOutcomes(t, p, seen)
	if kills.queries == 0 || kills.connections == 0 {
		t.Errorf("%d queries and %d connections killed, want some of each", kills.queries, kills.connections)
	}
}

// An outcome is what a client saw of one statement.
type outcome struct {
	text     string
	rows     uint64
	errno    uint16
	answered bool
}

// killed keeps the server's ids of the connections that may be killed.
type killed struct {
	mu                   sync.Mutex
	ids                  []uint32
	queries, connections int
}

func (k *killed) add(id uint32) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.ids = append(k.ids, id)
}

func (k *killed) remove(id uint32) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for i, other := range k.ids {
		if other == id {
			k.ids = append(k.ids[:i], k.ids[i+1:]...)
			return
		}
	}
}

// run kills one after the other until stop is closed.
func (k *killed) run(t *testing.T, server *mysqltest.Server, rng *rand.Rand, stop <-chan struct{}) {
	for {
		select {
		case <-stop:
			return
		case <-time.After(time.Duration(rng.IntN(3000)) * time.Microsecond):
		}
		k.mu.Lock()
		var id uint32
		if len(k.ids) > 0 {
			id = k.ids[rng.IntN(len(k.ids))]
		}
		what := "QUERY"
		if rng.IntN(10) == 0 {
			what = "CONNECTION"
			k.connections++
		} else {
			k.queries++
		}
		k.mu.Unlock()
		server.DB().Exec(fmt.Sprintf("KILL %s %d", what, id)) // it may be gone already
	}
}

// victim runs statements on a connection of its own until it is killed, or no more are left.
func victim(t *testing.T, addr, schema string, rng *rand.Rand, left *atomic.Int64, kills *killed) (id uint64, outcomes []outcome) {
	caps := combinations()[rng.IntN(16)]
	c := dialRaw(t, addr, schema, caps)
	defer c.conn.Close()
	kills.add(c.id)
	defer kills.remove(c.id)
	for left.Add(-1) >= 0 {
		text := []string{
			"SELECT SLEEP(0.002)", "SELECT * FROM t", "SELECT 1; SELECT SLEEP(0.001); SELECT a FROM t LIMIT 100", "UPDATE t SET b = b + 1 WHERE a = 7",
			"SELECT COUNT(*) FROM t x, t y", "DO 1",
		}[rng.IntN(6)]
		o := outcome{text: text}
		_, err := c.conn.Write(frame(0, []byte("\x03"+text)))
		if err == nil {
			_, err = c.read([]byte("\x03" + text))
			c.log = nil
		}
		if timeout, ok := err.(net.Error); ok && timeout.Timeout() {
			t.Errorf("%s: no reply, and no end", text)
		}
		o.answered, o.rows, o.errno = err == nil, c.reply.Outcome.Rows, c.reply.Outcome.Errno
		outcomes = append(outcomes, o)
		if err != nil {
			break
		}
	}
	return uint64(c.id), outcomes
}

// compareOutcomes compares what clients saw with the record. The last statement of a connection that was killed may have
// reached the proxy when it had no server any more, and then is in no record; or it is there without an answer.
func compareOutcomes(t *testing.T, p *running, seen map[uint64][]outcome) {
	t.Helper()
	connections, recorded := map[uint64]uint64{}, map[uint64][]capture.Statement{}
	for _, rec := range p.records(t) {
		switch rec.Kind {
		case capture.KindSessionStart:
			connections[rec.Start.Session] = rec.Start.ConnectionID
		case capture.KindStatement:
			id := connections[rec.Statement.Session]
			recorded[id] = append(recorded[id], rec.Statement)
		}
	}
	if n := p.Totals().Opaque; n != 0 {
		t.Errorf("%d connections given up, want none", n)
	}
	answered, cut := 0, 0
	for id, outcomes := range seen {
		statements := recorded[id]
		for i, o := range outcomes {
			if i >= len(statements) {
				if o.answered || i < len(outcomes)-1 {
					t.Errorf("connection %d: statement %d, %s, is in no record", id, i+1, o.text)
				}
				break
			}
			s := &statements[i]
			ended := s.Flags&(capture.Unanswered|capture.Cut) == 0
			if s.Number != uint64(i+1) || string(s.Text) != o.text || s.Command != wire.ComQuery || ended != o.answered ||
				o.answered && (s.Outcome.Rows != o.rows || s.Outcome.Errno != o.errno) {
				t.Errorf("connection %d, statement %d: recorded %d %s, flags %b, %d rows, error %d; the client saw %+v",
					id, i+1, s.Number, s.Text, s.Flags, s.Outcome.Rows, s.Outcome.Errno, o)
			}
			if ended {
				answered++
			} else {
				cut++
			}
		}
		if len(statements) > len(outcomes) {
			t.Errorf("connection %d: %d statements recorded, %d sent", id, len(statements), len(outcomes))
		}
	}
	t.Logf("%d connections, %d statements answered, %d not", len(seen), answered, cut)
}
