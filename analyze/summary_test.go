package analyze_test

import (
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"redrive/analyze"
	"redrive/capture"
	"redrive/internal/wire"
)

func TestTransactionTypes(t *testing.T) {
	const open = capture.TxnOpen
	tests := []struct {
		name string
		say  func(*talker)
		want string // name ×count, in the order of the report
		ends analyze.Ends
	}{
		{
			"folded",
			func(c *talker) {
				c.say("BEGIN", us, open)
				for i := range 10 {
					c.say(fmt.Sprintf("SELECT c FROM sbtest%d WHERE id=%d", i%3+1, i), us, open)
				}
				c.say("SELECT c FROM sbtest1 WHERE id BETWEEN 1 AND 100", us, open)
				c.say("COMMIT", us, capture.TxnCommit)
			},
			"begin, point select ×10, simple range, commit ×1",
			analyze.Ends{Commit: 1},
		},
		{
			"the same whatever the values",
			func(c *talker) {
				for i := range 3 {
					c.say("START TRANSACTION", us, open)
					c.say(fmt.Sprintf("UPDATE sbtest1 SET k=k+1 WHERE id=%d", i), us, open)
					c.say("ROLLBACK", us, capture.TxnRollback)
				}
			},
			"begin, index update, rollback ×3",
			analyze.Ends{Rollback: 3},
		},
		{
			"autocommit",
			func(c *talker) { c.say("SELECT c FROM sbtest1 WHERE id=5", us, capture.TxnAuto) },
			"point select (autocommit) ×1",
			analyze.Ends{Autocommit: 1},
		},
		{
			"rolled back by the server",
			func(c *talker) {
				c.say("BEGIN", us, open)
				c.say("DELETE FROM sbtest1 WHERE id=1", us, capture.TxnError).Outcome.Errno = 1213
			},
			"begin, delete (rolled back by the server) ×1",
			analyze.Ends{Error: 1},
		},
		{
			"by DDL",
			func(c *talker) {
				c.say("BEGIN", us, open)
				c.say("CREATE TABLE t (a INT)", us, capture.TxnImplicit)
			},
			"begin, create table (implicit commit) ×1",
			analyze.Ends{Implicit: 1},
		},
		{
			"by the next begin",
			func(c *talker) {
				c.say("BEGIN", us, open)
				c.place = 0
				c.say("BEGIN", us, open)
				c.say("COMMIT", us, capture.TxnCommit)
			},
			"begin, commit ×1; begin (implicit commit) ×1",
			analyze.Ends{Implicit: 1, Commit: 1},
		},
		{
			"disconnected",
			func(c *talker) {
				c.say("BEGIN", us, open)
				c.end(capture.SessionEnd{Session: c.session, Reason: capture.EndClient, Commands: 1})
			},
			"begin (disconnected) ×1",
			analyze.Ends{Disconnect: 1},
		},
		{
			"open when recording stopped",
			func(c *talker) {
				c.say("BEGIN", us, open)
				c.end(capture.SessionEnd{Session: c.session, Reason: capture.EndStopped, Commands: 1})
			},
			"",
			analyze.Ends{Open: 1},
		},
		{
			"open at the end of the file",
			func(c *talker) { c.say("BEGIN", us, open) },
			"",
			analyze.Ends{Open: 1},
		},
		{
			"a member was shed",
			func(c *talker) {
				c.say("BEGIN", us, open)
				c.number++
				c.place++
				c.say("COMMIT", us, capture.TxnCommit)
			},
			"",
			analyze.Ends{Incomplete: 1},
		},
		{
			"the first was shed",
			func(c *talker) {
				c.txn, c.place, c.number = 1, 1, 1
				c.say("COMMIT", us, capture.TxnCommit)
			},
			"",
			analyze.Ends{Incomplete: 1},
		},
		{
			"the last was shed",
			func(c *talker) {
				c.say("BEGIN", us, open)
				c.number++
				c.place = 0
				c.say("SELECT 1", us, capture.TxnAuto)
			},
			"select (autocommit) ×1",
			analyze.Ends{Incomplete: 1, Autocommit: 1},
		},
		{
			"the last was shed, then the session ended",
			func(c *talker) {
				c.say("BEGIN", us, open)
				c.end(capture.SessionEnd{Session: c.session, Reason: capture.EndQuit, Commands: 3})
			},
			"",
			analyze.Ends{Incomplete: 1},
		},
		{
			"a ping between members",
			func(c *talker) {
				c.say("BEGIN", us, open)
				c.number++
				c.add(capture.Statement{Session: c.session, Number: c.number, Command: wire.ComPing})
				c.say("COMMIT", us, capture.TxnCommit)
			},
			"begin, commit ×1",
			analyze.Ends{Commit: 1},
		},
	}
	for _, test := range tests {
		r := newRun()
		test.say(r.talker(1))
		report := r.report(t, analyze.Options{})
		var got []string
		for _, x := range report.Transactions {
			got = append(got, fmt.Sprintf("%s ×%d", x.Name, x.Count))
		}
		if got := strings.Join(got, "; "); got != test.want {
			t.Errorf("%s: transaction types %q, want %q", test.name, got, test.want)
		}
		if report.Headline.Ends != test.ends {
			t.Errorf("%s: ends %+v, want %+v", test.name, report.Headline.Ends, test.ends)
		}
	}
}

func TestLongTransactionsShareAType(t *testing.T) {
	r := newRun()
	c := r.talker(1)
	for _, pairs := range []int{100, 150} {
		for range pairs {
			c.say("DELETE FROM sbtest1 WHERE id=1", us, capture.TxnOpen)
			c.say("SELECT 1", us, capture.TxnOpen)
		}
		c.say("COMMIT", us, capture.TxnCommit)
	}
	x := r.report(t, analyze.Options{}).Transactions
	if len(x) != 1 || x[0].Count != 2 || !strings.HasSuffix(x[0].Name, "delete, select, …") {
		t.Errorf("types %+v, want one of 2 transactions that ends in …", x)
	}
}

// A statement that the proxy ended by an error of its own is unanswered: the server refused nothing.
func TestInterrupted(t *testing.T) {
	r := newRun()
	w := r.talker(1)
	refused := w.say("SELECT c FROM sbtest1 WHERE id=5", ms, capture.TxnAuto)
	refused.Outcome.Errno = 1053
	interrupted := w.say("SELECT c FROM sbtest1 WHERE id=5", ms, capture.TxnDisconnect)
	interrupted.Flags, interrupted.Outcome.Errno = capture.Cut, 1053
	ping := w.say("", ms, capture.TxnOpen)
	ping.Command, ping.Txn, ping.Place = wire.ComPing, 0, 0
	ping.Flags, ping.Outcome.Errno = capture.Cut, 1053
	report := r.report(t, analyze.Options{})
	h, g := report.Headline, report.Statements[0]
	if h.Errors != 1 || h.Unanswered != 1 || g.Errors != 1 || g.Unanswered != 1 {
		t.Errorf("errors %d, unanswered %d, in the group %d, %d; want 1 of each", h.Errors, h.Unanswered, g.Errors, g.Unanswered)
	}
	if c := report.Commands; len(c) != 1 || c[0].Count != 1 || c[0].Errors != 0 {
		t.Errorf("commands %+v, want one without an error", c)
	}
	if e := report.Errors; len(e) != 1 || e[0].Count != 1 {
		t.Errorf("errors %+v, want the server's", e)
	}
	errors := uint64(0)
	for _, x := range report.Transactions {
		errors += x.Errors
	}
	if errors != 1 {
		t.Errorf("%d errors in transactions, want the server's", errors)
	}
}

// A statement without a reply is counted and not timed, and no percentile is made up for it.
func TestNoReplyNoPercentile(t *testing.T) {
	tests := []struct {
		name       string
		flags      capture.Flags
		timed      bool
		unanswered uint64
		warning    string
	}{
		{"answered", 0, true, 0, ""},
		{"unanswered", capture.Unanswered, false, 1, "1 statement whose connection was lost"},
		{"cut", capture.Cut, false, 1, "1 statement whose connection was lost"},
		{"never sent", capture.NoOutcome, false, 0, "1 statement never sent"},
		{"not understood", capture.Unparsed, false, 0, "1 statement with a reply"},
	}
	for _, test := range tests {
		r := newRun()
		r.talker(1).say("SELECT c FROM sbtest1 WHERE id=5", ms, capture.TxnAuto).Flags = test.flags
		report := r.report(t, analyze.Options{})
		g := report.Statements[0]
		if g.Count != 1 || (g.Service != nil) != test.timed || g.Unanswered != test.unanswered {
			t.Errorf("%s: count %d, service %v, unanswered %d, want 1, timed %t, %d", test.name, g.Count, g.Service, g.Unanswered, test.timed, test.unanswered)
		}
		if x := report.Transactions[0]; x.Count != 1 || (x.Duration != nil) != test.timed {
			t.Errorf("%s: transactions %d, duration %v, want 1, timed %t", test.name, x.Count, x.Duration, test.timed)
		}
		if got := strings.Join(report.Warnings, "\n"); !strings.HasPrefix(got, test.warning) || (got == "") != (test.warning == "") {
			t.Errorf("%s: warnings %q, want %q…", test.name, got, test.warning)
		}
	}
}

func TestWarnings(t *testing.T) {
	tests := []struct {
		name string
		make func(*run)
		want []string
	}{
		{"clean", func(*run) {}, nil},
		{"no end", func(r *run) { r.ledger = nil }, []string{"the capture has no end: its last part is missing"}},
		{
			"cut", func(r *run) { r.ledger, r.err = nil, errors.New("offset 7: unexpected EOF") },
			[]string{"reading ended early, figures cover what came before: offset 7: unexpected EOF"},
		},
		{
			"gaps of one reason", func(r *run) {
				r.gap(capture.Gap{From: 2 * time.Second, To: 3 * time.Second, Statements: 5, Reason: "queue full"})
				r.gap(capture.Gap{From: 5 * time.Second, To: 6500 * ms, Statements: 1000, Reason: "queue full"})
				r.gap(capture.Gap{From: 7 * time.Second, To: 8 * time.Second, Sessions: 1, Reason: "disk full"})
			},
			[]string{"1,005 statements shed between 2.00s and 6.50s (queue full)", "1 session record shed between 7.00s and 8.00s (disk full)"},
		},
		{
			"gaps in transactions", func(r *run) {
				r.gap(capture.Gap{From: 2 * time.Second, To: 3 * time.Second, Statements: 5, Cut: 2, Reason: "queue full"})
				r.gap(capture.Gap{From: 5 * time.Second, To: 6500 * ms, Statements: 4, Cut: 1, Reason: "queue full"})
			},
			[]string{"9 statements shed, and with them the rest of 3 transactions, between 2.00s and 6.50s (queue full)"},
		},
		{
			"ledger", func(r *run) { *r.ledger = capture.Ledger{Forwarded: 9, Stored: 3, Shed: 4, Unfinished: 2, Opaque: 1} },
			[]string{
				"4 statements shed, of which the capture's gap records tell 0",
				"2 statements unfinished when the capture ended: not in the figures",
				"1 session relayed without being understood: what they did is not in the figures",
			},
		},
		{
			"begun and not ended, without a ledger", func(r *run) {
				r.ledger = nil
				r.start(1)
				r.records = append(r.records,
					&capture.Record{Kind: capture.KindBegin, Statement: capture.Statement{Session: 1, Number: 1}},
					&capture.Record{Kind: capture.KindBegin, Statement: capture.Statement{Session: 1, Number: 2}})
				r.add(capture.Statement{Session: 1, Number: 1, Flags: capture.Begun, Done: ms, Complete: us})
			},
			[]string{
				"the capture has no end: its last part is missing",
				"1 statement unfinished when the capture ended: not in the figures",
			},
		},
		{
			"sessions", func(r *run) {
				r.end(capture.SessionEnd{Session: 1, Reason: capture.EndRejected})
				r.add(capture.Statement{Session: 2, Number: 8, Done: ms, Complete: us})
			},
			[]string{"1 login failed", "1 session without a start in the capture"},
		},
	}
	for _, test := range tests {
		r := newRun()
		test.make(r)
		if got := r.report(t, analyze.Options{}).Warnings; !slices.Equal(got, test.want) {
			t.Errorf("%s: warnings\n got %q\nwant %q", test.name, got, test.want)
		}
	}
}

func TestReadWithoutHeader(t *testing.T) {
	report, err := analyze.Read(headless{newRun()}, "x", analyze.Options{})
	if report != nil || !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("Read without a header: %v, %v, want no report and unexpected EOF", report, err)
	}
}

type headless struct{ *run }

func (headless) Header() (*capture.Header, error) { return nil, io.ErrUnexpectedEOF }

// Service times of pipelined statements count from the previous reply: until then the server was busy with that.
func TestServiceCountsFromThePreviousReply(t *testing.T) {
	r := newRun()
	r.start(1)
	r.add(capture.Statement{Session: 1, Number: 1, Complete: 1 * ms, Done: 10 * ms})
	r.add(capture.Statement{Session: 1, Number: 2, Complete: 2 * ms, Done: 13 * ms})
	r.add(capture.Statement{Session: 2, Number: 1, Complete: 2 * ms, Done: 14 * ms})
	times := r.report(t, analyze.Options{}).Headline.Service
	if times.Sum != (9+3+12)*ms || times.P50 != 9*ms || times.Max != 12*ms {
		t.Errorf("service times sum %v, p50 %v, max %v, want 24ms 9ms 12ms", times.Sum, times.P50, times.Max)
	}
}

// A replay was due at 1 ms and 2 ms. The first was sent 0.5 ms late by our fault and took 4 ms; the second had to wait
// for it, from 2 ms to 5.5 ms.
func TestClocksOfPacedRuns(t *testing.T) {
	r := newRun()
	r.header.Producer = "replay"
	r.start(1)
	r.add(capture.Statement{Session: 1, Number: 1, Intended: 1 * ms, Sent: 1500 * us, Done: 5500 * us})
	r.add(capture.Statement{Session: 1, Number: 2, Intended: 2 * ms, Sent: 5500 * us, Done: 6 * ms})
	h := r.report(t, analyze.Options{}).Headline
	for _, test := range []struct {
		name      string
		times     *analyze.Times
		mean, max time.Duration
	}{
		{"service", h.Service, 2250 * us, 4 * ms},
		{"lag", h.Lag, 250 * us, 500 * us},
		{"wait", h.Wait, 1750 * us, 3500 * us},
		{"response", h.Response, 4250 * us, 4500 * us},
	} {
		if test.times == nil || test.times.Mean != test.mean || test.times.Max != test.max {
			t.Errorf("%s = %+v, want mean %v max %v", test.name, test.times, test.mean, test.max)
		}
	}
	if !strings.Contains(text(t, r.report(t, analyze.Options{})), "\nlag ") {
		t.Error("the text has no line for lag")
	}
}

func TestPercentilesAgainstSort(t *testing.T) {
	r := newRun()
	c := r.talker(1)
	random := rand.New(rand.NewPCG(1, 2))
	var all []time.Duration
	for range 3000 {
		d := time.Duration(math.Exp(random.NormFloat64()) * float64(ms))
		all = append(all, d)
		c.say("SELECT 1", d, capture.TxnAuto)
	}
	slices.Sort(all)
	g := r.report(t, analyze.Options{}).Statements[0].Service
	for _, test := range []struct {
		name      string
		got, want time.Duration
	}{{"p50", g.P50, all[1499]}, {"p95", g.P95, all[2849]}, {"p99", g.P99, all[2969]}, {"max", g.Max, all[2999]}} {
		if math.Abs(float64(test.got-test.want)) > 0.001*float64(test.want) {
			t.Errorf("%s = %v, want %v within 0.1 %%", test.name, test.got, test.want)
		}
	}
}

func TestGroupByDigest(t *testing.T) {
	r := newRun()
	c := r.talker(1)
	c.say("SELECT a FROM t WHERE b IN (1,2,3)", ms, capture.TxnAuto)
	c.say("select a /* c */ from `t` where b in (7)", ms, capture.TxnAuto)
	c.say("SELECT 'secret'", ms, capture.TxnAuto)
	s := c.say("", ms, capture.TxnAuto)
	s.Flags, s.Command = capture.TextUnknown, wire.ComStmtExecute
	c.say("-- nothing", ms, capture.TxnAuto)
	s = c.say("set password = ?", ms, capture.TxnAuto)
	s.Flags = capture.Masked
	report := r.report(t, analyze.Options{ByDigest: true})
	var got []string
	for _, g := range report.Statements {
		got = append(got, fmt.Sprintf("%s ×%d", g.Name, g.Count))
		if (g.Digest == "") != (g.Name == "empty" || g.Name == "prepared before the capture") || g.Digest != "" && len(g.Digest) != 16 {
			t.Errorf("%s has the digest %q", g.Name, g.Digest)
		}
	}
	want := []string{
		"select a from t where b in (?+) ×2", "empty ×1", "prepared before the capture ×1", "select ? ×1", "set password = ? ×1",
	}
	if !slices.Equal(got, want) {
		t.Errorf("groups\n got %q\nwant %q", got, want)
	}
	if out := text(t, report); strings.Contains(out, "secret") {
		t.Error("a literal is in the report")
	}
}

// With NO_BACKSLASH_ESCAPES the literal ends at the second quote, and what follows is part of the statement.
func TestModeFollowsTheSession(t *testing.T) {
	r := newRun()
	c := r.talker(1)
	s := c.say("SET sql_mode = NO_BACKSLASH_ESCAPES", ms, capture.TxnAuto)
	s.Outcome.Status, s.Outcome.HasStatus = wire.StatusNoBackslashEscapes, true
	c.say(`SELECT '\', a`, ms, capture.TxnAuto)
	for _, g := range r.report(t, analyze.Options{ByDigest: true}).Statements {
		if g.Name == "select ?, a" {
			return
		}
	}
	t.Errorf("no group %q", "select ?, a")
}

func TestTopAndOthersAddUp(t *testing.T) {
	r := newRun()
	c := r.talker(1)
	for i, verb := range []string{"DELETE FROM a", "UPDATE a SET b=1", "SELECT 1", "REPLACE a VALUES (1)"} {
		s := c.say(verb, time.Duration(4-i)*ms, capture.TxnAuto)
		s.Outcome.Affected = uint64(1 + i)
	}
	report := r.report(t, analyze.Options{Top: 2})
	names := []string{}
	shares := 0.0
	for _, g := range report.Statements {
		names = append(names, g.Name)
		shares += g.Share
	}
	if want := []string{"delete", "update", "(2 others)"}; !slices.Equal(names, want) || math.Abs(shares-1) > 1e-9 {
		t.Errorf("groups %q with shares of %v, want %q and 1", names, shares, want)
	}
	if rest := report.Statements[2]; rest.Count != 2 || rest.Affected != 7 || rest.Service.Sum != 3*ms {
		t.Errorf("others %+v, want count 2, affected 7, 3ms", rest)
	}
	if x := report.Transactions; len(x) != 3 || x[2].Name != "(2 others)" || x[2].Count != 2 {
		t.Errorf("transactions %+v, want two and 2 others", x)
	}
}

// What keeps statements from running at all, such as a PREPARE without its table, stands among the errors too.
func TestErrorsByCode(t *testing.T) {
	r := newRun()
	c := r.talker(1)
	for i, errno := range []uint16{1213, 1062, 1213, 1213} {
		text := []string{"DELETE FROM sbtest1 WHERE id=1", "SELECT 1"}[i/3]
		c.say(text, ms, capture.TxnAuto).Outcome.Errno = errno
	}
	s := c.say("SELECT 1 FROM gone", ms, capture.TxnAuto)
	s.Command, s.Outcome.Errno = wire.ComStmtPrepare, 1146
	copy(s.Outcome.SQLState[:], "42S02")
	report := r.report(t, analyze.Options{})
	want := []analyze.Error{
		{Errno: 1213, Count: 3, In: []analyze.ErrorCount{{Type: "delete", Count: 2}, {Type: "select", Count: 1}}},
		{Errno: 1062, Count: 1, In: []analyze.ErrorCount{{Type: "delete", Count: 1}}},
		{Errno: 1146, SQLState: "42S02", Count: 1, In: []analyze.ErrorCount{{Type: "COM_STMT_PREPARE", Count: 1}}},
	}
	if !reflect.DeepEqual(report.Errors, want) {
		t.Errorf("errors\n got %+v\nwant %+v", report.Errors, want)
	}
	if n := report.Headline.Errors; n != 4 {
		t.Errorf("%d statements failed, want 4", n)
	}
}

// The last statement of a session may be recorded after its end.
func TestStatementAfterItsSessionsEnd(t *testing.T) {
	r := newRun()
	c := r.talker(1)
	r.end(capture.SessionEnd{Session: 1, Reason: capture.EndServer, Commands: 1})
	s := c.say("SELECT SLEEP(10)", ms, capture.TxnDisconnect)
	s.Flags = capture.Unanswered
	if h := r.report(t, analyze.Options{}).Headline; h.Sessions != 1 || h.Statements != 1 || h.Unanswered != 1 {
		t.Errorf("sessions %d, statements %d, unanswered %d, want 1 of each", h.Sessions, h.Statements, h.Unanswered)
	}
}

func BenchmarkAddPrepared(b *testing.B) {
	r := newRun()
	c := r.talker(1)
	c.say("BEGIN", us, capture.TxnOpen)
	for i := range 10 {
		s := c.say(fmt.Sprintf("SELECT c FROM sbtest%d WHERE id=?", i+1), us, capture.TxnOpen)
		s.Command = wire.ComStmtExecute
	}
	c.say("COMMIT", us, capture.TxnCommit)
	s := analyze.NewSummary(analyze.Options{})
	b.ReportAllocs()
	n := 0
	for b.Loop() {
		s.Add(r.records[1+n%(len(r.records)-1)])
		n++
	}
	b.ReportMetric(float64(n)/b.Elapsed().Seconds(), "statements/s")
}
