package e2e_test

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"redrive/capture"
	"redrive/internal/mysqltest"
)

// binary is redrive, built with the race detector, for the life of the test process. Where memory or throughput is
// measured, lean is it without.
var (
	binary string
	lean   = sync.OnceValues(func() (string, error) { return build(filepath.Dir(binary), "redrive-lean") })
)

func TestMain(m *testing.M) { os.Exit(testMain(m)) }

func testMain(m *testing.M) int {
	dir, err := os.MkdirTemp("", "redrive-e2e-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	if binary, err = build(dir, "redrive", "-race"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return mysqltest.Run(m)
}

// build builds redrive in dir, and gives its path.
func build(dir, name string, flags ...string) (string, error) {
	path := filepath.Join(dir, name)
	args := append(append([]string{"build"}, flags...), "-o", path, "redrive/cmd/redrive")
	if out, err := exec.Command("go", args...).CombinedOutput(); err != nil {
		return "", fmt.Errorf("build redrive: %w\n%s", err, out)
	}
	return path, nil
}

// A result is what a command printed and its exit status.
type result struct {
	stdout, stderr string
	status         int
}

// redrive runs the binary. The administrator's password is in the environment, as a user would have it.
func redrive(t *testing.T, args ...string) result {
	t.Helper()
	var stdout, stderr bytes.Buffer
	cmd := exec.Command(binary, args...)
	cmd.Env = append(os.Environ(), "MYSQL_PWD="+mysqltest.Password)
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return result{stdout.String(), stderr.String(), cmd.ProcessState.ExitCode()}
}

// mustRedrive is redrive for commands that must end well; it returns what they printed to stdout.
func mustRedrive(t *testing.T, args ...string) string {
	t.Helper()
	r := redrive(t, args...)
	if r.status != 0 {
		t.Fatalf("redrive %s: exit status %d\n%s%s", strings.Join(args, " "), r.status, r.stdout, r.stderr)
	}
	return r.stdout
}

// A proxyProcess is a running `redrive proxy`.
type proxyProcess struct {
	addr    string
	process *mysqltest.Process
	stderr  *bytes.Buffer
	read    chan struct{} // closed when stderr has ended
}

// startProxy starts a proxy on a free port and waits until it listens.
func startProxy(t *testing.T, args ...string) *proxyProcess {
	t.Helper()
	return launch{}.start(t, args...)
}

func startProxyAt(t *testing.T, listen string, args ...string) *proxyProcess {
	t.Helper()
	return launch{listen: listen}.start(t, args...)
}

// A launch says how to start a proxy.
type launch struct {
	listen string   // empty means a free port
	lean   bool     // the binary without the race detector
	stdout *os.File // nil: nowhere
	files  int      // limit of open files; 0 means as many as we have
}

// start starts a proxy and waits until it listens.
func (l launch) start(t *testing.T, args ...string) *proxyProcess {
	t.Helper()
	p := &proxyProcess{stderr: &bytes.Buffer{}, read: make(chan struct{})}
	cmd := l.command(t, args)
	pipe, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stderr = write
	p.process, err = mysqltest.Spawn(cmd)
	write.Close()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.process.Kill)
	lines := bufio.NewReader(pipe)
	for p.addr == "" {
		line, err := lines.ReadString('\n')
		if err != nil {
			t.Fatalf("redrive proxy %s: %s%s", strings.Join(args, " "), p.stderr, line)
		}
		p.stderr.WriteString(line)
		if _, rest, found := strings.Cut(line, "listening on "); found {
			p.addr, _, _ = strings.Cut(rest, ",")
		}
	}
	go func() {
		defer close(p.read)
		defer pipe.Close()
		io.Copy(p.stderr, lines)
	}()
	return p
}

func (l launch) command(t *testing.T, args []string) *exec.Cmd {
	t.Helper()
	path := binary
	if l.lean {
		var err error
		if path, err = lean(); err != nil {
			t.Fatal(err)
		}
	}
	args = append([]string{"proxy", "--listen", cmp.Or(l.listen, "127.0.0.1:0")}, args...)
	if l.files != 0 { // a limit of this process's own would bind its other children too
		args = append([]string{"-c", `ulimit -n "$0" && exec "$@"`, strconv.Itoa(l.files), path}, args...)
		path = "/bin/sh"
	}
	cmd := exec.Command(path, args...)
	cmd.Env = append(os.Environ(), "MYSQL_PWD="+mysqltest.Password)
	if l.stdout != nil { // a nil *os.File would be a writer all the same
		cmd.Stdout = l.stdout
	}
	return cmd
}

// stop ends the proxy by SIGTERM, which must end well, and returns what it printed.
func (p *proxyProcess) stop(t *testing.T) string {
	t.Helper()
	printed, err := p.end()
	if err != nil {
		t.Fatalf("redrive proxy: %v\n%s", err, printed)
	}
	return printed
}

// end ends the proxy by SIGTERM, and returns what it printed and how it ended.
func (p *proxyProcess) end() (printed string, err error) {
	p.process.Signal(syscall.SIGTERM)
	return p.wait()
}

// wait waits for the proxy's end.
func (p *proxyProcess) wait() (printed string, err error) {
	err = p.process.Wait()
	<-p.read
	return p.stderr.String(), err
}

// record runs f with the address of a proxy in front of the server, which records into a new file. It returns the
// file's name.
func record(t *testing.T, server *mysqltest.Server, f func(addr string)) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "capture.rdt")
	p := startProxy(t, "--backend", server.Addr, "--out", file, "--probe-user", mysqltest.User)
	f(p.addr)
	p.stop(t)
	return file
}

// sysbench runs the real sysbench, which must end well.
func sysbench(t *testing.T, addr, schema string, args ...string) mysqltest.Report {
	t.Helper()
	report, err := mysqltest.Sysbench(t.Context(), append(mysqltest.SysbenchArgs(addr, schema), args...)...)
	if err != nil {
		t.Fatal(err)
	}
	return report
}

// records reads a whole capture.
func records(t *testing.T, file string) []capture.Record {
	t.Helper()
	all, err := readRecords(t, file)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// readRecords reads as much of a capture as can be read, and says why it ends if that is no clean end.
func readRecords(t *testing.T, file string) (all []capture.Record, end error) {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	r := capture.NewReader(f, file)
	for r.Next() {
		all = append(all, *r.Record().Clone())
	}
	return all, r.Err()
}

// statements are a capture's statements that ran SQL.
func statements(t *testing.T, file string) []capture.Statement {
	t.Helper()
	var all []capture.Statement
	for _, rec := range records(t, file) {
		if rec.Kind == capture.KindStatement && rec.Statement.RunsSQL() {
			all = append(all, rec.Statement)
		}
	}
	return all
}

// sessions counts a capture's logins.
func sessions(t *testing.T, file string) int {
	t.Helper()
	n := 0
	for _, rec := range records(t, file) {
		if rec.Kind == capture.KindSessionStart {
			n++
		}
	}
	return n
}

// target is the flags that make a command connect to the server.
func target(server *mysqltest.Server, more ...string) []string {
	host, port, _ := net.SplitHostPort(server.Addr)
	return append([]string{"--host", host, "--port", port, "--user", mysqltest.User}, more...)
}

// unmarshal reads JSON that a command printed.
func unmarshal(t *testing.T, text string, into any) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), into); err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
}

// eventually waits until ok, for as long as the test may run.
func eventually(ctx context.Context, t *testing.T, what string, ok func() bool) {
	t.Helper()
	for !ok() {
		select {
		case <-ctx.Done():
			t.Fatalf("gave up waiting: %s", what)
		case <-time.After(20 * time.Millisecond):
		}
	}
}
