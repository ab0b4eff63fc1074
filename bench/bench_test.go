package main

import (
	"bytes"
	"context"
	"io"
	"math"
	"strings"
	"testing"
	"time"
)

func TestMedian(t *testing.T) {
	tests := []struct {
		values series
		want   float64
	}{
		{series{7}, 7},
		{series{9, 1, 5}, 5},
		{series{8, 1, 2, 100}, 5},
	}
	for _, test := range tests {
		if got := test.values.median(); got != test.want {
			t.Errorf("median of %v = %v, want %v", test.values, got, test.want)
		}
	}
	if got := (series{}).median(); !math.IsNaN(got) {
		t.Errorf("median of nothing = %v, want none", got)
	}
}

func TestParseStat(t *testing.T) {
	const after = " S 1 2 3 0 -1 4194560 100 0 0 0 150 50 7 8 20 0 9 0 12345"
	for _, name := range []string{"(haproxy)", "(a) b (c)", "()"} {
		if got, err := parseStat("42 " + name + after); err != nil || got != 2*time.Second {
			t.Errorf("parseStat of a process named %s = %v, %v; want 2s", name, got, err)
		}
	}
	for _, stat := range []string{"", "42 (x) S 1 2", "42 (x) S 1 2 3 0 -1 0 0 0 0 0 much more"} {
		if got, err := parseStat(stat); err == nil {
			t.Errorf("parseStat(%q) = %v, want an error", stat, got)
		}
	}
}

// The machine slows down after every contender's turn. Turned round every second time, that favours none.
func TestInTurnCancelsDrift(t *testing.T) {
	b := &bench{options: &options{rounds: 4}, log: io.Discard}
	turn, turns := 0, make([]int, 3)
	err := b.inTurn(3, func(round, i int) error {
		if round != turn/3 {
			t.Errorf("turn %d is of round %d, want %d", turn, round, turn/3)
		}
		turns[i] += turn
		turn++
		return nil
	})
	if err != nil || turn != 12 || turns[0] != 22 || turns[1] != 22 || turns[2] != 22 {
		t.Errorf("4 rounds of 3 contenders took %d turns, sums %v, %v; want 12 turns, each with 22", turn, turns, err)
	}
}

// loadTable has three rounds at one level. The second was slow for all.
func loadTable() *table {
	t := &table{levels: "threads", columns: throughputColumns, goals: throughputGoals}
	rows := t.add("8", []*contender{{path: directPath}, {path: haproxyPath}, {path: relayingPath}, {path: recordingPath}})
	for i, slow := range []float64{1, 2, 1} {
		rows[0].record(2000/slow, 0.25*slow, 0.5*slow, 1*slow, none)
		rows[1].record(1000/slow, 0.5*slow, 1*slow, 2*slow, 40)
		rows[2].record(1100/slow, 0.5*slow, 1*slow, 2*slow, 30)
		rows[3].record([]float64{900, 1100, 1200}[i]/slow, 0.5*slow, 1*slow, []float64{1, 2, 3}[i]*slow, 50)
	}
	t.notes = []string{"recording: all stored"}
	return t
}

func TestTable(t *testing.T) {
	var out bytes.Buffer
	loadTable().write(&out)
	for _, want := range []string{
		"| threads | path | statements/s | × | p50 ms | p95 ms | × | p99 ms | × | CPU µs per statement | × |\n",
		"| 8 | direct | 2000 | 2.00 (2.00–2.00) | 0.25 | 0.50 | 0.50 | 1.00 | 0.50 (0.50–0.50) | – | – |\n",
		"| 8 | HAProxy, TCP mode | 1000 | 1.00 | 0.50 | 1.00 | 1.00 | 2.00 | 1.00 | 40.0 | 1.00 |\n",
		"| 8 | redrive proxy, recording | 900 | 1.10 (0.90–1.20) | 0.50 | 1.00 | 1.00 | 3.00 | 1.00 (0.50–1.50) | 50.0 | 1.25 (1.25–1.25) |\n",
		"- recording: all stored\n",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("table lacks %q:\n%s", want, &out)
		}
	}
}

func TestVerdicts(t *testing.T) {
	table := loadTable()
	var out bytes.Buffer
	table.writeVerdicts(&out)
	want := "- threads 8: goal NOT met: throughput 1.10; p99 1.00; **CPU 1.25, want ≤ 1.00**; throughput beside relaying 1.00\n"
	if out.String() != want {
		t.Errorf("verdict %q, want %q", &out, want)
	}
	table.find("8", recordingPath).figures[loadCPU] = series{40, 40, 40}
	out.Reset()
	table.writeVerdicts(&out)
	if want := "- threads 8: goal met: throughput 1.10; p99 1.00; CPU 1.00; throughput beside relaying 1.00\n"; out.String() != want {
		t.Errorf("verdict %q, want %q", &out, want)
	}
}

func TestGoalOfFigureItself(t *testing.T) {
	table := &table{levels: "connections", columns: idleColumns, goals: idleGoals}
	rows := table.add("10", []*contender{{path: haproxyPath}, {path: recordingPath}})
	rows[0].record(5000, 3)
	rows[1].record(9000, 33)
	var out bytes.Buffer
	table.writeVerdicts(&out)
	if want := "- connections 10: goal NOT met: **KiB per connection 33.00, want ≤ 32.00**\n"; out.String() != want {
		t.Errorf("verdict %q, want %q", &out, want)
	}
}

func TestParseResident(t *testing.T) {
	if got, err := parseResident("Name:\thaproxy\nVmHWM:\t 999 kB\nVmRSS:\t    1234 kB\nRssAnon:\t 17 kB\n"); err != nil || got != 1234<<10 {
		t.Errorf("parseResident = %d, %v; want %d", got, err, 1234<<10)
	}
	for _, status := range []string{"", "Name:\tx\nVmRSS:\n", "Name:\tx\nVmRSS:\t12 MB\n", "Name:\tx\nVmRSS:\tmuch kB\n"} {
		if got, err := parseResident(status); err == nil {
			t.Errorf("parseResident(%q) = %d, want an error", status, got)
		}
	}
}

func TestCheckRatio(t *testing.T) {
	if err := checkRatio("oltp_point_select", loadTable(), 1.1); err != nil {
		t.Errorf("ratio of 1.1, least 1.1: %v", err)
	}
	err := checkRatio("oltp_point_select", loadTable(), 1.15)
	if want := "oltp_point_select, threads 8: recording has 1.10 of HAProxy's throughput, want at least 1.15"; err == nil || err.Error() != want {
		t.Errorf("ratio of 1.1, least 1.15: %v, want %s", err, want)
	}
}

func TestWrongUse(t *testing.T) {
	for args, says := range map[string]string{
		"--rounds 0":      "--rounds 0: want at least 1",
		"--round 1500ms":  "--round 1.5s: want whole seconds",
		"--threads 8,0":   "--threads 0: want at least 1",
		"--threads eight": "--threads",
		"--only speed":    "--only speed: want some of throughput,",
		"now":             `unexpected argument "now"`,
	} {
		var out, errs bytes.Buffer
		if status := run(context.Background(), strings.Fields(args), &out, &errs); status != 2 || !strings.Contains(errs.String(), says) {
			t.Errorf("bench %s: status %d, says %q; want 2 and %q", args, status, &errs, says)
		}
	}
}
