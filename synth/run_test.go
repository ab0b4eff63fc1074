package synth_test

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"redrive/capture"
	"redrive/internal/client"
	"redrive/internal/mysqltest"
	"redrive/internal/wire"
	"redrive/synth"
)

func TestMain(m *testing.M) { mysqltest.Main(m) }

// newRunner is a runner of a script in a schema of its own, with small tables and a fixed seed.
func newRunner(t testing.TB, script string) (*synth.Runner, *mysqltest.Server, *output) {
	t.Helper()
	s := mysqltest.Shared(t)
	out := new(output)
	r := &synth.Runner{
		Settings: synth.Defaults(), Name: script, Version: "test", Out: out, Clock: capture.NewClock(),
		Targets: []client.Config{{
			Network: "unix", Address: s.Socket, User: mysqltest.User, Password: mysqltest.Password, Schema: s.Schema(t), Capabilities: wire.MultiStatements,
		}},
	}
	r.TableSize, r.Seed, r.Time = 1000, 5, time.Minute
	return r, s, out
}

func schemaOf(r *synth.Runner) string { return r.Targets[0].Schema }

// prepare makes the tables and forgets what was printed.
func prepare(t testing.TB, r *synth.Runner, out *output) {
	t.Helper()
	if err := r.Prepare(t.Context()); err != nil {
		t.Fatal(err)
	}
	out.Reset()
}

// An output is a buffer for several goroutines.
type output struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.Write(p)
}

func (o *output) Reset() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.b.Reset()
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.String()
}

func (o *output) report(t testing.TB) mysqltest.Report {
	t.Helper()
	report, err := mysqltest.ParseReport(o.String())
	if err != nil {
		t.Fatal(err)
	}
	return report
}

// afterStart calls f when the threads have been at work for a moment; the channel closes behind it.
func (o *output) afterStart(f func()) (done chan struct{}) {
	done = make(chan struct{})
	go func() {
		defer close(done)
		for !strings.Contains(o.String(), "Threads started!") {
			time.Sleep(10 * time.Millisecond)
		}
		time.Sleep(200 * time.Millisecond)
		f()
	}()
	return done
}

func number(t testing.TB, s *mysqltest.Server, query string) (n int) {
	t.Helper()
	if err := s.DB().QueryRow(query).Scan(&n); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	return n
}

func TestPrepareAndCleanup(t *testing.T) {
	r, s, out := newRunner(t, "oltp_read_write")
	schema := schemaOf(r)
	r.Tables, r.Threads, r.TableSize = 2, 1, 3000 // more than one INSERT
	if err := r.Prepare(t.Context()); err != nil {
		t.Fatal(err)
	}
	want := `sysbench 1.0.20 (redrive synth test)

Creating table 'sbtest1'...
Inserting 3000 records into 'sbtest1'
Creating a secondary index on 'sbtest1'...
Creating table 'sbtest2'...
Inserting 3000 records into 'sbtest2'
Creating a secondary index on 'sbtest2'...
`
	if out.String() != want {
		t.Errorf("prepare printed:\n%s\nwant:\n%s", out, want)
	}
	for _, table := range []string{"sbtest1", "sbtest2"} {
		query := fmt.Sprintf("SELECT COUNT(*) FROM %s.%s WHERE id BETWEEN 1 AND 3000 AND k BETWEEN 1 AND 3000 AND LENGTH(c)=119 AND LENGTH(pad)=59", schema, table)
		if n := number(t, s, query); n != 3000 {
			t.Errorf("%s has %d good rows, want 3000", table, n)
		}
		var name, op, kind, text string
		if err := s.DB().QueryRow(fmt.Sprintf("CHECK TABLE %s.%s", schema, table)).Scan(&name, &op, &kind, &text); err != nil || text != "OK" {
			t.Errorf("check of %s: %s, %v", table, text, err)
		}
	}
	if n := number(t, s, "SELECT COUNT(*) FROM information_schema.statistics WHERE table_schema='"+schema+"' AND index_name IN ('k_1','k_2') AND column_name='k'"); n != 2 {
		t.Errorf("%d secondary indexes, want 2", n)
	}
	one := s.Checksum(t, schema)
	if one["sbtest1"] == one["sbtest2"] {
		t.Error("both tables have the same rows")
	}

	out.Reset()
	if err := r.Cleanup(t.Context()); err != nil {
		t.Fatal(err)
	}
	want = "sysbench 1.0.20 (redrive synth test)\n\nDropping table 'sbtest1'...\nDropping table 'sbtest2'...\n"
	if out.String() != want {
		t.Errorf("cleanup printed:\n%s\nwant:\n%s", out, want)
	}
	if n := number(t, s, "SELECT COUNT(*) FROM information_schema.tables WHERE table_schema='"+schema+"'"); n != 0 {
		t.Errorf("%d tables left", n)
	}

	// A seed gives the same rows, whatever the number of threads.
	r.Threads = 3
	out.Reset()
	if err := r.Prepare(t.Context()); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(out.String(), "\n\nInitializing worker threads...\n\nCreating table") {
		t.Errorf("prepare by threads printed:\n%s", out)
	}
	if three := s.Checksum(t, schema); three["sbtest1"] != one["sbtest1"] || three["sbtest2"] != one["sbtest2"] {
		t.Errorf("checksums %v with three threads, %v with one", three, one)
	}
	out.Reset()
	err := r.Prepare(t.Context())
	var fatal *synth.Fatal
	if !errors.As(err, &fatal) || fatal.Status != 1 || !strings.Contains(err.Error(), "error 1050") || !strings.Contains(err.Error(), "`sysbench.cmdline.call_command' function failed") {
		t.Errorf("prepare over tables that are there: %v, want error 1050", err)
	}
}

// What we count is what the server counts, in both protocols, and what is recorded is the same again.
func TestCountsEqualTheServers(t *testing.T) {
	for _, script := range []string{"oltp_point_select", "oltp_read_only", "oltp_read_write"} {
		for _, text := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s text=%v", script, text), func(t *testing.T) {
				r, s, out := newRunner(t, script)
				r.Tables = 2
				prepare(t, r, out)
				threads := 2
				if script == "oltp_read_write" {
					threads = 1 // two would get into each other's way, and begin events anew
				}
				r.Text, r.Threads, r.Events, r.Time = text, threads, 40, 0
				var file bytes.Buffer
				recorder := capture.NewRecorder(&file, capture.Header{Producer: "synth", Clock: "monotonic"}, capture.RecorderOptions{})
				r.Sink = recorder
				counters := []string{"Com_select", "Com_insert", "Com_update", "Com_delete", "Com_begin", "Com_commit", "Com_stmt_execute", "Rows_sent"}
				before := s.Status(t, counters...)
				if err := r.Run(t.Context()); err != nil {
					t.Fatalf("%v\n%s", err, out)
				}
				if _, err := recorder.Close(0); err != nil {
					t.Fatal(err)
				}
				after := s.Status(t, counters...)
				grown := func(name string) uint64 { return after[name] - before[name] }

				report := out.report(t)
				perEvent := map[string][3]uint64{"oltp_point_select": {1, 0, 0}, "oltp_read_only": {14, 0, 2}, "oltp_read_write": {14, 4, 2}}[script]
				if report.Events != 40 || report.Transactions != 40 || report.Total != 40*(perEvent[0]+perEvent[1]+perEvent[2]) {
					t.Errorf("%d events, %d transactions, %d queries; want 40, 40, %d", report.Events, report.Transactions, report.Total, 40*(perEvent[0]+perEvent[1]+perEvent[2]))
				}
				if got := grown("Com_select"); report.Read != got || got != 40*perEvent[0] {
					t.Errorf("read %d, the server's selects %d, want %d", report.Read, got, 40*perEvent[0])
				}
				writes := grown("Com_insert") + grown("Com_update") + grown("Com_delete")
				if report.Write+report.Other != writes+grown("Com_begin")+grown("Com_commit") || report.Other < 40*perEvent[2] || writes != 40*perEvent[1] {
					t.Errorf("write %d and other %d, the server's writes %d, begins %d, commits %d", report.Write, report.Other, writes, grown("Com_begin"), grown("Com_commit"))
				}
				if executes := grown("Com_stmt_execute"); text && executes != 0 || !text && executes != report.Total {
					t.Errorf("%d executes of prepared statements, of %d queries", executes, report.Total)
				}
				checkCapture(t, file.Bytes(), report, grown("Rows_sent"), uint64(threads), text)
			})
		}
	}
}

func checkCapture(t *testing.T, file []byte, report mysqltest.Report, rowsSent, threads uint64, text bool) {
	t.Helper()
	reader := capture.NewReader(bytes.NewReader(file), "run.rdt")
	var statements, rows, commits, starts, ends uint64
	last := map[uint64]*capture.Statement{}
	for reader.Next() {
		record := reader.Record()
		switch record.Kind {
		case capture.KindSessionStart:
			starts++
			if start := record.Start; start.User != mysqltest.User || start.ConnectionID == 0 || start.At < start.Accepted {
				t.Errorf("session start %+v", start)
			}
		case capture.KindSessionEnd:
			ends++
			if end := record.End; end.Reason != capture.EndQuit || end.Commands != last[end.Session].Number {
				t.Errorf("session end %+v after command %d", end, last[end.Session].Number)
			}
		case capture.KindStatement:
			s := record.Statement.Clone()
			before := last[s.Session]
			last[s.Session] = s
			if before == nil {
				before = &capture.Statement{}
			}
			if s.Number != before.Number+1 || s.Sent < before.Done || s.Done < s.First || s.First < s.Sent || s.Intended != 0 {
				t.Fatalf("command %d at %v, %v, %v, due %v, after %d done at %v", s.Number, s.Sent, s.First, s.Done, s.Intended, before.Number, before.Done)
			}
			if !s.RunsSQL() {
				continue
			}
			statements++
			rows += s.Outcome.Rows
			checkStatement(t, s, before, text)
			if s.TxnEnd == capture.TxnCommit {
				commits++
			}
		}
	}
	if err := reader.Err(); err != nil {
		t.Fatal(err)
	}
	if statements != report.Total || rows != rowsSent || starts != threads || ends != threads {
		t.Errorf("the capture has %d statements, %d rows, %d starts, %d ends; want %d, %d, %d, %d", statements, rows, starts, ends, report.Total, rowsSent, threads, threads)
	}
	if withTransactions := report.Total != report.Events; withTransactions && commits != report.Transactions {
		t.Errorf("the capture has %d commits, want %d", commits, report.Transactions)
	}
}

func checkStatement(t *testing.T, s, before *capture.Statement, text bool) {
	t.Helper()
	sql := string(s.Text)
	switch {
	case text && s.Command != wire.ComQuery, !text && s.Command != wire.ComStmtExecute:
		t.Errorf("%s by %s", sql, wire.CommandName(s.Command))
	case !text && (s.StatementID == 0 || len(s.Params.Types)/2 != strings.Count(sql, "?")):
		t.Errorf("execute of %s: id %d, %d types", sql, s.StatementID, len(s.Params.Types)/2)
	case sql == "BEGIN" && s.Place != 1, before.Text != nil && string(before.Text) == "BEGIN" && before.RunsSQL() && (s.Txn != before.Txn || s.Place != 2):
		t.Errorf("%s: transaction %d, place %d, after %s in %d", sql, s.Txn, s.Place, before.Text, before.Txn)
	}
	if want := uint64(len(sql) + 1 + wire.HeaderLen); text && s.RequestBytes != want {
		t.Errorf("%s: %d bytes, want %d", sql, s.RequestBytes, want)
	}
}

// The layout is sysbench's, column by column; behind it comes our own section.
func TestReportLayout(t *testing.T) {
	r, _, out := newRunner(t, "oltp_read_write")
	prepare(t, r, out)
	r.Threads, r.Time, r.ReportInterval, r.Seed = 2, 450*time.Millisecond, 200*time.Millisecond, 7
	if err := r.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	decimal, rate := `\d+\.\d\d`, `\d+ +\(\d+\.\d\d per sec\.\)`
	line := `(\[ 0s \] thds: 2 tps: @ qps: @ \(r/w/o: @/@/@\) lat \(ms,95%\): @ err/s: @ reconn/s: @
)+`
	layout := strings.NewReplacer("RATE", rate).Replace(strings.ReplaceAll(`^sysbench 1\.0\.20 \(.*\)

Running the test with following options:
Number of threads: 2
Report intermediate results every 0 second\(s\)
Initializing random number generator from seed \(7\)\.


Initializing worker threads\.\.\.

Threads started!

`+line+`SQL statistics:
    queries performed:
        read:                            \d+
        write:                           \d+
        other:                           \d+
        total:                           \d+
    transactions:                        RATE
    queries:                             RATE
    ignored errors:                      RATE
    reconnects:                          RATE

General statistics:
    total time:                          \d+\.\d{4}s
    total number of events:              \d+

Latency \(ms\):
         min: {35,39}@
         avg: {35,39}@
         max: {35,39}@
         95th percentile: {20,26}@
         sum: {32,38}@

Threads fairness:
    events \(avg/stddev\):           \d+\.\d{4}/@
    execution time \(avg/stddev\):   \d+\.\d{4}/@

Statements \(service time, ms\):
    type +count +mean +p50 +p95 +p99 +p99\.9 +max +errors
`, "@", decimal))
	if !regexp.MustCompile(layout).MatchString(out.String()) {
		t.Errorf("printed:\n%s\nwant:\n%s", out, layout)
	}
	rows := regexp.MustCompile(`(?m)^    (begin|commit|point select|simple range|sum range|order range|distinct range|index update|non-index update|delete|insert) +(\d+)( +\d+\.\d{3}){6} +\d+$`)
	if n := len(rows.FindAllString(out.String(), -1)); n != 11 {
		t.Errorf("%d types of statements, want 11:\n%s", n, out)
	}
	for _, label := range []string{"         min:", "         avg:", "         max:", "        95th percentile:", "         sum:"} {
		for line := range strings.Lines(out.String()) {
			if strings.HasPrefix(line, label) && len(line) != len("         min: ")+39+1 && !strings.Contains(label, "percentile") {
				t.Errorf("%q has %d columns, want %d", line, len(line)-1, len("         min: ")+39)
			}
		}
	}
}

// shape is the lines of an output with their numbers and blanks made alike, without the banner and what is ours.
func shape(output string) []string {
	number := regexp.MustCompile(`\d+(\.\d+)?`)
	blanks := regexp.MustCompile(` +`)
	ours, _, _ := strings.Cut(output, "Statements (service time, ms):")
	var lines []string
	for i, line := range strings.Split(ours, "\n") {
		if i > 0 {
			lines = append(lines, blanks.ReplaceAllString(number.ReplaceAllString(line, "N"), " "))
		}
	}
	return lines
}

// The real sysbench prints the same lines.
func TestLinesAreSysbenchs(t *testing.T) {
	r, s, out := newRunner(t, "oltp_read_write")
	r.Tables, r.Threads = 2, 2
	args := append(mysqltest.SysbenchArgs(s.Addr, schemaOf(r)), "oltp_read_write", "--tables=2", "--table-size=1000", "--threads=2", "--rate=50",
		"--time=1", "--rand-seed=5", "--report-interval=3")
	compare := func(command string, run func(context.Context) error) {
		t.Helper()
		report, err := mysqltest.Sysbench(t.Context(), append(args, command)...)
		if err != nil {
			t.Fatal(err)
		}
		out.Reset()
		if err := run(t.Context()); err != nil {
			t.Fatal(err)
		}
		want, got := shape(report.Output), shape(out.String())
		slices.Sort(want) // threads print as they come
		slices.Sort(got)
		if !slices.Equal(got, want) {
			t.Errorf("%s printed:\n%s\nsysbench:\n%s", command, out, report.Output)
		}
	}
	r.Rate, r.Time, r.ReportInterval = 50, time.Second, 3*time.Second
	sysbench := func(command string) {
		t.Helper()
		if _, err := mysqltest.Sysbench(t.Context(), append(args, command)...); err != nil {
			t.Fatal(err)
		}
	}
	compare("prepare", func(ctx context.Context) error { sysbench("cleanup"); return r.Prepare(ctx) })
	compare("run", r.Run)
	compare("cleanup", func(ctx context.Context) error { sysbench("prepare"); return r.Cleanup(ctx) })
}

// A wrapper around sysbench reads these lines by patterns of its own.
func TestWrappersPatterns(t *testing.T) {
	r, _, out := newRunner(t, "oltp_point_select")
	prepare(t, r, out)
	r.Events, r.Percentile = 50, 99
	if err := r.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	for pattern, want := range map[string]string{
		`transactions:\s+(\d+)\s+\([\d.]+ per sec\.\)`: "50", `queries:\s+(\d+)\s+\(`: "50", `read:\s+(\d+)`: "50",
		`total number of events:\s+(\d+)`: "50", `\s+(\d+)th percentile:\s+[\d.]+`: "99", `ignored errors:\s+(\d+)`: "0",
	} {
		m := regexp.MustCompile(pattern).FindStringSubmatch(out.String())
		if m == nil || m[1] != want {
			t.Errorf("%s finds %v, want %s", pattern, m, want)
		}
	}
}

// The same seed sends the same statements, whatever the number of threads: a thread's stream is its own.
func TestSeedRepeatsARun(t *testing.T) {
	r, s, out := newRunner(t, "oltp_read_write")
	r.Threads, r.Events = 1, 20
	sums := map[uint64]int{}
	for _, seed := range []uint64{11, 11, 12} {
		r.Seed = 3
		prepare(t, r, out)
		r.Seed = seed
		if err := r.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		sums[s.Checksum(t, schemaOf(r))["sbtest1"]]++
		if err := r.Cleanup(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if counts := slices.Sorted(mapsValues(sums)); !slices.Equal(counts, []int{1, 2}) {
		t.Errorf("checksums %v, want two alike and one other", sums)
	}
}

func mapsValues(m map[uint64]int) func(func(int) bool) {
	return func(yield func(int) bool) {
		for _, v := range m {
			if !yield(v) {
				return
			}
		}
	}
}

func TestRateMode(t *testing.T) {
	r, _, out := newRunner(t, "oltp_point_select")
	prepare(t, r, out)
	var file bytes.Buffer
	recorder := capture.NewRecorder(&file, capture.Header{Producer: "synth", Clock: "monotonic"}, capture.RecorderOptions{})
	r.Sink, r.Threads, r.Rate, r.Time, r.ReportInterval = recorder, 4, 200, time.Second, 500*time.Millisecond
	if err := r.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := recorder.Close(0); err != nil {
		t.Fatal(err)
	}
	events := out.report(t).Events
	if due := int(events) + backlog(t, out); due < 130 || due > 270 { // σ 14
		t.Errorf("%d events due in 1s at 200/s", due)
	}
	for _, want := range []string{"Target transaction rate: 200/sec\n", "queue length: ", "concurrency: ", "Open loop: 200 events/s wanted"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in:\n%s", want, out)
		}
	}
	checkStartOrder(t, file.Bytes())
	reader := capture.NewReader(bytes.NewReader(file.Bytes()), "run.rdt")
	due := map[time.Duration]bool{}
	for reader.Next() {
		if s := &reader.Record().Statement; reader.Record().Kind == capture.KindStatement && s.RunsSQL() {
			if s.Intended == 0 || s.Sent < s.Intended || due[s.Intended] {
				t.Errorf("a statement due at %v was sent at %v", s.Intended, s.Sent)
			}
			due[s.Intended] = true
		}
	}
	if reader.Err() != nil || len(due) != int(events) {
		t.Errorf("%d due times, %v; want %d", len(due), reader.Err(), events)
	}
}

// checkStartOrder reads a capture in start order: the promises made to the recorder while it ran must have held.
func checkStartOrder(t *testing.T, file []byte) {
	t.Helper()
	ordered := capture.InStartOrder(capture.NewReader(bytes.NewReader(file), "run.rdt"))
	last := time.Duration(0)
	for ordered.Next() {
		place := ordered.Record().Place()
		if place < last {
			t.Errorf("a record of kind %d at %v after one at %v", ordered.Record().Kind, place, last)
		}
		last = place
	}
	if err := ordered.Err(); err != nil {
		t.Error(err)
	}
}

// backlog is how many events the run says it did not begin although they were due.
func backlog(t *testing.T, out *output) int {
	t.Helper()
	m := regexp.MustCompile(`; (\d+) due events not begun`).FindStringSubmatch(out.String())
	if m == nil {
		t.Fatalf("no backlog in:\n%s", out)
	}
	n, err := strconv.Atoi(m[1])
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// A server too slow for the rate makes latencies grow and events wait; it never ends the run.
func TestRateBeyondCapacity(t *testing.T) {
	r, _, out := newRunner(t, "oltp_read_write")
	prepare(t, r, out)
	r.Rate, r.Time, r.ReportInterval = 100000, 300*time.Millisecond, 0
	if err := r.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := backlog(t, out); n < 10000 {
		t.Errorf("a backlog of %d, want about 30000:\n%s", n, out)
	}
	if report := out.report(t); report.Max < 100*time.Millisecond {
		t.Errorf("longest latency %v, want it counted from the due time", report.Max)
	}
}

// failUpdates makes the server refuse the next n updates of sbtest1 with an error number; the count survives the
// rollback, as its table has no transactions.
func failUpdates(t *testing.T, s *mysqltest.Server, schema string, n, errno int) {
	t.Helper()
	s.Exec(t, "CREATE TABLE "+schema+".failures (n INT) ENGINE=MyISAM", fmt.Sprintf("INSERT INTO %s.failures VALUES (%d)", schema, n),
		fmt.Sprintf(`CREATE TRIGGER %s.fail BEFORE UPDATE ON %s.sbtest1 FOR EACH ROW BEGIN
			UPDATE %s.failures SET n=n-1;
			IF (SELECT n FROM %s.failures) >= 0 THEN SIGNAL SQLSTATE '45000' SET MYSQL_ERRNO=%d, MESSAGE_TEXT='on purpose'; END IF;
		END`, schema, schema, schema, schema, errno))
}

func TestIgnoredErrorsBeginTheEventAgain(t *testing.T) {
	r, s, out := newRunner(t, "oltp_read_write")
	prepare(t, r, out)
	failUpdates(t, s, schemaOf(r), 3, 1205)
	r.Events = 10
	before := s.Status(t, "Com_begin", "Com_commit")
	if err := r.Run(t.Context()); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	after := s.Status(t, "Com_begin", "Com_commit")
	report := out.report(t)
	if report.IgnoredErrors != 3 || report.Transactions != 10 || report.Events != 10 {
		t.Errorf("%d ignored errors, %d transactions, %d events; want 3, 10, 10", report.IgnoredErrors, report.Transactions, report.Events)
	}
	if begins, commits := after["Com_begin"]-before["Com_begin"], after["Com_commit"]-before["Com_commit"]; begins != 13 || commits != 10 {
		t.Errorf("%d begins and %d commits, want 13 and 10", begins, commits)
	}
	if report.Read != 13*14 || report.Total != report.Read+report.Write+report.Other {
		t.Errorf("%d reads of %d queries, want %d: what an event did before it began again counts", report.Read, report.Total, 13*14)
	}
	if !regexp.MustCompile(`(?m)^    index update +13 .* 3$`).MatchString(out.String()) {
		t.Errorf("13 index updates with 3 errors do not show in:\n%s", out)
	}
}

func TestOtherErrorsEndTheRun(t *testing.T) {
	r, s, out := newRunner(t, "oltp_read_write")
	prepare(t, r, out)
	failUpdates(t, s, schemaOf(r), 1000, 1644)
	r.Threads = 2
	err := r.Run(t.Context())
	var fatal *synth.Fatal
	if !errors.As(err, &fatal) || fatal.Status != 1 {
		t.Fatalf("run: %v, want a fatal error", err)
	}
	want := []string{
		"mysql_stmt_execute() returned error 1644 (on purpose) for query 'UPDATE sbtest1 SET k=k+1 WHERE id=?'",
		"`thread_run' function failed: oltp_read_write: SQL error, errno = 1644, state = '45000': on purpose",
	}
	if !slices.Equal(fatal.Lines, want) {
		t.Errorf("lines %q, want %q", fatal.Lines, want)
	}
	if strings.Contains(out.String(), "SQL statistics") {
		t.Errorf("a report after a fatal error:\n%s", out)
	}
}

func TestConnectFailures(t *testing.T) {
	r, s, out := newRunner(t, "oltp_read_write")
	r.Targets[0].Password = "wrong-on-purpose"
	err := r.Run(t.Context())
	if err == nil || !strings.Contains(err.Error(), "error 1045: Access denied") || !strings.Contains(err.Error(), "Thread initialization failed!") ||
		!strings.Contains(err.Error(), "socket '"+s.Socket+"', aborting...") || strings.Contains(err.Error()+out.String(), "wrong-on-purpose") {
		t.Errorf("wrong password: %v", err)
	}
	r.Targets[0].Password = mysqltest.Password
	err = r.Run(t.Context()) // no tables
	if err == nil || !strings.Contains(err.Error(), "mysql_stmt_prepare() failed; MySQL error: 1146") {
		t.Errorf("no tables: %v", err)
	}
	l, listenErr := net.Listen("tcp", "127.0.0.1:0")
	if listenErr != nil {
		t.Fatal(listenErr)
	}
	l.Close()
	r.Targets[0].Network, r.Targets[0].Address = "tcp", l.Addr().String()
	_, port, _ := net.SplitHostPort(l.Addr().String())
	err = r.Cleanup(t.Context())
	if err == nil || !strings.Contains(err.Error(), "host '127.0.0.1', port "+port+", aborting...; error 2002") ||
		!strings.Contains(err.Error(), "`cleanup' function failed: oltp_read_write: connection creation failed") {
		t.Errorf("nobody there: %v", err)
	}
}

// hang makes every statement on sbtest1 wait until the test ends.
func hang(t *testing.T, s *mysqltest.Server, schema string) {
	t.Helper()
	c, err := s.DB().Conn(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.ExecContext(context.Background(), "LOCK TABLES "+schema+".sbtest1 WRITE"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unlock(t, c) })
}

func unlock(t *testing.T, c *sql.Conn) {
	if _, err := c.ExecContext(context.Background(), "UNLOCK TABLES"); err != nil {
		t.Error(err)
	}
	c.Close()
}

// The time limit holds although the server does not answer; and what is under way shows in the capture.
func TestTimeHoldsWhenTheServerHangs(t *testing.T) {
	r, s, out := newRunner(t, "oltp_point_select")
	prepare(t, r, out)
	hang(t, s, schemaOf(r))
	var file bytes.Buffer
	recorder := capture.NewRecorder(&file, capture.Header{Producer: "synth", Clock: "monotonic"}, capture.RecorderOptions{})
	r.Sink, r.Threads, r.Text = recorder, 2, true // preparing would wait too
	r.Time, r.Grace = 200*time.Millisecond, 1500*time.Millisecond
	err := r.Run(t.Context())
	var fatal *synth.Fatal
	if !errors.As(err, &fatal) || fatal.Status != 2 {
		t.Errorf("run: %v, want status 2", err)
	}
	for _, want := range []string{"FATAL: The --max-time limit has expired, forcing shutdown...\n", "Number of unfinished transactions on forced shutdown: 2\n"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in:\n%s", want, out)
		}
	}
	if _, err := recorder.Close(0); err != nil {
		t.Fatal(err)
	}
	checkStartOrder(t, file.Bytes())
	begins, unanswered := 0, 0
	reader := capture.NewReader(bytes.NewReader(file.Bytes()), "run.rdt")
	for reader.Next() {
		switch record := reader.Record(); {
		case record.Kind == capture.KindBegin:
			begins++
		case record.Kind == capture.KindStatement && record.Statement.Flags.Has(capture.Unanswered|capture.Begun):
			unanswered++
			if record.Statement.TxnEnd != capture.TxnDisconnect {
				t.Errorf("the transaction of a statement without an answer ended as %d, want %d", record.Statement.TxnEnd, capture.TxnDisconnect)
			}
		}
	}
	if reader.Err() != nil || begins != 2 || unanswered != 2 {
		t.Errorf("%d begins, %d statements without an answer, %v; want 2 and 2", begins, unanswered, reader.Err())
	}
}

func TestInterruptEndsWithAReport(t *testing.T) {
	r, _, out := newRunner(t, "oltp_point_select")
	prepare(t, r, out)
	ctx, cancel := context.WithCancel(t.Context())
	done := out.afterStart(cancel)
	err := r.Run(ctx)
	<-done
	var fatal *synth.Fatal
	if !errors.As(err, &fatal) || fatal.Status != 1 {
		t.Errorf("run: %v, want status 1", err)
	}
	if report := out.report(t); report.Events == 0 || !strings.Contains(out.String(), "Threads fairness:") {
		t.Errorf("no full report:\n%s", out)
	}
}

func TestInterruptedPrepare(t *testing.T) {
	r, _, _ := newRunner(t, "oltp_read_write")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := r.Prepare(ctx); err == nil || err.Error() != "interrupted" {
		t.Errorf("prepare: %v, want interrupted", err)
	}
}

func TestLostConnections(t *testing.T) {
	r, s, out := newRunner(t, "oltp_read_only")
	r.Targets[0].User, r.Targets[0].Password = "killed", "k"
	s.CreateUser(t, "killed", "k")
	prepare(t, r, out)
	r.Threads, r.Time = 2, 2*time.Second
	kill := func() { s.Exec(t, "KILL USER killed") }

	r.IgnoreErrors = synth.ErrorSet{Numbers: []uint16{2013}}
	done := out.afterStart(kill)
	if err := r.Run(t.Context()); err != nil {
		t.Errorf("run: %v", err)
	}
	<-done
	if report := out.report(t); report.Reconnects != 2 || report.IgnoredErrors != 0 || report.Events == 0 {
		t.Errorf("%d reconnects, %d ignored errors, %d events; want 2, 0, some", report.Reconnects, report.IgnoredErrors, report.Events)
	}

	r.IgnoreErrors, r.Time = synth.ErrorSet{}, time.Minute
	out.Reset()
	done = out.afterStart(kill)
	if err := r.Run(t.Context()); err == nil || !strings.Contains(err.Error(), "returned error 2013 (Lost connection") {
		t.Errorf("run: %v, want the lost connection", err)
	}
	<-done
}
