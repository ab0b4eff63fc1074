package session_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"redrive/capture"
	"redrive/internal/session"
	"redrive/internal/wire"
)

// A follower that has seen one of everything allocates nothing for the next.
func TestSteadyStateAllocatesNothing(t *testing.T) {
	caps := baseCaps | wire.DeprecateEOF | wire.SessionTrack
	row := []byte{0, 0, 1, 'x'}
	tests := map[string][]chunk{
		"a query":                   {command(wire.ComQuery, "SELECT c FROM t"), fromServer(resultSet(1, caps, 2, []byte("\x01a")))},
		"an error":                  {command(wire.ComQuery, "SELECT c"), server(1, errPayload(1146, "42S02", "no such table")...)},
		"an execute with types":     {execute(3, 0, []byte{8, 0}, 42, 0, 0, 0, 0, 0, 0, 0), fromServer(resultSet(1, caps, 2, row))},
		"an execute without":        {execute(3, 0, nil, 42, 0, 0, 0, 0, 0, 0, 0), fromServer(resultSet(1, caps, 2, row))},
		"an execute with long data": {command(wire.ComStmtSendLongData, "\x03\x00\x00\x00\x00\x00data"), execute(3, 0, nil), fromServer(resultSet(1, caps, 2, row))},
		"a schema":                  {command(wire.ComInitDB, "db2"), server(1, ok...)},
		"two in flight":             {command(wire.ComStmtClose, "\x09\x00\x00\x00"), command(wire.ComQuery, "SELECT c FROM t"), fromServer(resultSet(1, caps, 2, []byte("\x01a")))},
		"a reply in pieces":         inPieces(command(wire.ComQuery, "SELECT c FROM t"), fromServer(resultSet(1, caps, 2, []byte("\x01a")))),
	}
	for name, s := range benchmarked(caps) {
		tests[name] = []chunk{{true, s[0]}, {false, s[1]}}
	}
	if !raceEnabled { // else pools forget things
		for _, n := range []int{3 << 10, 20 << 10, 60 << 10} {
			insert := command(wire.ComQuery, "INSERT INTO t VALUES ('"+strings.Repeat("x", n)+"')")
			tests[fmt.Sprintf("a statement of %d KiB", n>>10)] = inPieces(insert, server(1, okPayload(1, 2)...))
		}
	}
	for name, chunks := range tests {
		f := session.Follower{Handler: discard{}, Memory: capture.NewMemory(1 << 20)}
		show := func(chunks []chunk) {
			for _, c := range chunks {
				if c.fromClient {
					f.FromClient(c.data, time.Second, time.Second)
				} else {
					f.FromServer(c.data, time.Second)
				}
			}
		}
		show(append(login(caps), command(wire.ComStmtPrepare, "SELECT c FROM t WHERE id=?"), fromServer(prepareReply(3, 1, caps))))
		show(chunks)
		show(chunks)
		if n := testing.AllocsPerRun(100, func() { show(chunks) }); n >= 1 {
			t.Errorf("%s: %v allocations, want none", name, n)
		}
		if !f.Quiet() {
			t.Errorf("%s: the follower is not between two commands", name)
		}
	}
}

// inPieces cuts chunks into reads of 1000 bytes, and their first bytes off.
func inPieces(chunks ...chunk) (pieces []chunk) {
	for _, c := range chunks {
		pieces = append(pieces, chunk{c.fromClient, c.data[:6]})
		for data := c.data[6:]; len(data) > 0; data = data[min(1000, len(data)):] {
			pieces = append(pieces, chunk{c.fromClient, data[:min(1000, len(data))]})
		}
	}
	return pieces
}
