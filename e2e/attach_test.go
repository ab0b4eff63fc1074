package e2e_test

import (
	"database/sql"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"redrive/capture"
	"redrive/internal/mysqltest"
)

// A recording that begins in the middle of transactions with open prepared statements holds all that a replay needs of
// them: onto a copy taken at that moment it leaves the same tables and gives the same results.
func TestAttachInTheMiddle(t *testing.T) {
	source, copied := mysqltest.Shared(t), mysqltest.Start(t)
	schema := source.Schema(t)
	dir := t.TempDir()
	control, file := filepath.Join(dir, "control.sock"), filepath.Join(dir, "late.rdt")
	p := startProxy(t, "--backend", source.Addr, "--control", control, "--probe-user", mysqltest.User)
	if info, err := os.Stat(control); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("control socket: %v, mode %v, want 0600", err, info.Mode().Perm())
	}
	source.Exec(t, "CREATE TABLE "+schema+".t (id INT PRIMARY KEY, v INT NOT NULL)")
	db, err := sql.Open("mysql", fmt.Sprintf("%s:%s@tcp(%s)/%s", mysqltest.User, mysqltest.Password, p.addr, schema))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()

	// Four sessions, each within a transaction, with statements prepared; and what each has done so far is committed
	// before the copy is taken, but for the transaction that stays open with a read.
	const sessions = 4
	var transactions []*sql.Tx
	var updates, reads []*sql.Stmt
	for i := range sessions {
		tx, err := db.Begin()
		if err != nil {
			t.Fatal(err)
		}
		prepare := func(text string) *sql.Stmt {
			statement, err := tx.Prepare(text)
			if err != nil {
				t.Fatal(err)
			}
			return statement
		}
		updates = append(updates, prepare("INSERT INTO t (id, v) VALUES (?, ?)"))
		reads = append(reads, prepare("SELECT COUNT(*) FROM t WHERE id >= ? AND id < ?"))
		transactions = append(transactions, tx)
		readCount(t, reads[i], i, 0)
	}
	restore(t, source, copied, schema)
	copied.Exec(t, "CREATE DATABASE redrive_target_ok")
	if printed := mustRedrive(t, "proxy", "record", "start", "--control", control, "--out", file); !strings.Contains(printed, file) {
		t.Errorf("record start printed %q", printed)
	}
	for i := range sessions {
		for k := range 10 {
			if _, err := updates[i].Exec(i*100+k, k); err != nil {
				t.Fatal(err)
			}
		}
		readCount(t, reads[i], i, 10)
		end := transactions[i].Commit
		if i == sessions-1 {
			end = transactions[i].Rollback // what it did must not be there in the end
		}
		if err := end(); err != nil {
			t.Fatal(err)
		}
	}
	if printed := mustRedrive(t, "proxy", "record", "status", "--control", control); !strings.Contains(printed, file) {
		t.Errorf("record status printed %q", printed)
	}
	if r := redrive(t, "proxy", "record", "start", "--control", control, "--out", filepath.Join(dir, "other.rdt")); r.status != 1 || !strings.Contains(r.stderr, "being recorded already") {
		t.Errorf("record start twice: exit status %d, %q", r.status, r.stderr)
	}
	if r := redrive(t, "proxy", "record", "rotate", "--control", control, "--out", file); r.status != 1 || !strings.Contains(r.stderr, "exists already") {
		t.Errorf("record rotate into the same file: exit status %d, %q", r.status, r.stderr)
	}
	next := filepath.Join(dir, "next.rdt")
	if printed := mustRedrive(t, "proxy", "record", "rotate", "--control", control, "--out", next); !strings.Contains(printed, "closed "+file) || !strings.Contains(printed, "0 shed") || !strings.Contains(printed, next) {
		t.Errorf("record rotate printed %q", printed)
	}
	if _, err := db.Exec("DO 1"); err != nil {
		t.Fatal(err)
	}
	if printed := mustRedrive(t, "proxy", "record", "stop", "--control", control); !strings.Contains(printed, "closed "+next) {
		t.Errorf("record stop printed %q", printed)
	}
	if r := redrive(t, "proxy", "record", "stop", "--control", control); r.status != 1 || !strings.Contains(r.stderr, "nothing is being recorded") {
		t.Errorf("record stop twice: exit status %d, %q", r.status, r.stderr)
	}
	if got := statements(t, next); len(got) != 1 || string(got[0].Text) != "DO 1" {
		t.Errorf("%d statements in the second file, want DO 1 alone", len(got))
	}
	db.Close()
	p.stop(t)

	joined, texts := 0, 0
	for _, rec := range records(t, file) {
		switch {
		case rec.Kind == capture.KindSessionStart && rec.Start.Joined && len(rec.Start.Prepared) == 2:
			joined++
		case rec.Kind == capture.KindStatement && rec.Statement.RunsSQL() && len(rec.Statement.Text) > 0:
			texts++
		}
	}
	if want := sessions * 12; joined != sessions || texts != want {
		t.Errorf("%d sessions joined with two statements each, %d statements with text, want %d and %d", joined, texts, sessions, want)
	}
	out := filepath.Join(dir, "replay.rdt")
	mustRedrive(t, append([]string{"replay", file, "--speed", "max", "--allow-writes", "--out", out}, target(copied)...)...)
	want := source.Checksum(t, schema)
	if got := copied.Checksum(t, schema); !maps.Equal(got, want) {
		t.Errorf("checksums after the replay %v, want %v", got, want)
	}
	if got, want := outcomes(t, out), outcomes(t, file); !maps.Equal(got, want) {
		t.Errorf("replayed outcomes %v, want %v", got, want)
	}
}

func readCount(t *testing.T, statement *sql.Stmt, session, want int) {
	t.Helper()
	var got int
	if err := statement.QueryRow(session*100, session*100+100).Scan(&got); err != nil || got != want {
		t.Fatalf("%d rows, %v, want %d", got, err, want)
	}
}

// outcomes counts a capture's prepared statements by text and what came of them.
func outcomes(t *testing.T, file string) map[string]int {
	t.Helper()
	counts := map[string]int{}
	for _, s := range statements(t, file) {
		if s.StatementID != 0 {
			counts[fmt.Sprintf("%s: %d rows, %d affected, error %d", s.Text, s.Outcome.Rows, s.Outcome.Affected, s.Outcome.Errno)]++
		}
	}
	return counts
}

// A recording whose file cannot be written is said at once and at the end; the clients never notice.
func TestFullDisk(t *testing.T) {
	server := mysqltest.Shared(t)
	schema := server.Schema(t)
	p := startProxy(t, "--backend", server.Addr, "--out", "/dev/full")
	options := []string{"--tables=1", "--table-size=100", "--time=2", "oltp_read_only"}
	sysbench(t, p.addr, schema, append(options, "prepare")...)
	sysbench(t, p.addr, schema, append(options, "run")...)
	p.process.Signal(os.Interrupt)
	err := p.process.Wait()
	<-p.read
	if err == nil || !strings.Contains(p.stderr.String(), "the recording has failed") || !strings.Contains(p.stderr.String(), "no space left") {
		t.Errorf("ended with %v and printed\n%s\nwant a failure that tells of the disk", err, p.stderr)
	}
}
