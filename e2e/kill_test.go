package e2e_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"redrive/capture"
	"redrive/internal/mysqltest"
)

// A recording proxy that is killed leaves a file that opens, whose end trace verify names, and that has every
// statement the server's general log dates two seconds or more before the kill.
func TestKilledWhileRecording(t *testing.T) {
	t.Parallel()
	server := mysqltest.Start(t)
	for _, mode := range []string{"disable", "auto"} {
		t.Run(mode, func(t *testing.T) {
			schema := server.Schema(t)
			options := []string{"--tables=2", "--table-size=1000", "--threads=4", "--time=60", "--db-ps-mode=" + mode, "oltp_read_write"}
			sysbench(t, server.Addr, schema, append(options, "prepare")...)
			file := filepath.Join(t.TempDir(), "killed.rdt")
			p := startProxy(t, "--backend", server.Addr, "--out", file)
			log := server.GeneralLog(t)
			ctx, stop := context.WithCancel(t.Context())
			ended := make(chan struct{})
			go func() {
				defer close(ended)
				mysqltest.Sysbench(ctx, append(mysqltest.SysbenchArgs(p.addr, schema), append(options, "run")...)...)
			}()
			time.Sleep(6 * time.Second) // the run must be long enough for statements of two seconds before the kill
			killed := time.Now()
			p.process.Signal(syscall.SIGKILL)
			p.process.Wait()
			stop()
			<-ended

			verified := redrive(t, "trace", "verify", file)
			if verified.status != 1 || !strings.Contains(verified.stdout+verified.stderr, "offset ") {
				t.Errorf("trace verify: exit status %d, want 1 and where the file ends:\n%s%s", verified.status, verified.stdout, verified.stderr)
			}
			compareWithLog(t, file, log, killed.Add(-2*time.Second), mode == "disable")
		})
	}
}

// compareWithLog asks of every connection in the capture that what the general log has of it up to a moment is there:
// the same texts, in the same order, or as many statements where the log has values in place of placeholders.
func compareWithLog(t *testing.T, file, log string, until time.Time, texts bool) {
	t.Helper()
	logged := readLog(t, log, until)
	captured := map[uint64][]string{}
	connections := map[uint64]uint64{} // by session
	for _, rec := range wholeRecords(t, file) {
		switch {
		case rec.Kind == capture.KindSessionStart:
			connections[rec.Start.Session] = rec.Start.ConnectionID
		case rec.Kind == capture.KindStatement && rec.Statement.RunsSQL():
			id := connections[rec.Statement.Session]
			captured[id] = append(captured[id], string(rec.Statement.Text))
		}
	}
	compared := 0
	for _, id := range connections {
		got, want := captured[id], logged[id]
		compared += len(want)
		if len(got) < len(want) {
			t.Errorf("connection %d: %d statements in the capture, %d in the general log until %s", id, len(got), len(want), until)
			continue
		}
		for i := range want {
			if texts && got[i] != want[i] {
				t.Fatalf("connection %d, statement %d: %q in the capture, %q in the general log", id, i, got[i], want[i])
			}
		}
	}
	if len(connections) != 4 || compared < 100 {
		t.Errorf("%d connections, %d statements compared: the test did not bite", len(connections), compared)
	}
}

// wholeRecords reads a capture up to where it was cut.
func wholeRecords(t *testing.T, file string) []capture.Record {
	t.Helper()
	all, err := readRecords(t, file)
	if err == nil || !strings.Contains(err.Error(), file+": offset ") {
		t.Errorf("reading a file cut short: error %v, want one that names file and offset", err)
	}
	return all
}

// readLog lists the statements of each connection in MariaDB's general log up to a moment. Its times have whole
// seconds, written only when the second changes.
func readLog(t *testing.T, log string, until time.Time) map[uint64][]string {
	t.Helper()
	f, err := os.Open(log)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	statements := map[uint64][]string{}
	var at time.Time
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		stamp, rest, found := strings.Cut(lines.Text(), "\t")
		if !found {
			continue
		}
		if parsed, err := time.ParseInLocation("060102 15:04:05", strings.Replace(stamp, "  ", " 0", 1), time.Local); err == nil {
			at = parsed
		}
		if at.Add(time.Second).After(until) { // it may have been up to a second later
			continue
		}
		var id uint64
		var command string
		if n, _ := fmt.Sscan(strings.TrimLeft(rest, "\t"), &id, &command); n < 2 || command != "Query" && command != "Execute" {
			continue
		}
		_, text, _ := strings.Cut(strings.TrimLeft(rest, "\t"), command+"\t")
		statements[id] = append(statements[id], text)
	}
	return statements
}
