package main

import (
	"database/sql"
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"redrive/capture"
	"redrive/internal/mysqltest"
)

// A proxyProcess is a running `redrive proxy`.
type proxyProcess struct {
	addr    string
	process *mysqltest.Process

	printed mysqltest.Printed
}

func (p *proxyProcess) text() string { return p.printed.String() }

// startProxy starts a proxy on a free port, and waits until it listens.
func startProxy(t *testing.T, backend string, args ...string) *proxyProcess {
	t.Helper()
	p := &proxyProcess{}
	cmd := exec.Command("redrive", append([]string{"proxy", "--listen", "127.0.0.1:0", "--backend", backend}, args...)...)
	cmd.Stderr = &p.printed
	var err error
	if p.process, err = mysqltest.Spawn(cmd); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.process.Kill)
	p.addr = p.await(t, `listening on (\S+),`)[1]
	return p
}

// await waits until what was printed so far matches, and gives the last match.
func (p *proxyProcess) await(t *testing.T, pattern string) []string {
	t.Helper()
	wanted := regexp.MustCompile(pattern)
	var found []string
	p.until(t, pattern, func() bool {
		if all := wanted.FindAllStringSubmatch(p.text(), -1); len(all) > 0 {
			found = all[len(all)-1]
		}
		return found != nil
	})
	return found
}

// until waits for a condition, as long as the process lives.
func (p *proxyProcess) until(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for alive := true; !ok(); {
		if !alive {
			t.Fatalf("the proxy has ended (%v): waited for %s in\n%s", p.process.Wait(), what, p.text())
		}
		select {
		case <-p.process.Done():
			alive = false // one more look
		case <-t.Context().Done():
			t.Fatalf("gave up waiting for %s in\n%s", what, p.text())
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// rotations waits until the log tells of so many.
func (p *proxyProcess) rotations(t *testing.T, want int) {
	t.Helper()
	p.until(t, strconv.Itoa(want)+" rotations", func() bool { return strings.Count(p.text(), "msg=rotated") == want })
}

// drained waits until nobody is let in any more.
func (p *proxyProcess) drained(t *testing.T) {
	t.Helper()
	p.until(t, "the end of listening", func() bool {
		conn, err := net.Dial("tcp", p.addr)
		if err == nil {
			conn.Close()
		}
		return err != nil
	})
}

// connect is a pool of one connection to addr as the administrator.
func connect(t *testing.T, addr string, change func(*mysql.Config)) *sql.DB {
	t.Helper()
	config := mysql.NewConfig()
	config.User, config.Passwd, config.Net, config.Addr, config.Logger = mysqltest.User, mysqltest.Password, "tcp", addr, silent{}
	if change != nil {
		change(config)
	}
	connector, err := mysql.NewConnector(config)
	if err != nil {
		t.Fatal(err)
	}
	db := sql.OpenDB(connector)
	db.SetMaxOpenConns(1)
	t.Cleanup(func() { db.Close() })
	return db
}

// verified reads a capture, which must be whole with a clean end, and gives the texts of its statements.
func verified(t *testing.T, file string) (texts []string) {
	t.Helper()
	if out, err := exec.Command("redrive", "trace", "verify", file).CombinedOutput(); err != nil {
		t.Errorf("trace verify %s: %v\n%s", filepath.Base(file), err, out)
	}
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	r := capture.NewReader(f, file)
	for r.Next() {
		if rec := r.Record(); rec.Kind == capture.KindStatement && rec.Statement.RunsSQL() {
			texts = append(texts, string(rec.Statement.Text))
		}
	}
	if err := r.Err(); err != nil {
		t.Error(err)
	}
	return texts
}

// ledgers adds up the ledgers that were printed.
func (p *proxyProcess) ledgers(t *testing.T) (files int, sum capture.Ledger) {
	t.Helper()
	pattern := regexp.MustCompile(`recorded in \S+: (\d+) commands forwarded = (\d+) stored \+ (\d+) shed \+ (\d+) unfinished\n`)
	for _, line := range pattern.FindAllStringSubmatch(p.text(), -1) {
		files++
		for i, into := range []*uint64{&sum.Forwarded, &sum.Stored, &sum.Shed, &sum.Unfinished} {
			n, err := strconv.ParseUint(line[1+i], 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			*into += n
		}
	}
	return files, sum
}

// killedBy is the signal that ended a process, 0 if none did.
func killedBy(err error) syscall.Signal {
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		if status, ok := exit.Sys().(syscall.WaitStatus); ok && status.Signaled() {
			return status.Signal()
		}
	}
	return 0
}
