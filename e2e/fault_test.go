package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"redrive/capture"
	"redrive/internal/mysqltest"
)

// The tests named TestFault show that a proxy cannot hurt a client, whatever happens to its recording, its backend or
// its other clients. Each has a short form, and a long one that `make faults` runs; docs/faults.md lists them.

// inFull says that the long forms are wanted.
var inFull = os.Getenv("REDRIVE_FAULTS") == "full"

// pick chooses what the form at hand takes.
func pick[T any](short, long T) T {
	if inFull {
		return long
	}
	return short
}

// relays are the values of --relay.
var relays = []string{"loops", "goroutines"}

// eachRelay runs a case with either relay.
func eachRelay(t *testing.T, run func(t *testing.T, relay string)) {
	t.Helper()
	for _, relay := range relays {
		t.Run(relay, func(t *testing.T) { run(t, "--relay="+relay) })
	}
}

// soon is eventually with a bound that only a fault reaches, so that the other cases have their turn.
func soon(t *testing.T, what string, ok func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	eventually(ctx, t, what, ok)
}

// A ledger is what a proxy printed of its recordings, and capture.Ledger what it means.
type ledger capture.Ledger

var ledgerLine = regexp.MustCompile(`(\d+) commands forwarded = (\d+) stored \+ (\d+) shed \+ (\d+) unfinished`)

// readLedger reads the line at the end of every recording. What was unfinished when one recording gave way to the next
// is in the next one's account.
func readLedger(t *testing.T, printed string) ledger {
	t.Helper()
	lines := ledgerLine.FindAllStringSubmatch(printed, -1)
	if len(lines) == 0 {
		t.Fatalf("no ledger in what the proxy printed:\n%s", printed)
	}
	var sum ledger
	for i, line := range lines {
		var n [4]uint64
		for k := range n {
			n[k], _ = strconv.ParseUint(line[k+1], 10, 64)
		}
		if n[0] != n[1]+n[2]+n[3] {
			t.Errorf("the ledger does not add up: %s", line[0])
		}
		if i < len(lines)-1 {
			n[0], n[3] = n[0]-n[3], 0
		}
		sum.Forwarded += n[0]
		sum.Stored += n[1]
		sum.Shed += n[2]
		sum.Unfinished += n[3]
	}
	return sum
}

// A meter reads from a server's own counters how many commands it was given. Nobody else may use the server.
type meter struct {
	server *mysqltest.Server
	before uint64 // what the counters said when the meter was started
	own    uint64 // readings since: each is a question itself
}

// commandCounters add up to the commands of a server whose clients use no PING, STATISTICS or SQL-level PREPARE:
// Questions leaves out the commands that the others count.
var commandCounters = []string{"Questions", "Com_stmt_prepare", "Com_stmt_close", "Com_stmt_reset"}

func startMeter(t *testing.T, server *mysqltest.Server) *meter {
	t.Helper()
	m := &meter{server: server}
	m.before, m.own = m.read(t), 0
	return m
}

// read waits until the server has parted from all clients but ourselves, so that what they said is counted to the last
// QUIT, and reads the counters.
func (m *meter) read(t *testing.T) (sum uint64) {
	t.Helper()
	soon(t, "the server parts from all clients", func() bool {
		m.own++
		status := m.server.Status(t, append(commandCounters, "Threads_connected")...)
		sum = 0
		for _, name := range commandCounters {
			sum += status[name]
		}
		return status["Threads_connected"] == uint64(m.server.DB().Stats().OpenConnections)
	})
	return sum
}

// ask runs a query of ours for one number.
func (m *meter) ask(t *testing.T, text string) (n int) {
	t.Helper()
	m.own++
	if err := m.server.DB().QueryRow(text).Scan(&n); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return n
}

// busy reports whether others give the server commands.
func (m *meter) busy(t *testing.T) bool {
	t.Helper()
	read := func() int {
		return m.ask(t, "SELECT variable_value FROM information_schema.global_status WHERE variable_name = 'QUESTIONS'")
	}
	before := read()
	time.Sleep(time.Second)
	return read() > before+1 // the reading itself
}

// commands is how many commands others have given the server.
func (m *meter) commands(t *testing.T) uint64 {
	t.Helper()
	return m.read(t) - m.before - m.own
}

// compare asks that the server was given as many commands as the proxy has forwarded.
func (m *meter) compare(t *testing.T, l ledger) {
	t.Helper()
	if counted := m.commands(t); l.Forwarded != counted {
		t.Errorf("the proxy has forwarded %d commands, the server counts %d", l.Forwarded, counted)
	}
}

// compareParted is compare where the proxy has parted up to so many sessions from the server itself, by a QUIT of its own
// if the server waited for a command.
func (m *meter) compareParted(t *testing.T, l ledger, sessions uint64) {
	t.Helper()
	if counted := m.commands(t); counted < l.Forwarded || counted > l.Forwarded+sessions {
		t.Errorf("the proxy has forwarded %d commands, and up to %d QUITs of its own; the server counts %d", l.Forwarded, sessions, counted)
	}
}

// settle ends a proxy and checks its account against the server's. It returns what the proxy printed and how it ended.
func settle(t *testing.T, p *proxyProcess, m *meter) (l ledger, printed string, err error) {
	t.Helper()
	m.read(t) // all clients have parted: else the proxy might part one whose QUIT is on its way, and say QUIT itself
	printed, err = p.end()
	noCrash(t, printed)
	l = readLedger(t, printed)
	m.compare(t, l)
	if l.Forwarded == 0 {
		t.Error("nothing was forwarded: the test did not bite")
	}
	return l, printed, err
}

// settleWhole is settle for a recording that must have lost nothing.
func settleWhole(t *testing.T, p *proxyProcess, m *meter) ledger {
	t.Helper()
	l, printed, err := settle(t, p, m)
	if err != nil || l.Shed != 0 {
		t.Errorf("ended with %v, %d commands shed\n%s", err, l.Shed, printed)
	}
	return l
}

// noCrash looks for what a program that crashes, or that the race detector caught, prints.
func noCrash(t *testing.T, printed string) {
	t.Helper()
	for _, sign := range []string{"panic:", "DATA RACE", "fatal error:", "goroutine "} {
		if strings.Contains(printed, sign) {
			t.Errorf("the proxy printed %q:\n%s", sign, printed)
			return
		}
	}
}

// A contents is what a capture file holds, counted.
type contents struct {
	statements uint64 // commands: the ledger's stored
	shed       uint64 // as its gaps tell
	cut        uint64 // transactions of which a part is missing, as its gaps tell
	gaps       int
}

// countFile reads a capture. The file must end cleanly.
func countFile(t *testing.T, file string) contents {
	t.Helper()
	c, err := countUpTo(t, file)
	if err != nil {
		t.Errorf("%s does not end cleanly: %v", file, err)
	}
	return c
}

// countUpTo reads a capture as far as it can be read.
func countUpTo(t *testing.T, file string) (c contents, end error) {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	r := capture.NewReader(f, file)
	for r.Next() {
		switch rec := r.Record(); rec.Kind {
		case capture.KindStatement:
			c.statements++
		case capture.KindGap:
			c.gaps++
			c.shed += rec.Gap.Statements
			c.cut += rec.Gap.Cut
		}
	}
	return c, r.Err()
}

// compareFile asks of a whole file that it says what the ledger says.
func compareFile(t *testing.T, file string, l ledger) {
	t.Helper()
	if c := countFile(t, file); c.statements != l.Stored || c.shed != l.Shed {
		t.Errorf("the file holds %d statements and tells of %d shed, the ledger says %d and %d", c.statements, c.shed, l.Stored, l.Shed)
	}
	verify(t, file)
}

// verify is trace verify, without the race detector: files may be large.
func verify(t *testing.T, file string) {
	t.Helper()
	path, err := lean()
	if err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(path, "trace", "verify", file).CombinedOutput(); err != nil {
		t.Errorf("trace verify: %v\n%s", err, out)
	}
}

// A usage is what a process takes of the machine.
type usage struct {
	rss, peak int // bytes
	threads   int
	files     int
}

// measure reads what the kernel knows of the proxy's process.
func (p *proxyProcess) measure(t *testing.T) usage {
	t.Helper()
	dir := fmt.Sprintf("/proc/%d", p.process.Pid())
	status, err := os.ReadFile(dir + "/status")
	if err != nil {
		t.Fatal(err)
	}
	files, err := os.ReadDir(dir + "/fd")
	if err != nil {
		t.Fatal(err)
	}
	u := usage{files: len(files)}
	for line := range strings.Lines(string(status)) {
		fields := strings.Fields(line)
		if len(fields) < 2 {
			continue
		}
		n, _ := strconv.Atoi(fields[1])
		switch fields[0] {
		case "VmRSS:":
			u.rss = n << 10
		case "VmHWM:":
			u.peak = n << 10
		case "Threads:":
			u.threads = n
		}
	}
	if u.rss == 0 || u.threads == 0 {
		t.Fatalf("no figures in %s/status:\n%s", dir, status)
	}
	return u
}

// A valve is a consumer of a recording: it copies what comes into a file, at a bounded rate until it is opened wide.
type valve struct {
	wide  chan struct{}
	ended chan struct{}
	err   error // set when ended is closed
}

// drain copies from a pipe or FIFO, which it opens and closes, into a new file, at rate bytes a second; 0 is
// nothing before it is opened wide.
func drain(open func() (io.ReadCloser, error), file string, rate int) *valve {
	d := &valve{wide: make(chan struct{}), ended: make(chan struct{})}
	go func() {
		defer close(d.ended)
		d.err = d.copy(open, file, rate)
	}()
	return d
}

func (d *valve) copy(open func() (io.ReadCloser, error), file string, rate int) error {
	from, err := open()
	if err != nil {
		return err
	}
	defer from.Close()
	to, err := os.OpenFile(file, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer to.Close()
	if rate == 0 {
		<-d.wide
	}
	const steps = 50 // a second
	ticks := time.NewTicker(time.Second / steps)
	defer ticks.Stop()
	for {
		select {
		case <-ticks.C:
			if _, err := io.CopyN(to, from, int64(rate/steps)); errors.Is(err, io.EOF) {
				return nil
			} else if err != nil {
				return err
			}
		case <-d.wide:
			_, err := io.Copy(to, from)
			return err
		}
	}
}

// open lets everything through from now on.
func (d *valve) open() { close(d.wide) }

// wait waits for the end of what is copied.
func (d *valve) wait(t *testing.T) {
	t.Helper()
	<-d.ended
	if d.err != nil {
		t.Error(d.err)
	}
}

// fifo makes a FIFO and a valve that copies from it into file.
func fifo(t *testing.T, file string, rate int) (path string, d *valve) {
	t.Helper()
	path = file + ".fifo"
	if out, err := exec.Command("mkfifo", path).CombinedOutput(); err != nil {
		t.Fatalf("mkfifo: %v\n%s", err, out)
	}
	return path, drain(func() (io.ReadCloser, error) { return os.Open(path) }, file, rate)
}
