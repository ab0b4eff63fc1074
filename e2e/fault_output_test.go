package e2e_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"redrive/internal/mysqltest"
)

// A recording whose consumer is too slow sheds, and says what; clients are served at the pace of a proxy that does not
// record at all.
func TestFaultSlowOutput(t *testing.T) {
	const clients, rounds = 8, 7
	eachRelay(t, func(t *testing.T, relay string) {
		server := mysqltest.Shared(t)
		bare := launch{lean: true}.start(t, "--backend", server.Addr, relay)
		dir := t.TempDir()
		file, control := filepath.Join(dir, "slow.rdt"), filepath.Join(dir, "control.sock")
		path, consumer := fifo(t, file, 1<<20)
		p := launch{lean: true}.start(t, "--backend", server.Addr, relay, "--out", path, "--control", control, "--memory-limit", "8MiB")
		round := pick(300*time.Millisecond, 5*time.Second)
		var relayed, recorded uint64
		var ratios []float64
		m := startMeter(t, server)
		for range rounds { // in turns, so that what else the machine does hits both
			without := workFor(t, round, bare.addr, clients, bulky)
			with := workFor(t, round, p.addr, clients, bulky)
			relayed, recorded = relayed+without, recorded+with
			ratios = append(ratios, float64(with)/float64(without))
		}
		soon(t, "commands are shed", func() bool {
			recorded += workFor(t, round, p.addr, clients, bulky)
			return status(t, control).Shed > 0
		})
		consumer.open()
		m.read(t)             // all clients have parted
		printed, _ := p.end() // it fails, as commands were shed
		noCrash(t, printed)
		l := readLedger(t, printed)
		consumer.wait(t)
		bare.stop(t)
		bareToo := l
		bareToo.Forwarded += relayed + rounds*clients // each said QUIT
		m.compare(t, bareToo)
		compareFile(t, file, l)
		if l.Shed == 0 || l.Stored == 0 {
			t.Errorf("%d commands stored, %d shed: the test did not bite", l.Stored, l.Shed)
		}
		slices.Sort(ratios)
		ratio := ratios[len(ratios)/2]
		t.Logf("%d statements while relaying, %d while recording, %.2f in the median; %d stored, %d shed", relayed, recorded, ratio, l.Stored, l.Shed)
		if ratio < 0.5 {
			t.Errorf("with a slow consumer clients got %.2f of what they get without recording, want at least 0.5", ratio)
		}
	})
}

// A disk that runs full costs the recording what came while it was full, and nobody else anything. What is in the file is
// whole, and after space is made the recording goes on.
func TestFaultFullDisk(t *testing.T) {
	server := mysqltest.Shared(t)
	disk := smallDisk(t)
	file, control := filepath.Join(disk, "full.rdt"), filepath.Join(t.TempDir(), "control.sock")
	p := launch{lean: true}.start(t, "--backend", server.Addr, "--out", file, "--control", control, "--memory-limit", "16MiB")
	m := startMeter(t, server)
	c := hire(t, p.addr, 2, bulky)
	soon(t, "commands are shed", func() bool { return status(t, control).Shed > 0 })
	full := status(t, control)
	if err := syscall.Mount("redrive-faults", disk, "tmpfs", syscall.MS_REMOUNT, "size=4m"); err != nil {
		t.Fatal(err)
	}
	soon(t, "recording goes on when there is space", func() bool { return status(t, control).Stored > full.Stored })
	time.Sleep(pick(time.Second, 20*time.Second)) // it runs full again, for good
	c.dismiss(t)
	l, printed, err := settle(t, p, m)
	if err == nil || !strings.Contains(printed, "no space left") {
		t.Errorf("ended with %v and does not tell of the disk:\n%s", err, printed)
	}
	got, end := countUpTo(t, file)
	t.Logf("%d stored, %d shed in the ledger; %d stored, %d gaps with %d shed in the file, which ends with %v", l.Stored, l.Shed, got.statements, got.gaps, got.shed, end)
	if got.statements != l.Stored {
		t.Errorf("the file holds %d statements, the ledger says %d stored", got.statements, l.Stored)
	}
	if got.gaps == 0 {
		t.Error("the file does not tell of what is missing in its midst")
	}
	r := redrive(t, "trace", "verify", file)
	if r.status != 0 && !strings.Contains(r.stdout+r.stderr, "offset ") {
		t.Errorf("trace verify: exit status %d\n%s%s", r.status, r.stdout, r.stderr)
	}
}

// smallDisk is a file system of 1 MiB, for as long as the test lasts.
func smallDisk(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := syscall.Mount("redrive-faults", dir, "tmpfs", 0, "size=1m"); err != nil {
		t.Fatalf("mount a tmpfs on %s: %v; this test wants root, with leave to mount", dir, err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, 0); err != nil {
			t.Errorf("unmount %s: %v", dir, err)
		}
	})
	return dir
}

var statusLine = regexp.MustCompile(`(\d+) commands stored, (\d+) shed`)

// status asks a proxy how its recording is doing.
func status(t *testing.T, control string) (l ledger) {
	t.Helper()
	printed := mustRedrive(t, "proxy", "record", "status", "--control", control)
	found := statusLine.FindStringSubmatch(printed)
	if found == nil {
		t.Fatalf("record status printed %q", printed)
	}
	l.Stored, _ = strconv.ParseUint(found[1], 10, 64)
	l.Shed, _ = strconv.ParseUint(found[2], 10, 64)
	return l
}

// A recording that cannot be written at all stores nothing, sheds all, and says both.
func TestFaultNoSpaceAtAll(t *testing.T) {
	eachRelay(t, func(t *testing.T, relay string) {
		server := mysqltest.Shared(t)
		o := prepareOLTP(t, server)
		p := startProxy(t, "--backend", server.Addr, relay, "--out", "/dev/full")
		m := startMeter(t, server)
		o.run(t, p.addr, "--time="+pick("2", "60"))
		l, printed, err := settle(t, p, m)
		if err == nil || l.Stored != 0 || l.Shed == 0 || !strings.Contains(printed, "no space left") {
			t.Errorf("ended with %v, %d stored, %d shed; want a failure that tells of the disk, and nothing stored\n%s", err, l.Stored, l.Shed, printed)
		}
	})
}

// A consumer that is stopped altogether (`--out - | consumer`) costs what it does not take, and no client notices.
func TestFaultStoppedConsumer(t *testing.T) {
	eachRelay(t, func(t *testing.T, relay string) {
		server := mysqltest.Shared(t)
		dir := t.TempDir()
		file, control := filepath.Join(dir, "stopped.rdt"), filepath.Join(dir, "control.sock")
		out, consumer := catInto(t, file)
		p := launch{stdout: out}.start(t, "--backend", server.Addr, relay, "--out", "-", "--control", control, "--memory-limit", "8MiB")
		out.Close()
		m := startMeter(t, server)
		consumer.Signal(syscall.SIGSTOP)
		c := hire(t, p.addr, 4, bulky)
		time.Sleep(pick(0, time.Minute))
		soon(t, "commands are shed", func() bool { return status(t, control).Shed > 0 })
		answered := c.dismiss(t)
		consumer.Signal(syscall.SIGCONT)
		l, printed, err := settle(t, p, m)
		if e := consumer.Wait(); e != nil {
			t.Error(e)
		}
		compareFile(t, file, l)
		if err == nil || l.Shed == 0 {
			t.Errorf("ended with %v, %d commands stored, %d shed: the test did not bite\n%s", err, l.Stored, l.Shed, printed)
		}
		t.Logf("%d statements answered, %d stored, %d shed", answered, l.Stored, l.Shed)
	})
}

// catInto starts a cat that writes to a file what is written to out.
func catInto(t *testing.T, file string) (out *os.File, cat *mysqltest.Process) {
	t.Helper()
	in, out, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	to, err := os.OpenFile(file, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer to.Close()
	cmd := exec.Command("cat")
	cmd.Stdin, cmd.Stdout = in, to
	if cat, err = mysqltest.Spawn(cmd); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cat.Kill)
	return out, cat
}
