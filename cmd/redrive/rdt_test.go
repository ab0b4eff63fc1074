package main

import (
	"fmt"
	"os"
	"time"

	"redrive/capture"
	"redrive/internal/identity"
	"redrive/internal/wire"
)

// makeCapture is the scripts' command rdt: "rdt KIND FILE" writes a capture file, "rdt cut FILE N" takes the last N bytes
// from one, "rdt append FILE N" adds as many, and "rdt flip FILE N" turns a bit of byte N.
func makeCapture() {
	err := rdt(os.Args[1:])
	if err != nil {
		fmt.Fprintln(os.Stderr, "rdt:", err)
		os.Exit(1)
	}
}

func rdt(args []string) error {
	switch args[0] {
	case "cut", "flip", "append":
		return damage(args[0], args[1], args[2])
	}
	file, err := os.Create(args[1])
	if err != nil {
		return err
	}
	header := capture.Header{
		Producer: "proxy", Product: "redrive test", Host: "recorder", Clock: "monotonic", Zone: "UTC",
		Start: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC), Backend: "db:3306", Resolved: []string{"192.0.2.7:3306"},
		Server:   &identity.Server{Version: "10.11.6-MariaDB", ServerID: "1", UUID: "u-u-i-d"},
		Settings: map[string]string{"listen": ":3307"},
	}
	if args[0] == "unasked" {
		header.Server = nil
	}
	w := capture.NewWriter(file, header)
	ledger := capture.Ledger{Forwarded: 9, Stored: 5, Shed: 3, Unfinished: 1}
	switch args[0] {
	case "small":
		smallCapture(w)
	case "unasked":
		unaskedCapture(w)
		ledger = capture.Ledger{Forwarded: 2, Stored: 2}
	case "contradictory":
		smallCapture(w)
		w.Horizon(time.Minute)
		w.Flush()
		w.Statement(&capture.Statement{Session: 2, Number: 9, Received: 2 * time.Second, Done: 3 * time.Second})
		w.Statement(&capture.Statement{Session: 3, Number: 1, Received: 58 * time.Second, Done: 59 * time.Second})
		w.Statement(&capture.Statement{Session: 2, Number: 10, Received: 3 * time.Second, Done: 4 * time.Second})
	default:
		return fmt.Errorf("%s: want small, unasked, contradictory, cut, append or flip", args[0])
	}
	if err := w.Close(ledger); err != nil {
		return err
	}
	return file.Close()
}

// smallCapture writes one record of every kind at least.
func smallCapture(w *capture.Writer) {
	const ms = time.Millisecond
	w.SessionStart(&capture.SessionStart{
		Session: 1, At: ms, User: "sbtest", Schema: "sbtest", Collation: 45, ConnectionID: 33, ServerVersion: "10.11.6-MariaDB",
		Client: "127.0.0.1:4711", Attributes: []wire.Attribute{{Name: "program_name", Value: "sysbench"}},
	})
	s := capture.Statement{
		Session: 1, Number: 1, Txn: 1, Place: 1, Command: wire.ComQuery, Schema: []byte("sbtest"), Text: []byte("BEGIN"),
		Received: 2 * ms, Complete: 2 * ms, Sent: 2*ms + 1000, First: 3 * ms, Done: 3 * ms, RequestBytes: 10,
		Outcome: capture.Outcome{Results: 1, Status: 3, HasStatus: true, ReplyBytes: 11},
	}
	w.Statement(&s)

	s.Number, s.Place, s.Command, s.StatementID = 2, 2, wire.ComStmtExecute, 7
	s.Text = []byte("SELECT c FROM sbtest1\nWHERE id=? AND pad=? AND k=?")
	s.Params = capture.Params{Nulls: []byte{4}, Types: []byte{8, 0, 254, 0, 8, 0}, Values: append([]byte{42, 0, 0, 0, 0, 0, 0, 0}, "\x04it's"...)}
	s.Received, s.Complete, s.Sent, s.First, s.Done = 4*ms, 4*ms, 4*ms+1000, 5*ms, 5*ms+500_000
	s.Outcome.ResultSets, s.Outcome.Rows = 1, 1
	w.Statement(&s)

	s.Number, s.Place, s.Command, s.Text, s.Params, s.StatementID = 3, 3, wire.ComQuery, []byte("COMMIT"), capture.Params{}, 0
	s.Received, s.Complete, s.Sent, s.First, s.Done = 6*ms, 6*ms, 6*ms, 7*ms, 7*ms
	s.Outcome.ResultSets, s.Outcome.Rows = 0, 0
	s.TxnEnd = capture.TxnCommit
	w.Statement(&s)

	slow := capture.Statement{Session: 1, Number: 4, Txn: 2, Place: 1, Command: wire.ComQuery, Text: []byte("SELECT SLEEP(2) -- \xff"), Received: 10 * ms, Complete: 10 * ms, Sent: 10 * ms}
	w.Begin(&slow)
	w.Statement(&capture.Statement{
		Session: 2, Number: 1, Txn: 1, Place: 1, TxnEnd: capture.TxnAuto, Command: wire.ComQuery, Text: []byte("INSERT INTO t VALUES (1)"),
		Received: 1100 * ms, Complete: 1100 * ms, Sent: 1100 * ms, First: 1101 * ms, Done: 1101 * ms,
		Outcome: capture.Outcome{Results: 1, Errno: 1062, SQLState: [5]byte{'2', '3', '0', '0', '0'}},
	})
	slow.First, slow.Done, slow.TxnEnd = 2010*ms, 2010*ms, capture.TxnAuto
	slow.Outcome = capture.Outcome{Results: 1, ResultSets: 1, Rows: 1}
	w.Statement(&slow)
	w.Gap(&capture.Gap{From: 1500 * ms, To: 1600 * ms, Statements: 3, Cut: 1, Reason: "the recording was full"})
	w.SessionEnd(&capture.SessionEnd{Session: 1, At: 2020 * ms, Reason: capture.EndQuit, Commands: 5})
}

// unaskedCapture is of a server that was not asked who it is, and has commands that run no SQL.
func unaskedCapture(w *capture.Writer) {
	const ms = time.Millisecond
	w.SessionStart(&capture.SessionStart{Session: 1, At: ms, ServerVersion: "8.4.3"})
	w.Statement(&capture.Statement{
		Session: 1, Number: 1, Command: wire.ComStmtPrepare, Text: []byte("SELECT ?"),
		Received: 2 * ms, Complete: 2 * ms, Sent: 2 * ms, First: 3 * ms, Done: 3 * ms, Outcome: capture.Outcome{Results: 1},
	})
	w.Statement(&capture.Statement{Session: 1, Number: 2, Command: wire.ComQuit, Received: 4 * ms, Complete: 4 * ms, Sent: 5 * ms, Done: 5 * ms})
}

func damage(how, name, number string) error {
	var n int
	if _, err := fmt.Sscan(number, &n); err != nil {
		return err
	}
	data, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	switch how {
	case "cut":
		data = data[:len(data)-n]
	case "append":
		data = append(data, make([]byte, n)...)
	default:
		data[n] ^= 1
	}
	return os.WriteFile(name, data, 0o600)
}
