package e2e_test

import (
	"net"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"redrive/internal/mysqltest"
)

// Who uses redrive wrongly is told what to do, by one sentence and an exit status.
func TestWrongUse(t *testing.T) {
	server := mysqltest.Shared(t)
	schema := server.Schema(t)
	dir := t.TempDir()
	foreign := filepath.Join(dir, "notes.txt")
	empty := filepath.Join(dir, "empty.rdt")
	os.WriteFile(foreign, []byte("these are notes, and no capture"), 0o600)
	os.WriteFile(empty, nil, 0o600)
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	writing := record(t, server, func(addr string) {
		sysbench(t, addr, schema, "--tables=1", "--table-size=10", "oltp_read_write", "prepare")
	})
	host, port, _ := net.SplitHostPort(server.Addr)
	synthAt := func(more ...string) []string {
		return append([]string{"synth", "--mysql-host=" + host, "--mysql-port=" + port, "--mysql-db=" + schema, "--tables=1", "--table-size=10", "--time=1"}, more...)
	}
	other := mysqltest.Start(t)
	tests := []struct {
		name   string
		args   []string
		status int
		want   []string // each in what it prints
	}{
		{"no such file", []string{"analyze", filepath.Join(dir, "missing.rdt")}, 1, []string{"missing.rdt", "no such file"}},
		{"a foreign file", []string{"analyze", foreign}, 1, []string{"notes.txt", "offset 0", "not a redrive capture"}},
		{"a foreign file to look into", []string{"trace", "info", foreign}, 1, []string{"notes.txt", "offset 0", "not a redrive capture"}},
		{"an empty file", []string{"trace", "cat", empty}, 1, []string{"empty.rdt", "offset 0"}},
		{"a foreign file to replay", append([]string{"replay", foreign}, target(other)...), 1, []string{"notes.txt", "offset 0"}},
		{"port taken", []string{"proxy", "--listen", taken.Addr().String(), "--backend", server.Addr}, 1, []string{"--listen " + taken.Addr().String(), "address already in use"}},
		{"no backend", []string{"proxy", "--listen", "127.0.0.1:0"}, 2, []string{"--backend"}},
		{"a backend without a port", []string{"proxy", "--listen", "127.0.0.1:0", "--backend", "dbhost"}, 2, []string{"--backend dbhost", "host:port"}},
		{"a backend with a port that is none", []string{"proxy", "--listen", "127.0.0.1:0", "--backend", "127.0.0.1:99999"}, 2, []string{"--backend 127.0.0.1:99999", "no port"}},
		{"a proxy pointed at itself", []string{"proxy", "--listen", "127.0.0.1:23999", "--backend", "127.0.0.1:23999"}, 2, []string{"--backend 127.0.0.1:23999", "own --listen address"}},
		{"steering no proxy", []string{"proxy", "record", "stop", "--control", filepath.Join(dir, "none.sock")}, 1, []string{"--control", "none.sock", "is the proxy running"}},
		{"recording into nothing", []string{"proxy", "record", "start", "--control", filepath.Join(dir, "none.sock")}, 2, []string{"--out"}},
		{"the recording is there already", []string{"proxy", "--listen", "127.0.0.1:0", "--backend", server.Addr, "--out", writing}, 2, []string{"exists already"}},
		{"an unknown workload", synthAt("--mysql-user="+mysqltest.User, "oltp_nonsense", "run"), 1, []string{"oltp_nonsense"}},
		{"an unknown option", synthAt("--mysql-user="+mysqltest.User, "--nonsense=1", "oltp_read_only", "run"), 1, []string{"--nonsense=1"}},
		{"a wrong password", synthAt("--mysql-user="+mysqltest.User, "--mysql-password=wrong", "oltp_read_only", "run"), 1, []string{"Access denied", mysqltest.User}},
		{"an unknown flag", []string{"analyze", "--nonsense", writing}, 2, []string{"--nonsense"}},
		{"an unknown command", []string{"analyse", writing}, 2, []string{"analyse"}},
		{"the captured server", append([]string{"replay", writing, "--allow-writes", "--i-know", server.Addr}, target(server)...), 2, []string{"--allow-same-server"}},
		{"writes without leave", append([]string{"replay", writing}, target(other)...), 2, []string{"--allow-writes", "create table", "insert"}},
		{"writes on a server not marked", append([]string{"replay", writing, "--allow-writes"}, target(other)...), 2, []string{"redrive_target_ok", "--i-know " + other.Addr}},
		{"a speed of nothing", append([]string{"replay", writing, "--speed", "-1"}, target(other)...), 2, []string{"--speed", "-1"}},
		{"replay with a wrong password", []string{"replay", writing, "--host", "127.0.0.1", "--port", portOf(other.Addr), "--user", mysqltest.User, "--password", "wrong"}, 1, []string{"Access denied"}},
	}
	secret := regexp.MustCompile(regexp.QuoteMeta(mysqltest.Password))
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := redrive(t, tt.args...)
			printed := r.stdout + r.stderr
			if r.status != tt.status {
				t.Errorf("exit status %d, want %d", r.status, tt.status)
			}
			for _, want := range tt.want {
				if !strings.Contains(strings.ToLower(printed), strings.ToLower(want)) {
					t.Errorf("does not say %q", want)
				}
			}
			if secret.MatchString(printed) || strings.Contains(printed, "panic") || strings.Contains(printed, "goroutine ") {
				t.Error("prints what it must not")
			}
			if t.Failed() {
				t.Logf("redrive %s printed:\n%s", strings.Join(tt.args, " "), printed)
			}
		})
	}
	if schemas := schemasOf(t, other); slices.Contains(schemas, schema) {
		t.Errorf("a refused replay has written: schemas %q", schemas)
	}
}

func portOf(addr string) string {
	_, port, _ := net.SplitHostPort(addr)
	return port
}

func schemasOf(t *testing.T, server *mysqltest.Server) []string {
	t.Helper()
	rows, err := server.DB().Query("SHOW DATABASES")
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	var names []string
	for rows.Next() {
		var name string
		if err := rows.Scan(&name); err != nil {
			t.Fatal(err)
		}
		names = append(names, name)
	}
	return names
}

// A client of a proxy whose backend is down gets an error that names the backend; the proxy lives on and serves when
// the backend is back.
func TestBackendDown(t *testing.T) {
	port, err := mysqltest.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	backend := net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
	p := startProxy(t, "--backend", backend)
	_, err = mysqltest.Sysbench(t.Context(), append(mysqltest.SysbenchArgs(p.addr, "sbtest"), "oltp_read_only", "run")...)
	if err == nil || !strings.Contains(err.Error(), "1105") || !strings.Contains(err.Error(), backend) {
		t.Errorf("sysbench with the backend down: %v, want error 1105 that names %s", err, backend)
	}
	server := mysqltest.Shared(t)
	startProxyAt(t, backend, "--backend", server.Addr) // to the first proxy a server like any other
	schema := server.Schema(t)
	sysbench(t, p.addr, schema, "--tables=1", "--table-size=10", "oltp_read_only", "prepare")
	sysbench(t, p.addr, schema, "--tables=1", "--table-size=10", "--events=5", "oltp_read_only", "run")
	if printed := p.stop(t); !strings.Contains(printed, "1 without a backend") {
		t.Errorf("the proxy's summary does not tell of the connection without a backend:\n%s", printed)
	}
}
