package e2e_test

import (
	"testing"

	"redrive/internal/mysqltest"
	"redrive/internal/sqltext"
)

// The scripts that Debian's sysbench 1.0.20 ships, and whether their events are framed by BEGIN and COMMIT.
var scripts = []struct {
	name         string
	transactions bool
}{
	{"oltp_read_write", true},
	{"oltp_read_only", true},
	{"oltp_write_only", true},
	{"oltp_point_select", false},
	{"oltp_insert", false},
	{"oltp_delete", false},
	{"oltp_update_index", false},
	{"oltp_update_non_index", false},
	{"select_random_points", false},
	{"select_random_ranges", false},
	{"bulk_insert", false},
}

// What a capture says equals what sysbench says, to the digit; and as counts alone do not prove that the protocol was
// followed, rows and verbs equal what the server counted in the same time.
func TestCountsEqualSysbench(t *testing.T) {
	for _, script := range scripts {
		for _, mode := range []string{"auto", "disable"} {
			t.Run(script.name+"/"+mode, func(t *testing.T) {
				options := []string{"--tables=2", "--table-size=1000", "--threads=4", "--db-ps-mode=" + mode}
				if script.name == "select_random_points" || script.name == "select_random_ranges" {
					options[0] = "--tables=1" // these know but one table
				}
				events := "--events=200"
				if script.name == "bulk_insert" {
					options, events = []string{"--threads=4", "--db-ps-mode=" + mode}, "--events=20000"
				}
				countPhases(t, script.name, script.transactions, append(options, events, "--time=0"))
			})
		}
	}
}

// Eight threads on a hundred rows get into each other's way.
func TestIgnoredErrorsEqualSysbench(t *testing.T) {
	report := countPhases(t, "oltp_write_only", true,
		[]string{"--tables=1", "--table-size=100", "--threads=8", "--events=2000", "--time=0"})
	if report.IgnoredErrors == 0 {
		t.Error("sysbench ignored no errors: the test did not bite")
	}
}

// countPhases runs prepare, run and cleanup of a script, each through a proxy of its own, and compares.
func countPhases(t *testing.T, script string, transactions bool, options []string) mysqltest.Report {
	t.Helper()
	server := mysqltest.Shared(t)
	schema := server.Schema(t)
	var report mysqltest.Report
	for _, phase := range []string{"prepare", "run", "cleanup"} {
		var printed mysqltest.Report
		var before, after map[string]uint64
		file := record(t, server, func(addr string) {
			before = server.Status(t, counters...)
			printed = sysbench(t, addr, schema, append(options, script, phase)...)
			after = server.Status(t, counters...)
		})
		compareWithServer(t, phase, file, before, after)
		if phase == "run" {
			compareWithSysbench(t, file, printed, script == "bulk_insert", transactions)
			report = printed
		}
	}
	return report
}

// analysis is what of `analyze --format json` these tests look at.
type analysis struct {
	Runs []struct {
		Sysbench struct {
			Read, Write, Other, Total uint64
			Transactions              *uint64
			IgnoredErrors             uint64 `json:"ignored_errors"`
			Reconnects                uint64
		}
	}
}

func compareWithSysbench(t *testing.T, file string, printed mysqltest.Report, bulk, transactions bool) {
	t.Helper()
	var a analysis
	unmarshal(t, mustRedrive(t, "analyze", "--format", "json", file), &a)
	if len(a.Runs) != 1 {
		t.Fatalf("%d runs analyzed, want 1", len(a.Runs))
	}
	got := a.Runs[0].Sysbench
	for _, c := range []struct {
		name      string
		got, want uint64
	}{
		{"read", got.Read, printed.Read},
		{"write", got.Write, printed.Write},
		{"other", got.Other, printed.Other},
		{"total", got.Total, printed.Total},
		{"ignored errors", got.IgnoredErrors, printed.IgnoredErrors},
		{"reconnects", got.Reconnects, printed.Reconnects},
	} {
		if c.got != c.want {
			t.Errorf("%s: %d in the capture, %d printed by sysbench", c.name, c.got, c.want)
		}
	}
	if printed.Total == 0 {
		t.Error("sysbench did nothing: the test did not bite")
	}
	switch {
	case got.Transactions == nil && (transactions || bulk):
		t.Errorf("transactions: not told, %d printed by sysbench", printed.Transactions)
	case got.Transactions != nil && !transactions && !bulk:
		t.Errorf("transactions: %d told of events without BEGIN and COMMIT", *got.Transactions)
	case got.Transactions != nil && *got.Transactions != printed.Transactions:
		t.Errorf("transactions: %d in the capture, %d printed by sysbench", *got.Transactions, printed.Transactions)
	}
}

// counters are the server's own, with the verb of the statements that each counts.
var (
	counters = []string{"Rows_sent", "Com_select", "Com_insert", "Com_update", "Com_delete", "Com_begin", "Com_commit", "Com_create_table", "Com_drop_table", "Com_create_index"}
	verbs    = map[string]string{
		"Com_select": "select", "Com_insert": "insert", "Com_update": "update", "Com_delete": "delete",
		"Com_begin": "begin", "Com_commit": "commit",
		"Com_create_table": "create table", "Com_drop_table": "drop table", "Com_create_index": "create index",
	}
)

func compareWithServer(t *testing.T, phase, file string, before, after map[string]uint64) {
	t.Helper()
	seen := map[string]uint64{}
	var rows uint64
	for _, s := range statements(t, file) {
		seen[sqltext.Verb(s.Text)]++
		rows += s.Outcome.Rows
	}
	grown := func(name string) uint64 { return after[name] - before[name] }
	if rows != grown("Rows_sent") {
		t.Errorf("%s: %d rows in the capture, the server sent %d", phase, rows, grown("Rows_sent"))
	}
	for counter, verb := range verbs {
		if seen[verb] != grown(counter) {
			t.Errorf("%s: %d %s statements in the capture, %s grew by %d", phase, seen[verb], verb, counter, grown(counter))
		}
	}
	if len(seen) == 0 {
		t.Errorf("%s: no statements in the capture", phase)
	}
}
