package analyze_test

import (
	"fmt"
	"testing"

	"redrive/analyze"
	"redrive/capture"
	"redrive/internal/wire"
)

func show(s analyze.Sysbench) string {
	transactions := "n/a"
	if s.Transactions != nil {
		transactions = fmt.Sprint(*s.Transactions)
	}
	return fmt.Sprintf("%d/%d/%d/%d trx %s ign %d rec %d", s.Read, s.Write, s.Other, s.Total, transactions, s.IgnoredErrors, s.Reconnects)
}

func TestSysbenchCounts(t *testing.T) {
	type outcome struct {
		text            string
		command         byte
		sets, rows, aff uint64
		errno           uint16
		flags           capture.Flags
	}
	const update, bulk = "UPDATE sbtest1 SET k=k+1 WHERE id=1", "INSERT INTO sbtest1 VALUES(1,1),(2,2)"
	tests := []struct {
		name   string
		ignore analyze.IgnoreErrors
		says   []outcome
		want   string // read/write/other/total
	}{
		{"a result set", nil, []outcome{{text: "SELECT 1", sets: 1, rows: 1}}, "1/0/0/1 trx n/a ign 0 rec 0"},
		{"an empty one", nil, []outcome{{text: "SELECT 1", sets: 1}}, "1/0/0/1 trx n/a ign 0 rec 0"},
		{"affected rows", nil, []outcome{{text: update, aff: 1}}, "0/1/0/1 trx n/a ign 0 rec 0"},
		{"an update that changed nothing", nil, []outcome{{text: update}}, "0/0/1/1 trx n/a ign 0 rec 0"},
		{"by result, not by text", nil, []outcome{{text: "CALL p()", sets: 1}, {text: "SELECT 1 INTO @a", aff: 1}}, "1/1/0/2 trx n/a ign 0 rec 0"},
		{"DDL", nil, []outcome{{text: "CREATE TABLE t (a INT)"}}, "0/0/1/1 trx n/a ign 0 rec 0"},
		{"an execute counts", nil, []outcome{{text: "SELECT 1", command: wire.ComStmtExecute, sets: 1}}, "1/0/0/1 trx n/a ign 0 rec 0"},
		{
			"other commands do not", nil,
			[]outcome{{text: "SELECT 1", command: wire.ComStmtPrepare}, {command: wire.ComStmtClose}, {command: wire.ComPing}},
			"0/0/0/0 trx n/a ign 0 rec 0",
		},
		{"a transaction", nil, []outcome{{text: "BEGIN"}, {text: update, aff: 1}, {text: "COMMIT"}}, "0/1/2/3 trx 1 ign 0 rec 0"},
		{"begun in another way", nil, []outcome{{text: "START TRANSACTION"}, {text: "commit"}}, "0/0/2/2 trx 1 ign 0 rec 0"},
		{"a commit that failed", []uint16{1180}, []outcome{{text: "BEGIN"}, {text: "COMMIT", errno: 1180}}, "0/0/1/1 trx 0 ign 1 rec 0"},
		{"a rollback is no transaction", nil, []outcome{{text: "BEGIN"}, {text: "ROLLBACK"}}, "0/0/2/2 trx 0 ign 0 rec 0"},
		{
			"ignored by default", nil,
			[]outcome{{text: update, errno: 1213}, {text: update, errno: 1020}, {text: update, errno: 1205}},
			"0/0/0/0 trx n/a ign 3 rec 0",
		},
		{"not ignored by default", nil, []outcome{{text: update, errno: 1062}}, "0/0/0/0 trx n/a ign 0 rec 0"},
		{"ignored on demand", []uint16{1062}, []outcome{{text: update, errno: 1062}, {text: update, errno: 1213}}, "0/0/0/0 trx n/a ign 1 rec 0"},
		{"nothing ignored", analyze.IgnoreErrors{}, []outcome{{text: update, errno: 1213}}, "0/0/0/0 trx n/a ign 0 rec 0"},
		{"a lost connection", nil, []outcome{{text: update, flags: capture.Unanswered}}, "0/0/0/0 trx n/a ign 0 rec 0"},
		{"reconnects", []uint16{2013}, []outcome{{text: update, flags: capture.Unanswered}, {text: update, errno: 2013}}, "0/0/0/0 trx n/a ign 0 rec 2"},
		{"bulk insert", nil, []outcome{{text: bulk, aff: 2}, {text: bulk, aff: 3}}, "0/2/0/2 trx 5 ign 0 rec 0"},
		{"bulk insert and DDL", nil, []outcome{{text: "CREATE TABLE t (a INT)"}, {text: bulk, aff: 2}}, "0/1/1/2 trx 2 ign 0 rec 0"},
		{"bulk insert beside other writes", nil, []outcome{{text: bulk, aff: 2}, {text: update, aff: 1}}, "0/2/0/2 trx n/a ign 0 rec 0"},
		{"a dry run", nil, []outcome{{text: "SELECT 1", flags: capture.NoOutcome}}, "0/0/1/1 trx n/a ign 0 rec 0"},
	}
	for _, test := range tests {
		r := newRun()
		c := r.talker(1)
		for _, say := range test.says {
			s := c.say(say.text, us, capture.TxnAuto)
			if say.command != 0 {
				s.Command = say.command
			}
			s.Flags, s.Outcome = say.flags, capture.Outcome{
				ResultSets: uint32(say.sets), Rows: say.rows, Affected: say.aff, Errno: say.errno,
			}
		}
		got := show(r.report(t, analyze.Options{IgnoreErrors: test.ignore}).Sysbench)
		if got != test.want {
			t.Errorf("%s: %s, want %s", test.name, got, test.want)
		}
	}
}

func TestParseIgnoreErrors(t *testing.T) {
	for _, test := range []struct{ list, want string }{
		{"1213,1020,1205", "[1213 1020 1205]"},
		{" 6002, 4012 ,", "[6002 4012]"},
		{"", "[]"},
		{"all", "[0]"},
		{"1,all", "[0]"},
		{"0", "error"},
		{"-1", "error"},
		{"65536", "error"},
		{"deadlock", "error"},
	} {
		got := "error"
		if list, err := analyze.ParseIgnoreErrors(test.list); err == nil {
			got = fmt.Sprint(list)
		}
		if got != test.want {
			t.Errorf("ParseIgnoreErrors(%q) = %s, want %s", test.list, got, test.want)
		}
	}
}
