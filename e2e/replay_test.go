package e2e_test

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"redrive/capture"
	"redrive/internal/mysqltest"
	"redrive/internal/sqltext"
)

// restore makes a schema of source anew on another server.
func restore(t *testing.T, source, copied *mysqltest.Server, schema string) {
	t.Helper()
	copied.Exec(t, "DROP DATABASE IF EXISTS "+schema, "CREATE DATABASE "+schema)
	copied.Restore(t, source.Dump(t, schema), schema)
}

// One thread's reads and writes, replayed onto a copy taken before, leave the same tables.
func TestReplayLeavesTheSameTables(t *testing.T) {
	source, copied := mysqltest.Shared(t), mysqltest.Start(t)
	for _, mode := range []string{"auto", "disable"} {
		t.Run(mode, func(t *testing.T) {
			schema := source.Schema(t)
			options := []string{
				"--tables=2", "--table-size=1000", "--threads=1", "--events=300", "--time=0", "--db-ps-mode=" + mode, "oltp_read_write",
			}
			sysbench(t, source.Addr, schema, append(options, "prepare")...)
			restore(t, source, copied, schema)
			copied.Exec(t, "CREATE DATABASE IF NOT EXISTS redrive_target_ok")
			before := source.Checksum(t, schema)
			file := record(t, source, func(addr string) { sysbench(t, addr, schema, append(options, "run")...) })
			want := source.Checksum(t, schema)
			if maps.Equal(before, want) {
				t.Fatal("the run changed nothing: the test does not bite")
			}
			mustRedrive(t, append([]string{"replay", file, "--speed", "max", "--allow-writes"}, target(copied)...)...)
			if got := copied.Checksum(t, schema); !maps.Equal(got, want) {
				t.Errorf("checksums after the replay %v, want %v", got, want)
			}
		})
	}
}

// Eight threads that only read give, replayed, the same statements and rows; three times as many sessions give three
// times as many.
func TestReplayOfReads(t *testing.T) {
	source, copied := mysqltest.Shared(t), mysqltest.Start(t)
	schema := source.Schema(t)
	options := []string{"--tables=2", "--table-size=1000", "--threads=8", "--events=300", "--time=0", "oltp_read_only"}
	sysbench(t, source.Addr, schema, append(options, "prepare")...)
	restore(t, source, copied, schema)
	file := record(t, source, func(addr string) { sysbench(t, addr, schema, append(options, "run")...) })
	want := countByVerb(statements(t, file))
	for _, scale := range []int{1, 3} {
		out := filepath.Join(t.TempDir(), "replay.rdt")
		mustRedrive(t, append([]string{"replay", file, "--speed", "max", "--scale", fmt.Sprint(scale), "--out", out}, target(copied)...)...)
		got := countByVerb(statements(t, out))
		for verb, count := range want {
			for range scale - 1 {
				count.statements += want[verb].statements
				count.rows += want[verb].rows
			}
			if got[verb] != count {
				t.Errorf("scale %d: %s: %+v replayed, want %+v", scale, verb, got[verb], count)
			}
		}
		if got, want := sessions(t, out), scale*sessions(t, file); got != want {
			t.Errorf("scale %d: %d sessions, want %d", scale, got, want)
		}
	}
}

type count struct{ statements, rows uint64 }

func countByVerb(all []capture.Statement) map[string]count {
	counts := map[string]count{}
	for _, s := range all {
		c := counts[sqltext.Verb(s.Text)]
		c.statements++
		c.rows += s.Outcome.Rows
		counts[sqltext.Verb(s.Text)] = c
	}
	return counts
}

// The captured prepare phase, replayed into an empty schema, makes the same tables.
func TestReplayOfPrepare(t *testing.T) {
	source, empty := mysqltest.Shared(t), mysqltest.Start(t)
	schema := source.Schema(t)
	file := record(t, source, func(addr string) {
		sysbench(t, addr, schema, "--tables=3", "--table-size=3000", "--threads=3", "oltp_read_write", "prepare")
	})
	empty.Exec(t, "CREATE DATABASE "+schema)
	mustRedrive(t, append([]string{"replay", file, "--speed", "max", "--allow-writes", "--i-know", empty.Addr}, target(empty)...)...)
	got, want := empty.Checksum(t, schema), source.Checksum(t, schema)
	if len(want) != 3 || !maps.Equal(got, want) {
		t.Errorf("checksums after the replay %v, want %v", got, want)
	}
}

// A capture of 20 s takes 20 s at speed 1 and 10 s at speed 2, within 5 %, and gaps within sessions halve.
func TestPacing(t *testing.T) {
	t.Parallel()
	server := mysqltest.Start(t)
	schema := server.Schema(t)
	options := []string{"--tables=1", "--table-size=1000", "--threads=4", "--rate=20", "--time=20", "oltp_read_only"}
	sysbench(t, server.Addr, schema, append(options, "prepare")...)
	file := record(t, server, func(addr string) { sysbench(t, addr, schema, append(options, "run")...) })
	captured := span(statements(t, file))
	if captured < 18*time.Second {
		t.Fatalf("the capture spans %s, want about 20s", captured)
	}
	var gaps []time.Duration
	for _, speed := range []float64{1, 2} {
		out := filepath.Join(t.TempDir(), "replay.rdt")
		mustRedrive(t, append([]string{"replay", file, "--speed", fmt.Sprint(speed), "--allow-same-server", "--out", out}, target(server)...)...)
		replayed := statements(t, out)
		took, want := span(replayed), time.Duration(float64(captured)/speed)
		if ratio := took.Seconds() / want.Seconds(); ratio < 0.95 || ratio > 1.05 {
			t.Errorf("speed %g: took %s, want %s ± 5 %%", speed, took, want)
		}
		gaps = append(gaps, medianGap(replayed))
	}
	if ratio := gaps[0].Seconds() / gaps[1].Seconds(); ratio < 1.8 || ratio > 2.2 {
		t.Errorf("median gap between transactions of a session %s at speed 1, %s at speed 2: ratio %.2f, want 2", gaps[0], gaps[1], ratio)
	}
}

// span is the time from the first statement's start to the last one's end.
func span(all []capture.Statement) time.Duration {
	first, last := all[0].Started(), all[0].Done
	for _, s := range all {
		first, last = min(first, s.Started()), max(last, s.Done)
	}
	return last - first
}

// medianGap is the median time from a BEGIN to the session's next: what pacing decides, and not the server.
func medianGap(all []capture.Statement) time.Duration {
	previous := map[uint64]time.Duration{}
	var gaps []time.Duration
	slices.SortFunc(all, func(a, b capture.Statement) int { return int(a.Started() - b.Started()) })
	for _, s := range all {
		if !strings.EqualFold(string(s.Text), "begin") {
			continue
		}
		if at, ok := previous[s.Session]; ok {
			gaps = append(gaps, s.Started()-at)
		}
		previous[s.Session] = s.Started()
	}
	slices.Sort(gaps)
	return gaps[len(gaps)/2]
}
