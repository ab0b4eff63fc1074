package e2e_test

import (
	"bytes"
	"database/sql"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-sql-driver/mysql"

	"redrive/capture"
	"redrive/internal/mysqltest"
)

// What a client sends for LOAD DATA LOCAL INFILE is recorded on request, and replayed; not asked for, it is neither.
func TestLocalInfile(t *testing.T) {
	source, copied := mysqltest.Shared(t), mysqltest.Start(t)
	copied.Exec(t, "CREATE DATABASE redrive_target_ok")
	var rows bytes.Buffer
	for i := range 100_000 {
		fmt.Fprintf(&rows, "%d\tvalue %d\n", i, i*7)
	}
	mysql.RegisterReaderHandler("rows", func() io.Reader { return bytes.NewReader(rows.Bytes()) })
	for _, tt := range []struct {
		name string
		args []string
		kept bool
	}{
		{"on request", []string{"--record-infile"}, true},
		{"not asked for", nil, false},
		{"too long", []string{"--record-infile", "--max-statement", "100000"}, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			schema := source.Schema(t)
			source.Exec(t, "CREATE TABLE "+schema+".t (id INT PRIMARY KEY, v VARCHAR(40))")
			restore(t, source, copied, schema)
			file := filepath.Join(t.TempDir(), "infile.rdt")
			p := startProxy(t, append([]string{"--backend", source.Addr, "--out", file, "--probe-user", mysqltest.User}, tt.args...)...)
			db, err := sql.Open("mysql", fmt.Sprintf("%s:%s@tcp(%s)/%s", mysqltest.User, mysqltest.Password, p.addr, schema))
			if err != nil {
				t.Fatal(err)
			}
			defer db.Close()
			if _, err := db.Exec("LOAD DATA LOCAL INFILE 'Reader::rows' INTO TABLE t"); err != nil {
				t.Fatal(err)
			}
			db.Close()
			p.stop(t)
			all := statements(t, file)
			if s := all[0]; len(all) != 1 || s.Outcome.Affected != 100_000 || s.Flags.Has(capture.FileKept) != tt.kept || tt.kept != bytes.Equal(s.File, rows.Bytes()) {
				t.Errorf("%d statements, %d rows affected, flags %q, file of %d bytes; want 1, 100000, kept %t", len(all), s.Outcome.Affected, s.Flags.Names(), len(s.File), tt.kept)
			}
			r := redrive(t, append([]string{"replay", file, "--speed", "max", "--allow-writes"}, target(copied)...)...)
			want := source.Checksum(t, schema)
			if got := copied.Checksum(t, schema); maps.Equal(got, want) != tt.kept {
				t.Errorf("checksums after the replay %v, at the source %v; want them equal: %t\n%s", got, want, tt.kept, r.stdout)
			}
			if !tt.kept && !strings.Contains(r.stdout, "local file not recorded") {
				t.Errorf("the replay does not tell what it skipped:\n%s", r.stdout)
			}
		})
	}
}
