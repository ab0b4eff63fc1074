package main

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"time"
)

func TestMedian(t *testing.T) {
	tests := []struct {
		values []float64
		want   float64
	}{
		{[]float64{7}, 7},
		{[]float64{9, 1, 5}, 5},
		{[]float64{8, 1, 2, 100}, 5},
	}
	for _, test := range tests {
		var samples []sample
		for _, v := range test.values {
			samples = append(samples, sample{qps: v})
		}
		if got := (&result{samples: samples}).qps(); got != test.want {
			t.Errorf("median of %v = %v, want %v", test.values, got, test.want)
		}
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

// at builds the results of one number of threads from throughputs.
func at(threads int, haproxy, recording float64) []result {
	return []result{
		{path: haproxyPath, threads: threads, samples: []sample{{qps: haproxy, p95: 1, cpu: 40}}},
		{path: recordingPath, threads: threads, samples: []sample{{qps: recording, p95: 1.5, cpu: 50}}, note: "all stored"},
	}
}

func TestCheckRatio(t *testing.T) {
	if err := checkRatio(append(at(1, 1000, 800), at(8, 1000, 2000)...), 0.8); err != nil {
		t.Errorf("ratios of 0.8 and 2, least 0.8: %v", err)
	}
	err := checkRatio(append(at(1, 1000, 900), at(64, 1000, 790)...), 0.8)
	if want := "64 threads: recording has 0.79 of HAProxy's throughput, want at least 0.80"; err == nil || err.Error() != want {
		t.Errorf("ratios of 0.9 and 0.79, least 0.8: %v, want %s", err, want)
	}
}

func TestWritePaths(t *testing.T) {
	var out bytes.Buffer
	direct := result{path: directPath, threads: 8, samples: []sample{{qps: 2000, p95: 0.5}}}
	writePaths(&out, &options{workload: "oltp_point_select"}, append([]result{direct}, at(8, 1000, 800)...))
	for _, want := range []string{
		"| 8 | direct | 2000 | 2.00 | 0.50 | 0.50 | – | – |\n",
		"| 8 | HAProxy, TCP mode | 1000 | 1.00 | 1.00 | 1.00 | 40.0 | 1.00 |\n",
		"| 8 | redrive proxy, recording | 800 | 0.80 | 1.50 | 1.50 | 50.0 | 1.25 |\n",
		"- 8 threads, redrive proxy, recording: all stored\n",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("table lacks %q:\n%s", want, &out)
		}
	}
}

func TestWrongUse(t *testing.T) {
	for args, says := range map[string]string{
		"--rounds 0":      "--rounds 0: want at least 1",
		"--round 1500ms":  "--round 1.5s: want whole seconds",
		"--threads 8,0":   "--threads 0: want at least 1",
		"--threads eight": "--threads",
		"now":             `unexpected argument "now"`,
	} {
		var out, errs bytes.Buffer
		if status := run(context.Background(), strings.Fields(args), &out, &errs); status != 2 || !strings.Contains(errs.String(), says) {
			t.Errorf("bench %s: status %d, says %q; want 2 and %q", args, status, &errs, says)
		}
	}
}
