package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"redrive/capture"
	"redrive/internal/mysqltest"
	"redrive/internal/wire"
	"redrive/replay"
)

// writeCapture writes a capture of one session that sends texts, one every gap.
func writeCapture(t *testing.T, schema string, gap time.Duration, texts ...string) string {
	t.Helper()
	var b bytes.Buffer
	w := capture.NewWriter(&b, capture.Header{Producer: "proxy", Start: time.Unix(1, 0), Backend: "elsewhere:3306"})
	w.SessionStart(&capture.SessionStart{Session: 1, At: 1, Accepted: 1, Schema: schema})
	for i, text := range texts {
		at := time.Duration(i+1) * gap
		w.Statement(&capture.Statement{
			Session: 1, Number: uint64(i + 1), Command: wire.ComQuery, Text: []byte(text), Schema: []byte(schema),
			Received: at, Complete: at, Sent: at, First: at + 1000, Done: at + 2000, Outcome: capture.Outcome{Results: 1, ResultSets: 1, Rows: 1},
		})
	}
	w.SessionEnd(&capture.SessionEnd{Session: 1, At: time.Duration(len(texts)+1) * gap, Reason: capture.EndClient})
	if err := w.Close(capture.Ledger{}); err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(t.TempDir(), "run.rdt")
	if err := os.WriteFile(name, b.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

// runReplayCommand runs `redrive replay` at a server.
func runReplayCommand(ctx context.Context, server *mysqltest.Server, stdin string, args ...string) (status int, out, err string) {
	host, port, _ := net.SplitHostPort(server.Addr)
	args = append([]string{"replay", "--host", host, "--port", port, "--user", mysqltest.User}, args...)
	var stdout, stderr bytes.Buffer
	status = run(ctx, args, streams{strings.NewReader(stdin), &stdout, &stderr})
	return status, stdout.String(), stderr.String()
}

func TestReplayCommand(t *testing.T) {
	server := mysqltest.Start(t)
	t.Setenv("HOME", t.TempDir())
	t.Setenv("MYSQL_PWD", mysqltest.Password)
	schema := server.Schema(t)
	server.Exec(t, "CREATE TABLE "+schema+".t (id INT PRIMARY KEY)")
	reads := writeCapture(t, schema, time.Millisecond, "BEGIN", "SELECT 1", "SELECT * FROM t", "COMMIT")
	writes := writeCapture(t, schema, time.Millisecond, "INSERT INTO t VALUES (1)", "DELETE FROM t")
	long := writeCapture(t, schema, time.Hour, "SELECT 1", "SELECT 2", "SELECT 3")
	whole, err := os.ReadFile(reads)
	if err != nil {
		t.Fatal(err)
	}
	cut := filepath.Join(t.TempDir(), "cut.rdt")
	if err := os.WriteFile(cut, whole[:len(whole)-1], 0o600); err != nil {
		t.Fatal(err)
	}
	allowed := []string{"--allow-writes", "--i-know", server.Addr}
	tests := []struct {
		name     string
		args     []string
		stdin    string
		status   int
		out, err string // what must be in them
	}{
		{"reads", []string{reads}, "", 0, "4         4", "only addresses could be compared"},
		{"standard input", []string{"-", "--speed", "max"}, string(whole), 0, "4         4", ""},
		{"two files", []string{reads, reads}, "", 0, "8         8", ""},
		{"copies", []string{reads, "--scale", "3"}, "", 0, "copies: statements", ""},
		{"a cut file", []string{cut}, "", 1, "INCOMPLETE: " + cut + ": offset", "incomplete"},
		{"writes without leave", []string{writes}, "", 2, "", "1 insert t"},
		{"writes", append([]string{writes}, allowed...), "", 0, "2         2", ""},
		{"no file", nil, "", 2, "", "no capture: want the names"},
		{"no such file", []string{"/nonexistent.rdt"}, "", 1, "", "open /nonexistent.rdt"},
		{"a bad speed", []string{reads, "--speed", "0"}, "", 2, "", "--speed 0: want a number above 0, or max"},
		{"a bad scale", []string{reads, "--scale", "0"}, "", 2, "", "--scale 0: want a number from 1"},
		{"a bad format", []string{reads, "--format", "xml"}, "", 2, "", "--format xml: want text or json"},
		{"standard input twice", []string{"-", "-"}, string(whole), 1, "", "the file is empty"},
		{"a folder", []string{filepath.Dir(cut)}, "", 1, "", "is a directory"},
		{"an unknown flag", []string{reads, "--fast"}, "", 2, "", "--fast"},
		{"an output that exists", []string{reads, "--out", cut}, "", 2, "", "exists already"},
		{"a wrong password", []string{reads, "--password", "Wrong-1234"}, "", 1, "", "1045"},
		{"nobody there", []string{reads, "--port", "1"}, "", 1, "", "127.0.0.1:1: "},
	}
	for _, tt := range tests {
		status, out, stderr := runReplayCommand(context.Background(), server, tt.stdin, tt.args...)
		if status != tt.status || !strings.Contains(out, tt.out) || !strings.Contains(stderr, tt.err) {
			t.Errorf("%s: exit %d, want %d with %q and %q; standard output:\n%s\nstandard error:\n%s", tt.name, status, tt.status, tt.out, tt.err, out, stderr)
		}
		if strings.Contains(out+stderr, mysqltest.Password) || strings.Contains(out+stderr, "Wrong-1234") {
			t.Errorf("%s: a password was printed", tt.name)
		}
	}

	t.Run("recording", func(t *testing.T) {
		out := filepath.Join(t.TempDir(), "out.rdt")
		status, stdout, stderr := runReplayCommand(context.Background(), server, "", reads, "--out", out, "--format", "json")
		var result replay.Result
		if err := json.Unmarshal([]byte(stdout), &result); status != 0 || err != nil || result.Statements.Replayed != 4 {
			t.Errorf("exit %d, %v, %d replayed, want 0, JSON, 4: %s", status, err, result.Statements.Replayed, stderr)
		}
		header, texts := readRecording(t, out)
		if header.Producer != "replay" || header.Source != reads || header.Backend != server.Addr || header.Server == nil || header.Settings["speed"] != "1" {
			t.Errorf("the recording's header is %+v", header)
		}
		if want := []string{"BEGIN", "SELECT 1", "SELECT * FROM t", "COMMIT"}; !slices.Equal(texts, want) {
			t.Errorf("recorded %q, want %q", texts, want)
		}
	})

	// The summary and the analysis of the recording count from the same moments: also what the login before a session's
	// first statement took is the same thing to both.
	for _, speed := range []string{"100", "max"} {
		t.Run("times at speed "+speed, func(t *testing.T) {
			out := filepath.Join(t.TempDir(), "out.rdt")
			_, summary, stderr := runReplayCommand(context.Background(), server, "", reads, "--speed", speed, "--out", out, "--format", "json")
			_, analysis, _ := runArgs(nil, "analyze", "--format", "json", out)
			type times struct{ Service, Wait, Lag, Response map[string]int64 }
			var replayed times
			var analyzed struct{ Runs []struct{ Headline times } }
			if err := errors.Join(json.Unmarshal([]byte(summary), &replayed), json.Unmarshal([]byte(analysis), &analyzed)); err != nil {
				t.Fatalf("%v: %s", err, stderr)
			}
			if got := analyzed.Runs[0].Headline; !reflect.DeepEqual(replayed, got) || replayed.Service == nil || (replayed.Wait != nil) != (speed != "max") {
				t.Errorf("the replay says\n%s\nand analyze of its recording\n%s\nwant the same, with wait, lag and response only where there was a pace", summary, analysis)
			}
		})
	}

	// What was recorded is written, and the report too.
	t.Run("interrupted", func(t *testing.T) {
		out := filepath.Join(t.TempDir(), "out.rdt")
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		go func() {
			defer cancel()
			for range 600 {
				if info, err := os.Stat(out); err == nil && info.Size() > 0 {
					return
				}
				time.Sleep(10 * time.Millisecond)
			}
		}()
		status, stdout, _ := runReplayCommand(ctx, server, "", long, "--out", out)
		if status != 1 || !strings.Contains(stdout, "INCOMPLETE: the replay was interrupted") {
			t.Errorf("exit %d, want 1 and a word of the interruption:\n%s", status, stdout)
		}
		readRecording(t, out)
	})
}

// readRecording reads a capture file to its clean end.
func readRecording(t *testing.T, name string) (*capture.Header, []string) {
	t.Helper()
	f, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	r := capture.NewReader(f, name)
	var texts []string
	for r.Next() {
		if rec := r.Record(); rec.Kind == capture.KindStatement {
			texts = append(texts, string(rec.Statement.Text))
		}
	}
	if err := r.Err(); err != nil {
		t.Fatal(err)
	}
	header, _ := r.Header()
	return header, texts
}
