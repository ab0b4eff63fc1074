package main

import (
	"bytes"
	"context"
	"database/sql"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
)

// start runs the command until the test's end and gives the port it says it listens on.
func start(t *testing.T, args ...string) (port string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "port")
	ctx, stop := context.WithCancel(context.Background())
	status := make(chan int, 1)
	var out, errs bytes.Buffer
	go func() { status <- run(ctx, append(args, "--port-file", file), &out, &errs) }()
	t.Cleanup(func() {
		stop()
		if code := <-status; code != 0 || strings.TrimSpace(out.String()) != "127.0.0.1:"+port {
			t.Errorf("ended with status %d, printed %q and %q; want 0 and 127.0.0.1:%s", code, &out, &errs, port)
		}
	})
	for {
		if b, err := os.ReadFile(file); err == nil {
			return strings.TrimSpace(string(b))
		}
		select {
		case code := <-status:
			status <- code
			t.Fatalf("ended at its start: %s", &errs)
		case <-time.After(5 * time.Millisecond):
		}
	}
}

func open(t *testing.T, user, password, port string) *sql.DB {
	t.Helper()
	c := mysql.NewConfig()
	c.User, c.Passwd, c.Net, c.Addr, c.DBName = user, password, "tcp", "127.0.0.1:"+port, "sbtest"
	db, err := sql.Open("mysql", c.FormatDSN())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db
}

func TestTransaction(t *testing.T) {
	db := open(t, "sbtest", "", start(t))
	exec(t, db, "CREATE TABLE t (id INT PRIMARY KEY, c VARCHAR(20))")
	for id, end := range map[int]func(*sql.Tx) error{1: (*sql.Tx).Commit, 2: (*sql.Tx).Rollback} {
		tx, err := db.Begin()
		if err != nil {
			t.Fatal(err)
		}
		exec(t, tx, "INSERT INTO t VALUES (?, 'new')", id)
		exec(t, tx, "UPDATE t SET c = 'changed' WHERE id = ?", id)
		if err := end(tx); err != nil {
			t.Fatal(err)
		}
	}
	var n int
	if err := db.QueryRow("SELECT COUNT(*) FROM t WHERE c = ?", "changed").Scan(&n); err != nil || n != 1 {
		t.Errorf("after a commit and a rollback of a row each: %d rows, %v; want 1", n, err)
	}
}

func exec(t *testing.T, db interface {
	Exec(string, ...any) (sql.Result, error)
}, statement string, args ...any,
) {
	t.Helper()
	if _, err := db.Exec(statement, args...); err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
}

func TestAccountAndFiles(t *testing.T) {
	port := start(t, "--user", "other")
	if err := open(t, "sbtest", "", port).Ping(); err == nil {
		t.Error("an unknown account got in")
	}
	var content sql.NullString
	err := open(t, "other", "", port).QueryRow("SELECT LOAD_FILE('/etc/passwd')").Scan(&content)
	if content.Valid {
		t.Errorf("LOAD_FILE gives a file of this machine, error %v", err)
	}
}

func TestWrongUse(t *testing.T) {
	tests := map[string]struct {
		args   []string
		status int
		says   string
	}{
		"public address": {[]string{"--listen", "0.0.0.0:0"}, 1, "want a loopback address"},
		"no address":     {[]string{"--listen", "127.0.0.1"}, 1, "--listen 127.0.0.1"},
		"unknown flag":   {[]string{"--port", "1"}, 2, "-port"},
		"argument":       {[]string{"now"}, 2, `"now"`},
	}
	for name, test := range tests {
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		var out, errs bytes.Buffer
		if status := run(ctx, test.args, &out, &errs); status != test.status || !strings.Contains(errs.String(), test.says) {
			t.Errorf("%s: status %d, says %q; want %d and %q", name, status, &errs, test.status, test.says)
		}
	}
}
