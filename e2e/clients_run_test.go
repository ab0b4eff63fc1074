package e2e_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"redrive/internal/mysqltest"
)

// The account and schema of the smoke scripts.
const (
	smokeUser     = "smoke"
	smokePassword = "Smoke-and-mirrors"
	smokeSchema   = "smoke"
)

// patience is when a script is taken to hang.
const patience = 2 * time.Minute

// smokeCounters are the server's counts of what the scripts did.
var smokeCounters = []string{"Questions", "Rows_sent", "Com_stmt_prepare", "Com_stmt_execute", "Com_stmt_fetch", "Com_stmt_send_long_data"}

// A run is what a smoke script left.
type run struct {
	output   string
	grown    map[string]uint64 // smokeCounters
	conns    []*tapped
	commands [][]sent // of each connection; only of a run without a proxy
}

// smoke runs a client's script against addr and a fresh schema, and waits until its sessions have left the server.
func smoke(t *testing.T, server *mysqltest.Server, c client, addr string, blob int, more []string) run {
	t.Helper()
	freshSchema(t, server)
	before := server.Status(t, smokeCounters...)
	output := runScript(t, c, addr, blob, more)
	polls := awaitNoSession(t, server)
	after := server.Status(t, smokeCounters...)
	grown := map[string]uint64{}
	for name := range after {
		grown[name] = after[name] - before[name]
	}
	grown["Questions"] -= polls + 1 // our own, reading the status included
	grown["Rows_sent"] -= polls
	return run{output: output, grown: grown}
}

// freshSchema makes the schema as testdata/clients/schema.sql says.
func freshSchema(t *testing.T, server *mysqltest.Server) {
	t.Helper()
	db, err := server.DB().Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	script, err := os.ReadFile("testdata/clients/schema.sql")
	if err != nil {
		t.Fatal(err)
	}
	statements := []string{"DROP DATABASE IF EXISTS " + smokeSchema, "CREATE DATABASE " + smokeSchema + " CHARACTER SET utf8mb4", "USE " + smokeSchema}
	for _, statement := range append(statements, strings.Split(strings.TrimSpace(string(script)), "\n")...) {
		if _, err := db.ExecContext(t.Context(), statement); err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
	}
}

// runScript runs the script in an empty folder and returns what it printed; it must end well. Standard error is left
// out: some libraries complain there of sequence ids whenever the connection is compressed.
func runScript(t *testing.T, c client, addr string, blob int, more []string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	host, port, _ := net.SplitHostPort(addr)
	var stdout, stderr bytes.Buffer
	cmd := exec.CommandContext(ctx, c.command[0], c.command[1:]...)
	cmd.WaitDelay = time.Second
	cmd.Dir = t.TempDir()
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	cmd.Env = append(os.Environ(), "SMOKE_HOST="+host, "SMOKE_PORT="+port, "SMOKE_USER="+smokeUser,
		"SMOKE_PASSWORD="+smokePassword, "SMOKE_SCHEMA="+smokeSchema, fmt.Sprintf("SMOKE_BLOB=%d", blob), "TZ=UTC", "PYTHONIOENCODING=utf-8", "LC_ALL=C.UTF-8")
	cmd.Env = append(append(cmd.Env, c.environment...), more...)
	if err := cmd.Run(); err != nil {
		t.Fatalf("%s: %v\n%s%s\n%s", strings.Join(c.command, " "), errors.Join(err, ctx.Err()), &stdout, &stderr, install(c.packages))
	}
	return stdout.String()
}

// awaitNoSession waits until the server has no session of the scripts' left, and counts how often it asked.
func awaitNoSession(t *testing.T, server *mysqltest.Server) (polls uint64) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	eventually(ctx, t, "the script's sessions leave the server", func() bool {
		polls++
		var left int
		if err := server.DB().QueryRow("SELECT COUNT(*) FROM information_schema.processlist WHERE user = '" + smokeUser + "'").Scan(&left); err != nil {
			t.Fatal(err)
		}
		return left == 0
	})
	return polls
}
