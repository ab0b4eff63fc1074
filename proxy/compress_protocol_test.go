package proxy_test

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"redrive/capture"
	"redrive/internal/mysqltest"
	"redrive/internal/wire"
	"redrive/proxy"
)

func followCompression(p *proxy.Proxy) { p.FollowCompression = true }

// Real clients that compress (zlib: MariaDB 10.11 has no zstd, which internal/session tries with frames of its own): the
// record is what it is without.
func TestCompressionFollowed(t *testing.T) {
	server := mysqltest.Shared(t)
	schema := server.Schema(t)
	server.Exec(t, "CREATE TABLE "+schema+".big (a INT PRIMARY KEY, b LONGTEXT)")
	tests := []struct {
		name string
		run  func(t *testing.T, addr string) // must run the statements
	}{
		{"mariadb", func(t *testing.T, addr string) { runMariaDB(t, addr, schema, "--compress") }},
		{"go-sql-driver", func(t *testing.T, addr string) {
			db := open(t, addr, schema+"?compress=true&multiStatements=true")
			db.SetMaxOpenConns(1)
			for _, s := range compressedStatements {
				if _, err := db.Exec(s); err != nil {
					t.Fatal(err)
				}
			}
			var length int
			if err := db.QueryRow("SELECT LENGTH(?)", strings.Repeat("long", 1<<20)).Scan(&length); err != nil || length != 4<<20 {
				t.Errorf("length %d, %v", length, err)
			}
			db.Close()
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p := start(t, server.Addr, followCompression)
			tt.run(t, p.addr)
			compressed := 0
			got := map[string]capture.Statement{}
			for _, rec := range p.records(t) {
				switch {
				case rec.Kind == capture.KindSessionStart && rec.Start.Capabilities.Has(wire.Compress):
					compressed++
				case rec.Kind == capture.KindStatement:
					got[string(rec.Statement.Text)] = rec.Statement
				}
			}
			if compressed != 1 || p.Totals().Opaque != 0 {
				t.Errorf("%d sessions compressed, %d given up, want 1 and 0", compressed, p.Totals().Opaque)
			}
			for _, s := range compressedStatements {
				r, ok := got[s]
				if !ok || r.Outcome.Errno != 0 || r.Done < r.First || r.First < r.Received || r.Received == 0 {
					t.Errorf("%.60q: recorded %t, error %d, received %v, first %v, done %v", s, ok, r.Outcome.Errno, r.Received, r.First, r.Done)
				}
			}
			if r := got[compressedStatements[2]]; r.Outcome.Rows != 1 || r.Outcome.ReplyBytes < 4<<20 {
				t.Errorf("%.60q: %d rows in %d bytes, want 1 in more than 4 MiB", compressedStatements[2], r.Outcome.Rows, r.Outcome.ReplyBytes)
			}
		})
	}
}

var compressedStatements = []string{
	"REPLACE INTO big VALUES (1, REPEAT('0123456789abcdef', 262144))",
	"REPLACE INTO big VALUES (2, '" + strings.Repeat("compressible ", 100_000) + "')",
	"SELECT b FROM big WHERE a = 1",
	"SELECT seq FROM seq_1_to_1000",
}

// runMariaDB runs the statements with MariaDB's own client.
func runMariaDB(t *testing.T, addr, schema string, options ...string) {
	t.Helper()
	path, err := mysqltest.Tool("mariadb")
	if err != nil {
		t.Fatal(err)
	}
	host, port, _ := strings.Cut(addr, ":")
	args := append([]string{"--no-defaults", "--host=" + host, "--port=" + port, "--user=" + mysqltest.User, "--max-allowed-packet=64M", "--batch"}, options...)
	cmd := exec.Command(path, append(args, schema)...)
	cmd.Env = append(os.Environ(), "MYSQL_PWD="+mysqltest.Password)
	cmd.Stdin = strings.NewReader(strings.Join(compressedStatements, ";\n") + ";\n")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("mariadb: %v\n%.500s", err, out)
	}
}

// sysbench's own counts are those of the record, compressed too.
func TestCompressedSysbench(t *testing.T) {
	server := mysqltest.Shared(t)
	schema := server.Schema(t)
	p := start(t, server.Addr, followCompression)
	args := append(mysqltest.SysbenchArgs(p.addr, schema), "--mysql-compression=on", "--tables=1", "--table-size=1000", "--threads=4", "--events=200", "--time=0", "oltp_read_write")
	if _, err := mysqltest.Sysbench(t.Context(), append(args, "prepare")...); err != nil {
		t.Fatal(err)
	}
	before := p.Totals().Statements
	report, err := mysqltest.Sysbench(t.Context(), append(args, "run")...)
	if err != nil {
		t.Fatal(err)
	}
	records := p.records(t)
	if got := p.Totals().Statements - before; got != report.Total+report.IgnoredErrors || p.Totals().Opaque != 0 {
		t.Errorf("%d statements, %d sessions given up, want %d and none", got, p.Totals().Opaque, report.Total)
	}
	for _, rec := range records {
		if rec.Kind == capture.KindSessionStart && !rec.Start.Capabilities.Has(wire.Compress) {
			t.Errorf("session %d is not compressed", rec.Start.Session)
		}
	}
}

// Without the option a client that would compress does not.
func TestCompressionWithheld(t *testing.T) {
	server := mysqltest.Shared(t)
	p := start(t, server.Addr)
	var name, value string
	if err := open(t, p.addr, "?compress=true").QueryRow("SHOW STATUS LIKE 'Compression'").Scan(&name, &value); err != nil || value != "OFF" {
		t.Errorf("compression is %s, %v, want OFF", value, err)
	}
}
