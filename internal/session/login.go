package session

import (
	"fmt"
	"strings"
	"time"
	"unsafe"

	"redrive/capture"
	"redrive/internal/wire"
)

// maxLoginPacket bounds the login packets that are kept: attributes may take 64 KiB, tokens some more.
const maxLoginPacket = 1 << 20

// gather puts a packet's pieces together, as far as there is memory; ok is false until the last one.
func (s *stream) gather(p *wire.Piece, account wire.Account) (payload []byte, ok bool) {
	if p.Head && p.Tail {
		return p.Data, true
	}
	if p.Head {
		s.packet.Reset(account)
	}
	s.packet.Append(p.Data, maxLoginPacket, account)
	return s.packet.Bytes(), p.Tail
}

// serverLogin acts on a packet the server sends before the command phase.
func (f *Follower) serverLogin(payload []byte, at time.Duration) {
	if len(payload) == 0 {
		return
	}
	if payload[0] == 0xFF {
		f.end.Parting = *wire.ParseError(payload)
		return
	}
	if f.stage == stageGreeting {
		f.greet(payload, at)
		return
	}
	ok, accepted := f.acceptance(payload)
	switch {
	case f.stage != stageAuth: // the client has not answered yet
	case accepted:
		f.loggedIn(ok, at)
	default:
		f.asked = true
	}
}

func (f *Follower) greet(payload []byte, at time.Duration) {
	greeting, err := wire.ParseGreeting(payload)
	if err != nil {
		f.lose(at, err.Error())
		return
	}
	f.greeting = greeting
	f.stage = stageResponse
}

// acceptance tells an OK that ends the login from plugin data that happens to begin with 00.
func (f *Follower) acceptance(payload []byte) (wire.OK, bool) {
	if payload[0] != 0 || len(payload) < 7 {
		return wire.OK{}, false
	}
	ok, err := wire.ParseOK(payload, f.caps)
	return ok, err == nil && ok.Affected == 0
}

func (f *Follower) loggedIn(ok wire.OK, at time.Duration) {
	f.stage = stageCommands
	f.end.LoggedIn = true
	f.start.At, f.start.Status, f.status = at, ok.Status, ok.Status
	if f.caps&(wire.Compress|wire.Zstd) != 0 {
		f.client.frames = &wire.Inflater{Memory: f.account()}
		f.server.frames = &wire.Inflater{Memory: f.account()}
	}
	f.Handler.LoggedIn(&f.start)
	f.settle(at) // commands sent ahead of it
}

// response acts on the client's answer to the greeting.
func (f *Follower) response(payload []byte, at time.Duration) {
	response, err := wire.ParseHandshakeResponse(payload, f.greeting.Capabilities)
	switch {
	case err != nil:
		f.lose(at, err.Error())
		return
	case len(payload) == wire.SSLRequestLen && response.Capabilities.Has(wire.SSL):
		f.lose(at, "the connection is encrypted (TLS)")
		return
	}
	f.caps = wire.Negotiate(f.greeting.Capabilities, response.Capabilities)
	f.start = capture.SessionStart{
		User: clip(response.User), Schema: clip(response.Schema), Collation: uint16(response.Collation), Capabilities: f.caps,
		ConnectionID: uint64(f.greeting.ConnectionID), ServerVersion: clip(f.greeting.ServerVersion),
	}
	f.schema = append(f.schema[:0], f.start.Schema...)
	f.start.Attributes = f.keepAttributes(response.Attributes)
	f.greeting = wire.Greeting{}
	f.stage = stageAuth
}

// maxNames is the length up to which names are believed: no server knows a user or schema with one of a quarter of it.
const maxNames = 2 << 10

// clip is s, or its beginning if it is longer than any name.
func clip(s string) string {
	if len(s) <= maxNames {
		return s
	}
	return strings.Clone(s[:maxNames])
}

// smallAttributes is how many bytes of connection attributes are kept without taking them from the account.
const smallAttributes = 2 << 10

// keepAttributes gives the attributes to keep for as long as the session lasts: none if there is no memory for them.
func (f *Follower) keepAttributes(attributes []wire.Attribute) []wire.Attribute {
	size := 0
	for _, a := range attributes {
		size += int(unsafe.Sizeof(a)) + len(a.Name) + len(a.Value)
	}
	if size > smallAttributes && !f.account().Take(size) {
		return nil
	}
	return attributes
}

// changeUserReply acts on a packet of the server while a user is being changed.
func (f *Follower) changeUserReply(c *command, payload []byte, at time.Duration) {
	if len(payload) == 0 {
		return
	}
	if payload[0] == 0xFF {
		e := wire.ParseError(payload)
		c.statement.Outcome.Errno = e.Errno
		copy(c.statement.Outcome.SQLState[:], e.SQLState)
		c.statement.Outcome.Results = 1
		f.transactions.Doubt()
		f.finish(c, at)
		f.settle(at)
		return
	}
	ok, accepted := f.acceptance(payload)
	if !accepted {
		f.asked = true
		return
	}
	c.statement.Outcome.Status, c.statement.Outcome.HasStatus = ok.Status, true
	c.statement.Outcome.Results = 1
	f.schema = append(f.schema[:0], c.newSchema...)
	f.start.User = string(c.statement.Text)
	f.forget()
	f.finish(c, at)
	f.settle(at)
}

// forget drops what a reset of the session drops.
func (f *Follower) forget() {
	f.unprepareAll()
	f.transactions.Reset()
}

func (f *Follower) unexpected(payload []byte, at time.Duration) {
	if len(payload) > 0 && payload[0] == 0xFF { // a parting word: the session ends
		f.end.Parting = *wire.ParseError(payload)
		return
	}
	f.lose(at, fmt.Sprintf("the server sent %d bytes unasked", len(payload)))
}
