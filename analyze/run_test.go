package analyze_test

import (
	"strings"
	"testing"
	"time"

	"redrive/analyze"
	"redrive/capture"
	"redrive/internal/wire"
)

const (
	us = time.Microsecond
	ms = time.Millisecond
)

// A run is a capture in memory, made by hand. It is what analyze.Read reads.
type run struct {
	header  capture.Header
	records []*capture.Record
	ledger  *capture.Ledger
	err     error
	at      int
}

func newRun() *run {
	return &run{
		header: capture.Header{
			Producer: "proxy", Product: "redrive test", Backend: "db1:3306",
			Start: time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC),
		},
		ledger: &capture.Ledger{},
	}
}

func (r *run) Header() (*capture.Header, error) { return &r.header, nil }
func (r *run) Next() bool                       { r.at++; return r.at <= len(r.records) }
func (r *run) Record() *capture.Record          { return r.records[r.at-1] }
func (r *run) Err() error                       { return r.err }

func (r *run) Ledger() (capture.Ledger, bool) {
	if r.ledger == nil {
		return capture.Ledger{}, false
	}
	return *r.ledger, true
}

func (r *run) report(t *testing.T, o analyze.Options) *analyze.Report {
	t.Helper()
	r.at = 0
	report, err := analyze.Read(r, "run.rdt", o)
	if err != r.err {
		t.Fatalf("Read: %v, want %v", err, r.err)
	}
	return report
}

func (r *run) start(session uint64) {
	r.records = append(r.records, &capture.Record{Kind: capture.KindSessionStart, Start: capture.SessionStart{Session: session}})
}

func (r *run) end(e capture.SessionEnd) {
	r.records = append(r.records, &capture.Record{Kind: capture.KindSessionEnd, End: e})
}

func (r *run) gap(g capture.Gap) {
	r.records = append(r.records, &capture.Record{Kind: capture.KindGap, Gap: g})
}

// add adds a statement: a COM_QUERY unless the command is set. Times other than Complete and Done are left alone.
func (r *run) add(s capture.Statement) *capture.Statement {
	if s.Command == 0 {
		s.Command = wire.ComQuery
	}
	rec := &capture.Record{Kind: capture.KindStatement, Statement: s}
	r.records = append(r.records, rec)
	return &rec.Statement
}

// A talker adds statements of one session, one after the other, each the given service time long, 1 ms apart.
type talker struct {
	*run
	session, number, txn uint64
	place                uint32
	now                  time.Duration
}

func (r *run) talker(session uint64) *talker {
	r.start(session)
	return &talker{run: r, session: session}
}

// say adds a statement to the transaction at hand, which ends with it if end says so.
func (t *talker) say(text string, service time.Duration, end capture.TxnEnd) *capture.Statement {
	if t.place == 0 {
		t.txn++
	}
	t.place++
	t.number++
	t.now += ms
	s := t.add(capture.Statement{
		Session: t.session, Number: t.number, Txn: t.txn, Place: t.place, TxnEnd: end, Text: []byte(text),
		Received: t.now, Complete: t.now, Done: t.now + service,
	})
	t.now += service
	if end != capture.TxnOpen {
		t.place = 0
	}
	return s
}

// text is the report as people see it.
func text(t *testing.T, r *analyze.Report) string {
	t.Helper()
	var b strings.Builder
	if err := r.WriteText(&b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}
