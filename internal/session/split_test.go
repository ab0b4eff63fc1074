package session_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"reflect"
	"testing"
	"time"

	"redrive/capture"
	"redrive/internal/session"
	"redrive/internal/wire"
)

// A part of one direction's stream, which cannot be on its way before the other direction has come so far.
type part struct {
	chunk
	after int // chunks of the other direction
}

// causal tells for each chunk what it must wait for: a server's for all that the client has sent before; a client's for
// all the server has sent before, unless it is a command of a client that pipelines.
func causal(chunks []chunk, pipelines bool) (fromClient, fromServer []part) {
	held := 0 // chunks of the server that a client which pipelines has waited for
	for i, c := range chunks {
		switch {
		case !c.fromClient:
			fromServer = append(fromServer, part{c, len(fromClient)})
			continue
		case !pipelines || i < 3 || c.data[3] != 0 || bytes.HasPrefix(c.data[4:], []byte{wire.ComChangeUser}):
			held = len(fromServer)
		}
		fromClient = append(fromClient, part{c, held})
	}
	return fromClient, fromServer
}

// shuffle shows a follower both streams, cut anywhere and put together in any order that causality allows, and gives
// what became of them.
func shuffle(rng *rand.Rand, fromClient, fromServer []part) *listener {
	l := &listener{}
	f := session.Follower{Handler: l}
	var client, server, clientOff, serverOff int
	at := time.Duration(1)
	for client < len(fromClient) || server < len(fromServer) {
		at++
		switch {
		case client < len(fromClient) && fromClient[client].after <= server && (rng.IntN(2) == 0 || server == len(fromServer) || fromServer[server].after > client):
			data := fromClient[client].data[clientOff:]
			n := 1 + rng.IntN(len(data))
			f.FromClient(bytes.Clone(data[:n]), at, at)
			if clientOff += n; n == len(data) {
				client, clientOff = client+1, 0
			}
		case server < len(fromServer) && fromServer[server].after <= client:
			data := fromServer[server].data[serverOff:]
			n := 1 + rng.IntN(len(data))
			f.FromServer(bytes.Clone(data[:n]), at)
			if serverOff += n; n == len(data) {
				server, serverOff = server+1, 0
			}
		}
	}
	l.end = f.Close(at)
	return l
}

// timeless is what a follower said, but for the times.
func timeless(l *listener) []string {
	var all []string
	for _, s := range l.statements {
		s.Received, s.Complete, s.Sent, s.First, s.Done = 0, 0, 0, 0, 0
		s.Params = capture.Params{} // in the lines; the bytes are the follower's
		s.Outcome.State = wire.SessionState{}
		all = append(all, fmt.Sprintf("%+v", s))
	}
	return all
}

// conversation is one of everything.
func conversation(caps wire.Capabilities) []chunk {
	long := []byte{8, 0}
	more := resultSet(1, caps, 2|wire.StatusMoreResults, []byte("\x01a"))
	return append(login(caps),
		command(wire.ComQuery, "SELECT c FROM t"), fromServer(resultSet(1, caps, 2, []byte("\x01a"), []byte("\x00"))),
		command(wire.ComStmtPrepare, "SELECT c FROM t WHERE id=?"), fromServer(prepareReply(3, 1, caps)),
		execute(wire.LastStatementID, 0, long, 42, 0, 0, 0, 0, 0, 0, 0), fromServer(resultSet(1, caps, 2, []byte{0, 0, 1, 'x'})),
		command(wire.ComStmtSendLongData, "\x03\x00\x00\x00\x00\x00data"), execute(3, 0, nil), fromServer(resultSet(1, caps, 2)),
		execute(3, 0, nil, 1, 0, 0, 0, 0, 0, 0, 0), server(1, errPayload(1317, "70100", "killed")...),
		command(wire.ComStmtClose, "\x03\x00\x00\x00"),
		command(wire.ComInitDB, "db2"), server(1, ok...),
		command(wire.ComQuery, "SELECT 1; DO 1"), fromServer(append(more, packet(9, ok)...)),
		command(wire.ComQuery, "LOAD DATA LOCAL"), server(1, []byte("\xfbx")...), client(2, []byte("\x03data")...), client(3), server(4, okPayload(2, 2)...),
		command(wire.ComQuery, "BEGIN"), server(1, okPayload(0, 3)...),
		command(wire.ComChangeUser, "other\x00\x04hushdb3\x00\x2d\x00"), server(1, 1, 4), client(2, []byte("\x03hush")...), server(3, ok...),
		command(wire.ComStatistics, ""), server(1, []byte("Uptime: 1")...),
		client(0), server(1, errPayload(1047, "08S01", "Unknown command")...),
		command(wire.ComQuery, "SELECT 2"), fromServer(resultSet(1, caps, 2, []byte("\x01a"))[:20]),
	)
}

// However both streams are cut, and in whatever order that causality allows they are seen: the statements are the same.
func TestAnySplit(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	rng := rand.New(rand.NewPCG(seed, 0))
	for style, caps := range map[string]wire.Capabilities{"EOF": baseCaps, "no EOF, track": baseCaps | wire.DeprecateEOF | wire.SessionTrack} {
		for _, pipelines := range []bool{false, true} {
			chunks := conversation(caps)
			want := follow(t, 1<<20, 0, chunks...)
			if len(want.lines) != 15 || want.lost != "" {
				t.Fatalf("%s: %d commands, lost %q, want 15: %q", style, len(want.lines), want.lost, want.lines)
			}
			for round := range 200 {
				fromClient, fromServer := causal(chunks, pipelines)
				got := shuffle(rng, fromClient, fromServer)
				if !reflect.DeepEqual(got.lines, want.lines) || !reflect.DeepEqual(timeless(got), timeless(want)) || got.lost != "" || got.end != want.end {
					t.Fatalf("%s, pipelined %t, seed %d, round %d: got\n%q\nlost %q, %+v, want\n%q\n%+v", style, pipelines, seed, round, got.lines, got.lost, got.end, want.lines, want.end)
				}
			}
		}
	}
}
