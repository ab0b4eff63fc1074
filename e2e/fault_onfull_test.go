package e2e_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"redrive/capture"
	"redrive/internal/mysqltest"
)

// An oltpTables is what sysbench's OLTP workloads work on: large enough, and drawn from evenly, so that threads seldom
// get into each other's way.
type oltpTables struct{ schema string }

var oltpOptions = []string{"--tables=4", "--table-size=2000", "--rand-type=uniform"}

// prepareOLTP makes the tables, past any proxy.
func prepareOLTP(t *testing.T, server *mysqltest.Server) oltpTables {
	t.Helper()
	o := oltpTables{server.Schema(t)}
	sysbench(t, server.Addr, o.schema, append(oltpOptions, "oltp_read_write", "prepare")...)
	return o
}

// run runs oltp_read_write, statements as text, with four threads unless options say otherwise. No connection may be
// lost.
func (o oltpTables) run(t *testing.T, addr string, options ...string) mysqltest.Report {
	t.Helper()
	args := append([]string{"--threads=4", "--db-ps-mode=disable"}, oltpOptions...)
	report := sysbench(t, addr, o.schema, append(append(args, options...), "oltp_read_write", "run")...)
	if report.Reconnects != 0 || report.Total == 0 {
		t.Errorf("sysbench: %d reconnects, %d statements", report.Reconnects, report.Total)
	}
	return report
}

// perTransaction is how many statements sysbench's oltp_read_write has between BEGIN and COMMIT, these included.
const perTransaction = 20

// Each of the ways to deal with a recording that has no room left does what it says, and the account is right.
func TestFaultOnFull(t *testing.T) {
	server := mysqltest.Shared(t)
	o := prepareOLTP(t, server)
	for _, policy := range []string{"shed", "shed-transactions", "block", "stop"} {
		t.Run(policy, func(t *testing.T) {
			dir := t.TempDir()
			file, control := filepath.Join(dir, "full.rdt"), filepath.Join(dir, "control.sock")
			path, consumer := fifo(t, file, 0)
			p := launch{lean: true}.start(t, "--backend", server.Addr, "--out", path, "--control", control, "--memory-limit", "1MiB", "--on-full", policy)
			m := startMeter(t, server)
			ended := make(chan struct{})
			go func() {
				defer close(ended)
				o.run(t, p.addr, "--time=0", "--events="+pick("2000", "50000"))
			}()
			if policy == "block" {
				waitUntilStill(t, m, control, ended)
			} else {
				<-ended
			}
			consumer.open()
			<-ended
			l, printed, err := settle(t, p, m)
			consumer.wait(t)
			compareFile(t, file, l)
			parts := partial(t, file)
			t.Logf("%d stored, %d shed; %s", l.Stored, l.Shed, parts)
			if shed := policy != "block"; shed != (l.Shed > 0) || shed != (err != nil) || l.Stored == 0 {
				t.Errorf("%d commands stored, %d shed, ended with %v; want commands shed and a failure: %t\n%s", l.Stored, l.Shed, err, shed, printed)
			}
			switch policy {
			case "shed":
				if parts.cut == 0 {
					t.Error("no transaction was shed in part: that none is by other policies would show nothing")
				}
			case "shed-transactions":
				if told := countFile(t, file).cut; uint64(parts.cut) != told || parts.whole <= parts.cut {
					t.Errorf("%s; want each whole or not at all, but for %d that the file says it lacked room for", parts, told)
				}
			case "block":
				if parts.cut > 0 {
					t.Errorf("%s; want them whole", parts)
				}
			case "stop":
				if !strings.Contains(printed, "stop") {
					t.Errorf("the proxy does not tell that its recording has stopped:\n%s", printed)
				}
			}
		})
	}
}

// waitUntilStill waits until clients are made to wait: they have not ended, and the server has nothing to do. The proxy
// is there for others all the same.
func waitUntilStill(t *testing.T, m *meter, control string, ended <-chan struct{}) {
	t.Helper()
	soon(t, "clients are made to wait", func() bool { return !m.busy(t) })
	select {
	case <-ended:
		t.Error("clients were done before there was room for what they did")
	default:
	}
	answer := make(chan result, 1)
	go func() { answer <- redrive(t, "proxy", "record", "status", "--control", control) }()
	select {
	case r := <-answer:
		if r.status != 0 {
			t.Errorf("record status while clients wait: exit status %d\n%s", r.status, r.stderr)
		}
	case <-time.After(20 * time.Second): // it would wait until there is room again
		t.Error("record status is not answered while clients wait")
	}
}

// parts tells how many transactions are in a file as a whole, and how many are not.
type parts struct{ whole, cut int }

func (p parts) String() string {
	return fmt.Sprintf("%d transactions whole, %d in part", p.whole, p.cut)
}

// partial counts the transactions of oltp_read_write in a file by whether all their statements are there. One in which
// a statement failed is shorter by right, and is left out.
func partial(t *testing.T, file string) (p parts) {
	t.Helper()
	type key struct{ session, txn uint64 }
	counts, failed := map[key]int{}, map[key]bool{}
	for _, rec := range records(t, file) {
		if s := &rec.Statement; rec.Kind == capture.KindStatement && s.Txn != 0 {
			counts[key{s.Session, s.Txn}]++
			failed[key{s.Session, s.Txn}] = failed[key{s.Session, s.Txn}] || s.Outcome.Errno != 0
		}
	}
	for k, n := range counts {
		switch {
		case failed[k]:
		case n == perTransaction:
			p.whole++
		default:
			p.cut++
		}
	}
	return p
}
