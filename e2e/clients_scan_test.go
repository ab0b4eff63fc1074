package e2e_test

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"github.com/go-mysql-org/go-mysql/mysql"

	"redrive/capture"
	"redrive/internal/wire"
)

// What follows is a second, simple reading of the bytes, which shares nothing with the one that it checks: a packet of
// the client with sequence id 0, behind the login, begins a command.

// A sent command is what the client's bytes hold of one.
type sent struct {
	payload []byte // in one piece, however many packets it came in
	packets int
	id      string // of the prepared statement it names, as sent; "" if none
}

// nextPacket takes the first physical packet off stream; ok is false, and rest empty, if none is whole.
func nextPacket(stream []byte) (seq byte, payload, rest []byte, ok bool) {
	if len(stream) < 4 {
		return 0, nil, nil, false
	}
	end := 4 + (int(stream[0]) | int(stream[1])<<8 | int(stream[2])<<16)
	if len(stream) < end {
		return 0, nil, nil, false
	}
	return stream[3], stream[4:end], stream[end:], true
}

// commandPhase is the client's stream from its first command on.
func commandPhase(fromClient []byte) []byte {
	for {
		seq, _, rest, ok := nextPacket(fromClient)
		if !ok || seq == 0 {
			return fromClient
		}
		fromClient = rest
	}
}

// replyPhase is the server's stream behind the packet that ends the login: OK or ERR, the only ones here to begin so.
func replyPhase(fromServer []byte) []byte {
	_, _, rest, ok := nextPacket(fromServer) // the greeting
	for ok {
		var payload []byte
		_, payload, rest, ok = nextPacket(rest)
		if len(payload) > 0 && (payload[0] == 0x00 || payload[0] == 0xFF) {
			break
		}
	}
	return rest
}

// Where a greeting has its fields, counted from the NUL behind the server's version.
const (
	nonceAt, nonceRestAt = 5, 32 // 8 and 12 bytes
	capsAt, capsHighAt   = 14, 19
)

// greeting is the greeting's payload, and where its version ends.
func (c *tapped) greeting() (payload []byte, version int) {
	_, payload, _, _ = nextPacket(c.fromServer)
	return payload, bytes.IndexByte(payload, 0)
}

// withhold clears capabilities in the server's greeting.
func (c *tapped) withhold(caps wire.Capabilities) {
	greeting, version := c.greeting()
	for i, at := range []int{capsAt, capsAt + 1, capsHighAt, capsHighAt + 1} {
		greeting[version+at] &^= byte(caps >> (8 * i))
	}
}

// blot clears what is new with every connection from the streams behind the login: ids of prepared statements, which
// MariaDB counts for all sessions together, and of a change of user the nonce and its scramble with the password.
func (c *tapped) blot() {
	greeting, version := c.greeting()
	nonce := slices.Concat(greeting[version+nonceAt:][:8], greeting[version+nonceRestAt:][:12])
	scramble := mysql.CalcPassword(nonce, []byte(smokePassword))
	for rest := commandPhase(c.fromClient); len(rest) > 0; {
		var seq byte
		var payload []byte
		seq, payload, rest, _ = nextPacket(rest)
		if seq == 0 && len(payload) >= 5 && namesStatement(payload[0]) && string(payload[1:5]) != lastStatement {
			clear(payload[1:5])
		}
		clearFirst(payload, scramble)
	}
	for rest := replyPhase(c.fromServer); len(rest) > 0; {
		var seq byte
		var payload []byte
		seq, payload, rest, _ = nextPacket(rest)
		if seq == 1 && len(payload) == 12 && payload[0] == 0 { // all PREPARE_OKs, and a few other packets
			clear(payload[1:5])
		}
		clearFirst(payload, nonce)
	}
}

// clearFirst clears the first occurrence of secret in a packet that is no larger than one of a login.
func clearFirst(payload, secret []byte) {
	if len(payload) > 4096 {
		return
	}
	if i := bytes.Index(payload, secret); i >= 0 {
		clear(payload[i : i+len(secret)])
	}
}

// lastStatement is the id that stands for the latest statement prepared.
const lastStatement = "\xFF\xFF\xFF\xFF"

// namesStatement tells whether a command begins with the id of a prepared statement.
func namesStatement(command byte) bool {
	switch command {
	case wire.ComStmtExecute, wire.ComStmtSendLongData, wire.ComStmtClose, wire.ComStmtReset, wire.ComStmtFetch, wire.ComStmtBulkExecute:
		return true
	}
	return false
}

// scan lists the commands in a client's stream. Packets with another sequence id belong to what went before: pieces of
// a command of 16 MiB and more, files, the authentication of a change of user.
func scan(fromClient []byte) (commands []sent, err error) {
	stream := commandPhase(fromClient)
	continued := false
	for len(stream) > 0 {
		seq, payload, rest, ok := nextPacket(stream)
		if !ok {
			return commands, fmt.Errorf("%d bytes at the end are no packet", len(stream))
		}
		switch {
		case seq == 0:
			c := sent{payload: payload, packets: 1}
			if len(payload) >= 5 && namesStatement(payload[0]) {
				c.id = string(payload[1:5])
			}
			commands = append(commands, c)
		case continued:
			last := &commands[len(commands)-1]
			last.payload = append(slices.Clip(last.payload), payload...)
			last.packets++
		}
		continued = (seq == 0 || continued) && len(payload) == 0xFFFFFF
		stream = rest
	}
	return commands, nil
}

// A matcher compares the records of a session, in the order of their numbers, with the commands of the same session
// in another run.
type matcher struct {
	texts  map[uint32][]byte // of what is prepared, by the id on record
	last   uint32            // id of the latest one, 0 if its PREPARE failed
	offset uint32            // of the ids on record from the ids sent: all the same, as the server counts them
	seen   bool              // an offset
}

// compare tells what is wrong with the record of a command.
func (m *matcher) compare(s *capture.Statement, c sent) (wrong []string) {
	complain := func(format string, args ...any) {
		wrong = append(wrong, fmt.Sprintf("command %d, %s: ", s.Number, wire.CommandName(s.Command))+fmt.Sprintf(format, args...))
	}
	code, text := c.payload[0], c.payload[1:]
	allowed := capture.Cursor | capture.Infile | capture.Begun
	if c.id != "" {
		id := m.id(s, c.id)
		if id != s.StatementID {
			complain("statement %d, want %d", s.StatementID, id)
		}
		if m.texts[id] == nil {
			allowed |= capture.TextUnknown
		}
		if text = text[4:]; code != wire.ComStmtSendLongData {
			text = m.texts[id]
		}
	}
	switch code {
	case wire.ComStmtPrepare:
		if m.last = s.StatementID; s.Outcome.Errno == 0 {
			m.texts[m.last] = text
		}
	case wire.ComStmtClose:
		delete(m.texts, s.StatementID)
	case wire.ComResetConnection:
		clear(m.texts)
	case wire.ComChangeUser:
		clear(m.texts)
		text, _, _ = bytes.Cut(text, []byte{0})
	}
	if s.Command != code {
		complain("want %s", wire.CommandName(code))
	}
	if !bytes.Equal(s.Text, text) {
		complain("text %.80q, want %.80q", s.Text, text)
	}
	if s.Flags&^allowed != 0 {
		complain("flags %b", s.Flags)
	}
	size := uint64(len(c.payload) + 4*c.packets)
	if code != wire.ComChangeUser && !s.Flags.Has(capture.Infile) && s.RequestBytes != size {
		complain("%d bytes of request, want %d", s.RequestBytes, size)
	}
	return wrong
}

// id is what should be on record of an id that was sent in the other run.
func (m *matcher) id(s *capture.Statement, other string) uint32 {
	if other == lastStatement {
		return m.last
	}
	cursor := wire.NewCursor([]byte(other))
	n := cursor.Uint32()
	if !m.seen {
		m.offset, m.seen = s.StatementID-n, true
	}
	return n + m.offset
}

// firstDifference tells where two streams part.
func firstDifference(a, b []byte) string {
	i := 0
	for i < min(len(a), len(b)) && a[i] == b[i] {
		i++
	}
	around := func(s []byte) string { return fmt.Sprintf("%q", s[max(0, min(i, len(s))-40):min(len(s), i+40)]) }
	return strings.Join([]string{fmt.Sprintf("%d and %d bytes, different from offset %d on:", len(a), len(b), i), around(a), around(b)}, "\n")
}
