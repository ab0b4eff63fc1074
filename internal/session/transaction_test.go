package session_test

import (
	"fmt"
	"strings"
	"testing"

	"redrive/capture"
	"redrive/internal/session"
	"redrive/internal/wire"
)

// Statements with what MariaDB 10.11 answers: status flags (0001 within a transaction, 0002 autocommit) or an error.
func TestTransactions(t *testing.T) {
	tests := []struct {
		name   string
		script string // "text flags", "text flags*results" or "text !errno", one a line
		want   string // transaction.place and end
	}{
		{"a transaction", "BEGIN 3\nSELECT 1 3\nCOMMIT 2", "1.1 1.2 1.3commit"},
		{"rolled back", "START TRANSACTION 3\nUPDATE t 3\nROLLBACK 2", "1.1 1.2 1.3rollback"},
		{"autocommit", "SELECT 1 2\nUPDATE t 2", "1.1auto 2.1auto"},
		{"BEGIN in a transaction commits it unseen", "BEGIN 3\nUPDATE t 3\nBEGIN 3\nCOMMIT 2", "1.1 1.2 2.1 2.2commit"},
		{"COMMIT AND CHAIN", "BEGIN 3\nCOMMIT AND CHAIN 3\nSELECT 1 3\nCOMMIT 2", "1.1 1.2commit 2.1 2.2commit"},
		{"DDL commits", "BEGIN 3\nUPDATE t 3\nCREATE TABLE x (a INT) 2", "1.1 1.2 1.3implicit"},
		{"autocommit off: open from the first table on", "SET autocommit=0 0\nSELECT 1 0\nSELECT a FROM t 1\nUPDATE t 1\nCOMMIT 0", "1.1auto 2.1auto 3.1 3.2 3.3commit"},
		{"a failed statement leaves it open", "BEGIN 3\nINSERT x !1062\nSELECT 1 3\nCOMMIT 2", "1.1 1.2 1.3 1.4commit"},
		{"the client gives up after an error", "BEGIN 3\nINSERT x !1062\nROLLBACK 2", "1.1 1.2 1.3rollback"},
		{"a deadlock ends it", "BEGIN 3\nUPDATE t !1213\nBEGIN 3\nCOMMIT 2", "1.1 1.2error 2.1 2.2commit"},
		{"a lock wait may have ended it: the flags tell", "BEGIN 3\nUPDATE t !1205\nUPDATE t 2\nSELECT 1 2", "1.1 1.2 2.1auto 3.1auto"},
		{"sysbench begins again after a lock wait", "BEGIN 3\nUPDATE t !1205\nBEGIN 3\nUPDATE t 3\nCOMMIT 2", "1.1 1.2 2.1 2.2 2.3commit"},
		{"an error outside", "SELECT nope !1146\nSELECT 1 2", "1.1auto 2.1auto"},
		{"a server whose flags never show it", "BEGIN 2\nUPDATE t 2\nCOMMIT 2\nSELECT 1 2\nbegin 2\nROLLBACK 2", "1.1 1.2 1.3commit 2.1auto 3.1 3.2rollback"},
		{"several statements in one, whole transactions among them", "BEGIN; UPDATE t; COMMIT 2*3\nSELECT 1 2", "1.1auto 2.1auto"},
		{"several statements in one that leave it open", "BEGIN; UPDATE t 3*2\nCOMMIT 2", "1.1 1.2commit"},
		{"comments in front", "/* app */ BEGIN 3\n-- x\\n SELECT 1 3\n/* app */ COMMIT 2", "1.1 1.2 1.3commit"},
	}
	ends := map[capture.TxnEnd]string{
		capture.TxnOpen: "", capture.TxnAuto: "auto", capture.TxnCommit: "commit", capture.TxnRollback: "rollback",
		capture.TxnImplicit: "implicit", capture.TxnError: "error", capture.TxnDisconnect: "disconnect",
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var transactions session.Transactions
			var got []string
			for line := range strings.Lines(tt.script) {
				line = strings.TrimSpace(line)
				cut := strings.LastIndexByte(line, ' ')
				s := capture.Statement{Command: wire.ComQuery, Text: []byte(strings.ReplaceAll(line[:cut], `\n`, "\n"))}
				if errno, failed := strings.CutPrefix(line[cut+1:], "!"); failed {
					fmt.Sscan(errno, &s.Outcome.Errno)
				} else {
					s.Outcome.Results = 1
					fmt.Sscanf(line[cut+1:], "%d*%d", &s.Outcome.Status, &s.Outcome.Results)
					s.Outcome.HasStatus = true
				}
				transactions.Assign(&s)
				got = append(got, fmt.Sprintf("%d.%d%s", s.Txn, s.Place, ends[s.TxnEnd]))
			}
			if strings.Join(got, " ") != tt.want {
				t.Errorf("got %s, want %s", strings.Join(got, " "), tt.want)
			}
		})
	}
}

func TestTransactionLeftOpen(t *testing.T) {
	l := follow(t, 1<<20, 0, append(login(baseCaps),
		command(wire.ComQuery, "BEGIN"), server(1, okPayload(0, 3)...),
		command(wire.ComQuery, "SELECT SLEEP(100)"))...)
	s := l.statements[1]
	if s.Txn != 1 || s.Place != 2 || s.TxnEnd != capture.TxnDisconnect {
		t.Errorf("the statement that never ended: transaction %d.%d, end %d, want 1.2, %d", s.Txn, s.Place, s.TxnEnd, capture.TxnDisconnect)
	}
}
