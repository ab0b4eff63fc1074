package proxy_test

import (
	"bytes"
	"io"
	"testing"

	"redrive/capture"
	"redrive/internal/mysqltest"
	"redrive/internal/wire"
)

// A statement above max_allowed_packet is refused before it was sent to its end: the client hears why, and the record
// has the beginning of the statement with the error.
func TestStatementTooLarge(t *testing.T) {
	server := mysqltest.Start(t, "--max-allowed-packet=1M")
	p := start(t, server.Addr)
	c := dialRaw(t, p.addr, "", wire.DeprecateEOF)
	statement := frame(0, append([]byte("\x03SELECT '"), bytes.Repeat([]byte("x"), 20<<20)...))
	go c.conn.Write(statement) // which may fail: the server hangs up
	got, _ := io.ReadAll(c.conn)
	if len(got) < 7 || got[4] != 0xFF || int(got[5])|int(got[6])<<8 != 1153 {
		t.Fatalf("the client got %.100q, want error 1153", got)
	}
	c.conn.Close()
	var statements []capture.Statement
	for _, rec := range p.records(t) {
		if rec.Kind == capture.KindStatement {
			statements = append(statements, rec.Statement)
		}
	}
	if len(statements) != 1 || p.Totals().Opaque != 0 {
		t.Fatalf("%d statements, %d sessions given up, want 1 and none; answer %q", len(statements), p.Totals().Opaque, got)
	}
	s := &statements[0]
	if s.Outcome.Errno != 1153 || !bytes.HasPrefix(s.Text, []byte("SELECT 'xxx")) || s.Flags&(capture.Unanswered|capture.Cut) != 0 {
		t.Errorf("recorded %.20q with error %d, flags %b", s.Text, s.Outcome.Errno, s.Flags)
	}
}

// A session that the server ends for idleness has no statement for it.
func TestIdleSessionEnded(t *testing.T) {
	server := mysqltest.Shared(t)
	p := start(t, server.Addr)
	c := dialRaw(t, p.addr, "", 0)
	c.do([]byte("\x03SET wait_timeout = 1"))
	io.ReadAll(c.conn)
	c.conn.Close()
	checkRecord(t, p, map[uint64][]step{uint64(c.id): {ask("SET wait_timeout = 1")}})
}
