package main

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"redrive/capture"
	"redrive/internal/wire"
)

// aCapture is a capture file of n autocommitted point selects.
func aCapture(t *testing.T, n int) string {
	t.Helper()
	var b bytes.Buffer
	w := capture.NewWriter(&b, capture.Header{Producer: "proxy", Product: "test", Start: time.Unix(1, 0)})
	for i := range n {
		at := time.Duration(i+1) * time.Millisecond
		w.Statement(&capture.Statement{
			Session: 1, Number: uint64(i + 1), Txn: uint64(i + 1), Place: 1, TxnEnd: capture.TxnAuto,
			Command: wire.ComQuery, Text: []byte("SELECT c FROM sbtest1 WHERE id=1"),
			Received: at, Complete: at, Sent: at, First: at + 500, Done: at + 1000,
			Outcome: capture.Outcome{Results: 1, ResultSets: 1, Rows: 1},
		})
	}
	if err := w.Close(capture.Ledger{Forwarded: uint64(n), Stored: uint64(n)}); err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(t.TempDir(), "run.rdt")
	if err := os.WriteFile(name, b.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

// runArgs runs a command line with the given standard input.
func runArgs(stdin []byte, args ...string) (status int, stdout, stderr string) {
	var out, errs bytes.Buffer
	status = run(context.Background(), args, streams{bytes.NewReader(stdin), &out, &errs})
	return status, out.String(), errs.String()
}

func TestAnalyze(t *testing.T) {
	file := aCapture(t, 20)
	whole, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	status, out, errs := runArgs(nil, "analyze", file)
	if status != exitDone || errs != "" || !strings.Contains(out, "\npoint select     20  100.0%") {
		t.Errorf("analyze exits %d with %q and\n%s", status, errs, out)
	}
	if status, piped, _ := runArgs(whole, "analyze", "-"); status != exitDone || piped != strings.Replace(out, file, "standard input", 1) {
		t.Errorf("analyze - exits %d with\n%s\nwant\n%s", status, piped, out)
	}
	if status, two, _ := runArgs(nil, "analyze", file, file); status != exitDone || !strings.Contains(two, "\nSide by side.") {
		t.Errorf("analyze of two files exits %d with\n%s", status, two)
	}
	report := filepath.Join(t.TempDir(), "report.json")
	if status, out, errs := runArgs(nil, "analyze", "--format", "json", "-o", report, file); status != exitDone || out != "" {
		t.Errorf("analyze -o exits %d with %q and %q", status, errs, out)
	}
	if written, err := os.ReadFile(report); err != nil || !json.Valid(written) {
		t.Errorf("%s is not JSON: %v", written, err)
	}
}

// What is left of a file that was cut is reported, and the exit status says that it is not all.
func TestAnalyzeCutFile(t *testing.T) {
	whole, err := os.ReadFile(aCapture(t, 20))
	if err != nil {
		t.Fatal(err)
	}
	status, out, errs := runArgs(whole[:len(whole)-10], "analyze", "-")
	if status != exitFailed || !strings.Contains(out, "\nWarning: reading ended early") || !strings.Contains(errs, "standard input: offset") {
		t.Errorf("analyze exits %d with %q and\n%s", status, errs, out)
	}
}

func TestAnalyzeRefuses(t *testing.T) {
	file := aCapture(t, 1)
	for _, test := range []struct {
		args   string
		status int
		want   string
	}{
		{"", exitUsage, "name a capture file"},
		{"- -", exitUsage, "standard input can be read once"},
		{"--group-by table " + file, exitUsage, "--group-by table: want type or digest"},
		{"--format xml " + file, exitUsage, "--format xml: want text or json"},
		{"--top -1 " + file, exitUsage, "--top -1: want a number from 0"},
		{"--ignore-errors deadlock " + file, exitUsage, `--ignore-errors: "deadlock": want error numbers`},
		{"--frobnicate " + file, exitUsage, "unknown flag"},
		{"-o " + file + " " + file, exitUsage, "exists already"},
		{file + ".gone", exitFailed, "no such file"},
		{"-", exitFailed, "standard input: offset 0: "},
	} {
		status, _, errs := runArgs([]byte("SELECT 1;\n"), append([]string{"analyze"}, strings.Fields(test.args)...)...)
		if status != test.status || !strings.Contains(errs, test.want) {
			t.Errorf("analyze %s exits %d with %q, want %d with %q", test.args, status, errs, test.status, test.want)
		}
	}
}
