package mysqltest

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// Exec runs statements as the administrator, one at a time.
func (s *Server) Exec(t testing.TB, statements ...string) {
	t.Helper()
	for _, statement := range statements {
		if _, err := s.db.Exec(statement); err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
	}
}

// Schema makes a new, empty schema and gives its name. It is dropped at the test's end.
func (s *Server) Schema(t testing.TB) string {
	t.Helper()
	s.mu.Lock()
	s.schemas++
	name := fmt.Sprintf("test%d", s.schemas)
	s.mu.Unlock()
	s.Exec(t, "CREATE DATABASE "+name)
	t.Cleanup(func() { s.Exec(t, "DROP DATABASE IF EXISTS "+name) })
	return name
}

// CreateUser makes an account with all privileges on everything but other accounts. It is dropped at the test's end.
func (s *Server) CreateUser(t testing.TB, name, password string) {
	t.Helper()
	account := quote(name) + "@'%'"
	s.Exec(t, "CREATE OR REPLACE USER "+account+" IDENTIFIED BY "+quote(password), "GRANT ALL ON *.* TO "+account)
	t.Cleanup(func() { s.Exec(t, "DROP USER IF EXISTS "+account) })
}

// quote writes s as an SQL string.
func quote(s string) string {
	return "'" + strings.NewReplacer(`\`, `\\`, `'`, `''`).Replace(s) + "'"
}

// Status reads counters of SHOW GLOBAL STATUS, named as the server spells them. Rows_sent leaves out the rows of
// Status itself, so that two readings differ by what others were sent; Com_show_status and Questions do count it.
func (s *Server) Status(t testing.TB, names ...string) map[string]uint64 {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	quoted := make([]string, len(names))
	for i, name := range names {
		quoted[i] = quote(name)
	}
	rows, err := s.db.Query("SHOW GLOBAL STATUS WHERE Variable_name IN (" + strings.Join(quoted, ", ") + ")")
	if err != nil {
		t.Fatalf("read status: %v", err)
	}
	defer rows.Close()
	status := make(map[string]uint64, len(names))
	for rows.Next() {
		var name string
		var value uint64
		if err := rows.Scan(&name, &value); err != nil {
			t.Fatalf("read status: %v", err)
		}
		status[name] = value
	}
	if err := rows.Err(); err != nil {
		t.Fatalf("read status: %v", err)
	}
	for _, name := range names {
		if _, ok := status[name]; !ok {
			t.Fatalf("the server has no status counter %s", name)
		}
	}
	if _, ok := status["Rows_sent"]; ok {
		status["Rows_sent"] -= s.statusRows
	}
	s.statusRows += uint64(len(status)) // the server counts them once they are sent
	return status
}

// Checksum is CHECKSUM TABLE of every table in schema, by the table's name.
func (s *Server) Checksum(t testing.TB, schema string) map[string]uint64 {
	t.Helper()
	sums := make(map[string]uint64)
	for _, table := range s.tables(t, schema) {
		var name string
		var sum uint64
		if err := s.db.QueryRow("CHECKSUM TABLE `"+schema+"`.`"+table+"` EXTENDED").Scan(&name, &sum); err != nil {
			t.Fatalf("checksum of %s.%s: %v", schema, table, err)
		}
		sums[table] = sum
	}
	return sums
}

func (s *Server) tables(t testing.TB, schema string) []string {
	t.Helper()
	rows, err := s.db.Query("SHOW TABLES FROM `" + schema + "`")
	if err != nil {
		t.Fatalf("list tables of %s: %v", schema, err)
	}
	defer rows.Close()
	var tables []string
	for rows.Next() {
		var table string
		if err := rows.Scan(&table); err != nil {
			t.Fatalf("list tables of %s: %v", schema, err)
		}
		tables = append(tables, table)
	}
	if err := rows.Err(); err != nil {
		t.Fatalf("list tables of %s: %v", schema, err)
	}
	return tables
}

// Dump writes schema's tables with mariadb-dump, to a file that lasts as long as the test, and gives its path.
func (s *Server) Dump(t testing.TB, schema string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), schema+".sql")
	s.tool(t, "", "mariadb-dump", "--single-transaction", "--result-file="+path, schema)
	return path
}

// Restore runs a file of Dump's in schema, which must exist.
func (s *Server) Restore(t testing.TB, path, schema string) {
	t.Helper()
	s.tool(t, path, "mariadb", schema)
}

// tool runs one of MariaDB's client programs as the administrator, its input from a file unless that is "".
func (s *Server) tool(t testing.TB, input, name string, args ...string) {
	t.Helper()
	path, err := Tool(name)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(path, append([]string{"--no-defaults", "--user=" + User, "--socket=" + s.Socket}, args...)...)
	cmd.Env = append(os.Environ(), "MYSQL_PWD="+Password)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if input != "" {
		f, err := os.Open(input)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		cmd.Stdin = f
	}
	if err := cmd.Run(); err != nil {
		t.Fatalf("%s: %v\n%s", name, err, &out)
	}
}

// GeneralLog switches the server's general log on, into a new file, until the test's end, and gives the file's path.
// The server writes the time, in whole seconds, only where it differs from the line before.
func (s *Server) GeneralLog(t testing.TB) string {
	t.Helper()
	s.mu.Lock()
	s.logs++
	path := filepath.Join(s.dir, fmt.Sprintf("general%d.log", s.logs))
	s.mu.Unlock()
	s.Exec(t, "SET GLOBAL general_log_file = "+quote(path), "SET GLOBAL general_log = ON")
	t.Cleanup(func() { s.Exec(t, "SET GLOBAL general_log = OFF") })
	return path
}
