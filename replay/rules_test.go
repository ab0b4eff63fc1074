package replay_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"

	"redrive/capture"
	"redrive/internal/wire"
)

func TestNeverReplayed(t *testing.T) {
	query := func(text string) capture.Statement {
		return capture.Statement{Command: wire.ComQuery, Text: []byte(text)}
	}
	flagged := func(f capture.Flags) capture.Statement {
		return capture.Statement{Command: wire.ComQuery, Text: []byte("select 1"), Flags: f}
	}
	tests := []struct {
		s    capture.Statement
		sent bool
	}{
		{query("select 1"), true},
		{query("insert into t values ('; kill 5')"), true},
		{query("set @kill = 1"), true},
		{query("show status"), true},
		{query(""), true},
		{query("KILL 5"), false},
		{query("/* now */ kill query 5"), false},
		{query("/*!50000 KILL 5 */"), false},
		{query("select 1; kill 5"), false},
		{query("begin;\nKILL CONNECTION 5;"), false},
		{query("BEGIN NOT ATOMIC IF 1 THEN KILL 5; END IF; END"), false},
		{query("SET STATEMENT max_statement_time=1 FOR KILL 5"), false},
		{query("SET STATEMENT max_statement_time=1 FOR SET PASSWORD = 'x'"), false},
		{query("shutdown"), false},
		{query("SET PASSWORD FOR u = 'x'"), false},
		{query("set\tpassword = 'x'"), false},
		{flagged(capture.Truncated), false},
		{flagged(capture.Masked), false},
		{flagged(capture.TextUnknown), false},
		{flagged(capture.NoTypes), false},
		{flagged(capture.Infile), false},
		{flagged(capture.Unanswered), true},
		{capture.Statement{Command: wire.ComPing}, true},
		{capture.Statement{Command: wire.ComShutdown}, false},
		{capture.Statement{Command: wire.ComProcessKill}, false},
		{capture.Statement{Command: wire.ComChangeUser}, false},
		{capture.Statement{Command: wire.ComRegisterSlave}, false},
		{capture.Statement{Command: wire.ComBinlogDump}, false},
		{capture.Statement{Command: wire.ComBinlogDumpGTID}, false},
		{capture.Statement{Command: wire.ComClone}, false},
		{capture.Statement{Command: wire.ComStmtPrepare, Text: []byte("kill ?")}, false},
	}
	for _, tt := range tests {
		synctest.Test(t, func(t *testing.T) {
			c := newScript()
			c.start(1, 0)
			c.add(1, ms, tt.s.Command, string(tt.s.Text), func(s *capture.Statement) { s.Flags = tt.s.Flags })
			f := new(target)
			r, _ := play(t, context.Background(), c, f, nil)
			skipped := r.Statements.Skipped + r.Commands.Skipped
			if sent := len(f.commands) == 1; sent != tt.sent || (skipped == 0) != tt.sent || !r.Complete() {
				t.Errorf("%s %q, flags %b: sent %v, %d skipped, complete %v; want sent %v", wire.CommandName(tt.s.Command), tt.s.Text, tt.s.Flags, sent, skipped, r.Complete(), tt.sent)
			}
		})
	}
}

func TestDifferences(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newScript()
		c.start(1, 0)
		outcome := func(o capture.Outcome) func(*capture.Statement) {
			return func(s *capture.Statement) { s.Outcome = o }
		}
		add := func(text string, edit func(*capture.Statement)) {
			c.query(1, c.records[len(c.records)-1].Place()+2*ms, text, edit)
		}
		add("update t set a='fail' where b=17", affected)                        // 1.1 new
		add("select 1", outcome(capture.Outcome{Errno: 1205}))                   // 1.2 vanished
		add("select fail", outcome(capture.Outcome{Errno: 1213}))                // 1.3 changed
		add("select fail", outcome(capture.Outcome{Errno: 1105}))                // 1.4 the same
		add("select 1", outcome(capture.Outcome{Rows: 3}))                       // 1.5 rows, and affected: the target says one
		add("update t", outcome(capture.Outcome{Affected: 2}))                   // 1.6 affected
		add("update t", affected)                                                // none
		add("select fail", func(s *capture.Statement) { s.Flags = capture.Cut }) // not to be compared
		r, _ := play(t, context.Background(), c, new(target), nil)
		if e := r.Errors; e.New != 1 || e.Vanished != 1 || e.Changed != 1 || e.Same != 1 || r.Rows != 1 || r.Affected != 2 || r.Compared != 7 || r.Different != 5 {
			t.Errorf("errors %+v, %d rows and %d affected differ, %d different of %d compared, want 1 each, 1 and 2, 5 of 7", e, r.Rows, r.Affected, r.Different, r.Compared)
		}
		want := []string{"1.1 new error 1", "1.2 vanished error 1", "1.3 changed error 1", "1.5 rows 1", "1.5 affected rows 2"}
		if len(r.Differences) != len(want) {
			t.Fatalf("listed %+v, want %q", r.Differences, want)
		}
		for i, d := range r.Differences {
			if got := fmt.Sprint(d.Where, " ", d.Kind, " ", d.Count); got != want[i] {
				t.Errorf("difference %d is %q, want %q", i, got, want[i])
			}
		}
		if d := r.Differences[0]; d.Captured != 0 || d.Replayed != 1105 || d.SQLState != "HY000" || d.Text != "update t set a = ? where b = ?" {
			t.Errorf("the first difference is %+v, want 0, 1105 and the text without its literals", d)
		}
	})
}
