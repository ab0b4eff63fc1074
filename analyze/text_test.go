package analyze_test

import (
	"bytes"
	"encoding/json"
	"os"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"redrive/analyze"
	"redrive/capture"
	"redrive/internal/wire"
)

// byHand is a run small enough to work out with a pencil. Session 1, from 1 ms on, 1 ms between statements:
//
//	BEGIN 1 ms, two point selects of 2 ms and 4 ms, an index update of 8 ms, COMMIT 3 ms
//	(started at 1 ms, done at 23 ms: 22 ms), a ping, and a point select of its own of 4 ms, done at 28 ms.
//
// Session 2, from 1 ms on: BEGIN 2 ms and an index update of 10 ms that ends in a deadlock, done at 14 ms.
func byHand() *run {
	r := newRun()
	c := r.talker(1)
	c.say("BEGIN", 1*ms, capture.TxnOpen)
	selected(c.say("SELECT c FROM sbtest1 WHERE id=1", 2*ms, capture.TxnOpen))
	selected(c.say("SELECT c FROM sbtest2 WHERE id=2", 4*ms, capture.TxnOpen))
	c.say("UPDATE sbtest1 SET k=k+1 WHERE id=3", 8*ms, capture.TxnOpen).Outcome.Affected = 1
	c.say("COMMIT", 3*ms, capture.TxnCommit)
	c.number++
	c.add(capture.Statement{Session: 1, Number: c.number, Command: wire.ComPing, Done: c.now})
	selected(c.say("SELECT c FROM sbtest1 WHERE id=4", 4*ms, capture.TxnAuto))
	c = r.talker(2)
	c.say("BEGIN", 2*ms, capture.TxnOpen)
	s := c.say("UPDATE sbtest1 SET k=k+1 WHERE id=5", 10*ms, capture.TxnError)
	s.Outcome.Errno = 1213
	copy(s.Outcome.SQLState[:], "40001")
	return r
}

func selected(s *capture.Statement) { s.Outcome.ResultSets, s.Outcome.Rows = 1, 1 }

// The figures: 8 statements over 1 ms to 28 ms, so 27 ms and 8/0.027 = 296 QPS; 3 transactions, 111 TPS; service times
// 1 2 2 3 4 4 8 10 ms, 34 in all, so 34/27 = 1.26 at a time and a mean of 4.25 ms; p50 is the 4th, p95 the 8th.
// Transactions took 22, 4 and 13 ms, 39 in all.
const byHandText = `run.rdt, proxy → db1:3306, 2026-03-04 05:06:07 +00:00
Warning: 7 statements shed between 2.00s and 3.00s (queue full)

duration      27.0ms          sessions     2
statements         8               QPS   296
transactions       3               TPS   111
errors             1  mean concurrency  1.26
transactions ended (TPS counts all that did): commit 1, autocommit 1, rolled back by the server 1

all statements  count    mean     p50     p95     p99     max
service time        8  4.25ms  3.00ms  10.0ms  10.0ms  10.0ms

Statements by type. Service time: from the request's last byte to the reply's.
type          count  share    mean     p50     p95     p99     max  rows  affected  errors
index update      2  52.9%  9.00ms  8.00ms  10.0ms  10.0ms  10.0ms     0         1       1
point select      3  29.4%  3.33ms  4.00ms  4.00ms  4.00ms  4.00ms     3         0       0
begin             2   8.8%  1.50ms  1.00ms  2.00ms  2.00ms  2.00ms     0         0       0
commit            1   8.8%  3.00ms  3.00ms  3.00ms  3.00ms  3.00ms     0         0       0

Transactions by type. Duration: from the first statement's start to the last reply's end.
statements  count  share    mean     p50     p95     p99     max  rows  affected  errors
5               1  56.4%  22.0ms  22.0ms  22.0ms  22.0ms  22.0ms     2         1       0
    begin, point select ×2, index update, commit
2               1  33.3%  13.0ms  13.0ms  13.0ms  13.0ms  13.0ms     0         0       1
    begin, index update (rolled back by the server)
1               1  10.3%  4.00ms  4.00ms  4.00ms  4.00ms  4.00ms     1         0       0
    point select (autocommit)

Errors
code  sqlstate  count
1213     40001      1
    deadlock; in index update 1

Commands that run no SQL
command   count  errors
COM_PING      1       0

As sysbench counts: by result, not by text
read  write  other  total  per s  transactions  per s  ignored errors  reconnects
3         1      3      7    259             1   37.0               1           0
`

func TestTextByHand(t *testing.T) {
	r := byHand()
	r.gap(capture.Gap{From: 2 * time.Second, To: 3 * time.Second, Statements: 7, Reason: "queue full"})
	if got := text(t, r.report(t, analyze.Options{})); got != byHandText {
		t.Errorf("report\n%s\nwant\n%s", got, byHandText)
	}
}

func TestEmptyCapture(t *testing.T) {
	got := text(t, newRun().report(t, analyze.Options{}))
	if !strings.Contains(got, "No statements.") || !strings.Contains(got, "QPS  n/a") {
		t.Errorf("report of an empty capture:\n%s", got)
	}
}

// Long digest texts are wrapped, and cut in the end, so that no line is wider than the tables.
func TestLinesFit(t *testing.T) {
	r := newRun()
	c := r.talker(1)
	c.say("SELECT "+strings.Repeat("a_name_of_some_length, ", 100)+"b FROM t", 123*ms, capture.TxnAuto)
	c.say("SELECT "+strings.Repeat("ä", 1000), 12*ms, capture.TxnAuto)
	out := text(t, r.report(t, analyze.Options{ByDigest: true}))
	for line := range strings.Lines(out) {
		if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > 100 {
			t.Errorf("a line of %d characters: %s", n, line)
		}
	}
	if n := strings.Count(out, " …\n"); n != 2 {
		t.Errorf("%d texts end in …, want 2:\n%s", n, out)
	}
}

func TestDurations(t *testing.T) {
	for _, test := range []struct {
		d    time.Duration
		want string
	}{
		{0, "0ns"},
		{999, "999ns"},
		{1000, "1.00µs"},
		{9994, "9.99µs"},
		{9996, "10.0µs"},
		{99_960, "100µs"},
		{999_400, "999µs"},
		{999_600, "1.00ms"},
		{12_345_678, "12.3ms"},
		{999_600_000, "1.00s"},
		{75 * time.Second, "75.0s"},
		{3 * time.Hour, "10800s"},
	} {
		r := newRun()
		r.talker(1).say("SELECT 1", test.d, capture.TxnAuto)
		out := text(t, r.report(t, analyze.Options{}))
		_, rest, _ := strings.Cut(out, "service time")
		if got := strings.Fields(rest)[1]; got != test.want {
			t.Errorf("a mean of %d ns is printed as %s, want %s", test.d, got, test.want)
		}
	}
}

// Run A takes 3 ms, from the first statement at 1 ms to the last reply at 4 ms; run B takes 15 ms. Statements of equal
// times stand in the order of their names.
const sideBySideText = `Side by side. Statements by service time, transactions by duration; ratios to A. No verdict: repeat runs for that.

run         QPS   TPS
A  run.rdt  667   333
B  run.rdt  267  66.7

type            count A  count B  mean A  mean B    B/A   p95 A   p95 B    B/A
all statements        2        4  1.00ms  3.00ms  ×3.00  1.00ms  4.00ms  ×4.00
begin                 1        0  1.00ms       -      -  1.00ms       -      -
point select          1        2  1.00ms  4.00ms  ×4.00  1.00ms  4.00ms  ×4.00
delete                0        2       -  2.00ms      -       -  2.00ms      -
transactions          1        1  3.00ms  15.0ms  ×5.00  3.00ms  15.0ms  ×5.00
`

func twoRuns(t *testing.T) []*analyze.Report {
	a, b := newRun(), newRun()
	c := a.talker(1)
	c.say("SELECT c FROM sbtest1 WHERE id=1", ms, capture.TxnOpen)
	c.say("BEGIN", ms, capture.TxnCommit)
	c = b.talker(1)
	c.say("SELECT c FROM sbtest1 WHERE id=1", 4*ms, capture.TxnOpen)
	c.say("SELECT c FROM sbtest1 WHERE id=1", 4*ms, capture.TxnOpen)
	c.say("DELETE FROM t", 2*ms, capture.TxnOpen)
	c.say("DELETE FROM t", 2*ms, capture.TxnCommit)
	return []*analyze.Report{a.report(t, analyze.Options{}), b.report(t, analyze.Options{})}
}

func TestSideBySide(t *testing.T) {
	var b strings.Builder
	if err := analyze.NewSideBySide(twoRuns(t)).WriteText(&b); err != nil {
		t.Fatal(err)
	}
	if b.String() != sideBySideText {
		t.Errorf("side by side\n%s\nwant\n%s", b.String(), sideBySideText)
	}
}

// Many runs take several tables, each against the first run, rather than lines nobody can read.
func TestSideBySideOfManyRuns(t *testing.T) {
	two := twoRuns(t)
	reports := []*analyze.Report{two[0], two[1], two[1], two[1], two[1], two[1]}
	var b strings.Builder
	if err := analyze.NewSideBySide(reports).WriteText(&b); err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(b.String()) {
		if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > 100 && !strings.HasPrefix(line, "Side") {
			t.Errorf("a line of %d characters: %s", n, line)
		}
	}
	for _, run := range []string{"B", "C", "D", "E", "F"} {
		if n := strings.Count(b.String(), " "+run+"/A"); n != 2 {
			t.Errorf("%d columns of ratios for run %s, want 2, of mean and p95:\n%s", n, run, b.String())
		}
	}
}

// Every field of the JSON is described in docs/analyze.md, and lists are lists even when empty.
func TestJSONIsDocumented(t *testing.T) {
	doc, err := os.ReadFile("../docs/analyze.md")
	if err != nil {
		t.Fatal(err)
	}
	r := byHand()
	r.gap(capture.Gap{Statements: 1, Reason: "queue full"})
	digests := r.report(t, analyze.Options{ByDigest: true})
	for _, reports := range [][]*analyze.Report{{newRun().report(t, analyze.Options{})}, append(twoRuns(t), digests)} {
		var b bytes.Buffer
		if err := analyze.WriteJSON(&b, reports); err != nil {
			t.Fatal(err)
		}
		var v any
		if err := json.Unmarshal(b.Bytes(), &v); err != nil {
			t.Fatal(err)
		}
		eachField(v, func(name string, value any) {
			if !bytes.Contains(doc, []byte("`"+name+"`")) {
				t.Errorf("docs/analyze.md does not describe `%s`", name)
			}
			switch name {
			case "warnings", "statements", "transactions", "commands", "errors", "gaps":
				if value == nil && len(reports) == 1 && name != "transactions" {
					t.Errorf("%s is null, want a list", name)
				}
			}
		})
	}
}

func eachField(v any, f func(string, any)) {
	switch v := v.(type) {
	case map[string]any:
		for name, value := range v {
			f(name, value)
			eachField(value, f)
		}
	case []any:
		for _, value := range v {
			eachField(value, f)
		}
	}
}

func TestJSONByHand(t *testing.T) {
	var b bytes.Buffer
	if err := analyze.WriteJSON(&b, []*analyze.Report{byHand().report(t, analyze.Options{})}); err != nil {
		t.Fatal(err)
	}
	var got struct {
		Schema int
		Runs   []struct {
			Headline struct {
				Duration int64 `json:"duration_ns"`
				QPS      float64
			}
			Statements []struct {
				Name    string
				Service struct {
					Mean int64 `json:"mean_ns"`
				}
			}
			Sysbench struct{ Read, Transactions int }
		}
	}
	if err := json.Unmarshal(b.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	run := got.Runs[0]
	if got.Schema != 1 || run.Headline.Duration != 27_000_000 || run.Headline.QPS != 296.2963 {
		t.Errorf("schema %d, duration %d, QPS %v, want 1 27000000 296.2963", got.Schema, run.Headline.Duration, run.Headline.QPS)
	}
	if s := run.Statements[0]; s.Name != "index update" || s.Service.Mean != 9_000_000 {
		t.Errorf("first statement %+v, want index update with a mean of 9000000", s)
	}
	if run.Sysbench.Read != 3 || run.Sysbench.Transactions != 1 {
		t.Errorf("sysbench %+v, want 3 reads and 1 transaction", run.Sysbench)
	}
}
