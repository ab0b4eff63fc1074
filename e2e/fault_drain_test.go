package e2e_test

import (
	"errors"
	"fmt"
	"io"
	"net"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"redrive/internal/mysqltest"
)

// A proxy that is asked to end takes no more logins, closes idle connections in good order, lets transactions end, and
// after --drain-timeout tells who still waits for an answer that none will come. Its file ends clean.
func TestFaultDrain(t *testing.T) {
	server := mysqltest.Shared(t)
	o := prepareOLTP(t, server)
	eachRelay(t, func(t *testing.T, relay string) {
		file := filepath.Join(t.TempDir(), "drain.rdt")
		p := startProxy(t, "--backend", server.Addr, relay, "--out", file, "--drain-timeout", pick("3s", "20s"))
		m := startMeter(t, server)
		idle := mustRawLogin(t, p.addr)
		open := dial(t, p.addr)
		mustQuery(t, open, "BEGIN", "UPDATE "+o.schema+".sbtest1 SET k = k + 1 WHERE id = 1")
		waiting := waitForever(t, m, p.addr)
		load := transact(t, p.addr, o.schema)
		soon(t, "the load runs", func() bool { return load.committed.Load() > 20 })

		p.process.Signal(syscall.SIGTERM)
		if n, err := idle.Read(make([]byte, 1)); n != 0 || !errors.Is(err, io.EOF) {
			t.Errorf("the end of an idle connection: %d bytes, %v, want EOF and nothing before", n, err)
		}
		if conn, err := net.Dial("tcp", p.addr); err == nil {
			if n, err := conn.Read(make([]byte, 1)); n > 0 || err == nil {
				t.Error("a proxy that is ending has greeted a client")
			}
			conn.Close()
		}
		mustQuery(t, open, "UPDATE "+o.schema+".sbtest1 SET k = k + 1 WHERE id = 2", "COMMIT")
		soon(t, "a connection whose transaction has ended is closed", func() bool { return query(open, "DO 1") != nil })
		load.clients.Wait()
		if err := <-waiting; err != nil {
			t.Error(err)
		}
		printed, err := p.wait()
		noCrash(t, printed)
		if err != nil {
			t.Errorf("ended with %v:\n%s", err, printed)
		}
		l := readLedger(t, printed)
		m.compareParted(t, l, uint64(sessions(t, file)))
		compareFile(t, file, l)
	})
}

// A second signal ends the proxy at once, whoever is in the midst of what; the file ends clean all the same.
func TestFaultDrainCutShort(t *testing.T) {
	server := mysqltest.Shared(t)
	eachRelay(t, func(t *testing.T, relay string) {
		file := filepath.Join(t.TempDir(), "short.rdt")
		p := startProxy(t, "--backend", server.Addr, relay, "--out", file, "--drain-timeout", "24h")
		m := startMeter(t, server)
		idle := mustRawLogin(t, p.addr)
		open := dial(t, p.addr)
		mustQuery(t, open, "BEGIN")
		waiting := waitForever(t, m, p.addr)
		p.process.Signal(syscall.SIGTERM)
		if _, err := idle.Read(make([]byte, 1)); !errors.Is(err, io.EOF) { // so it has begun to drain
			t.Errorf("the end of an idle connection: %v, want EOF", err)
		}
		mustQuery(t, open, "DO 1")
		p.process.Signal(syscall.SIGTERM)
		printed, err := p.wait()
		noCrash(t, printed)
		if err != nil {
			t.Errorf("ended with %v:\n%s", err, printed)
		}
		if err := <-waiting; err != nil {
			t.Error(err)
		}
		l := readLedger(t, printed)
		m.compareParted(t, l, uint64(sessions(t, file)))
		compareFile(t, file, l)
	})
}

// forever is a statement that outlasts every drain.
const forever = "SELECT SLEEP(100000)"

// waitForever has a client wait for an answer. It is to be told, by an ERR packet in its place, that none will come; the
// channel gives an error if it is not.
func waitForever(t *testing.T, m *meter, addr string) <-chan error {
	t.Helper()
	c := dial(t, addr)
	outcome := make(chan error, 1)
	go func() {
		defer c.Close()
		_, _, err := c.Query(forever)
		switch e := c.LastError(); {
		case err != nil:
			outcome <- fmt.Errorf("who waits for an answer at the end: %w, want an ERR packet", err)
		case e == nil:
			outcome <- fmt.Errorf("%s was answered", forever)
		default:
			t.Logf("who waits for an answer at the end is told: %v", e)
			outcome <- nil
		}
	}()
	soon(t, "the server sleeps", func() bool {
		return m.ask(t, "SELECT COUNT(*) FROM information_schema.processlist WHERE info = '"+forever+"'") == 1
	})
	return outcome
}

// A transactors is clients that run transactions in a closed loop until they are parted from the server.
type transactors struct {
	committed atomic.Uint64
	clients   sync.WaitGroup
}

// transact starts them. Between BEGIN and the end of COMMIT nobody may be parted from the server.
func transact(t *testing.T, addr, schema string) *transactors {
	t.Helper()
	tr := &transactors{}
	for i := range 4 {
		c := dial(t, addr)
		statement := fmt.Sprintf("UPDATE %s.sbtest2 SET k = k + 1 WHERE id = %d", schema, i+1)
		tr.clients.Go(func() {
			defer c.Close()
			for query(c, "BEGIN") == nil {
				for _, text := range []string{statement, "DO SLEEP(0.01)", statement, "COMMIT"} {
					if err := query(c, text); err != nil {
						t.Errorf("within a transaction, after %d others: %v", tr.committed.Load(), err)
						return
					}
				}
				tr.committed.Add(1)
			}
		})
	}
	return tr
}
