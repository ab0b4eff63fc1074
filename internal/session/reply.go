package session

import (
	"bytes"
	"time"

	"redrive/capture"
	"redrive/internal/wire"
)

// serverPiece takes a piece of what the server sent. A packet's first piece decides whose answer it is.
func (f *Follower) serverPiece(p *wire.Piece, at time.Duration) {
	if p.Head && f.stage == stageCommands {
		f.answering = f.addressee(p, at)
	}
	c := f.answering
	if c != nil {
		c.follow(&f.server, p.Seq)
	}
	switch {
	case f.stage != stageCommands:
		if payload, whole := f.server.gather(p, f.account()); whole {
			f.serverLogin(payload, at)
		}
	case c == nil:
		if payload, whole := f.server.gather(p, f.account()); whole {
			f.unexpected(payload, at)
		}
	case c.code == wire.ComChangeUser:
		c.noteFirst(at)
		if payload, whole := f.server.gather(p, f.account()); whole {
			f.changeUserReply(c, payload, at)
		}
	default:
		f.replyPiece(c, p, at)
	}
}

// skip passes over the rows and column definitions at the beginning of b, of the reply that is coming in.
func (f *Follower) skip(b []byte, at time.Duration) int {
	c := f.answering
	if c == nil || c != f.oldest || !c.read {
		return 0
	}
	n, seq := c.reply.Skip(b)
	if n > 0 {
		c.noteFirst(at)
		c.follow(&f.server, seq)
	}
	return n
}

// addressee is the command that a packet of the server's belongs to: the oldest without a reply, else the one that the
// client is still sending, as a server may refuse it before its last byte; nil if nobody asked.
func (f *Follower) addressee(p *wire.Piece, at time.Duration) *command {
	if c := f.oldest; c != nil && c.parting != 0 { // the session goes on: it was an answer
		f.answered(c)
		f.finish(c, c.parting)
		f.settle(at)
	}
	if f.oldest != nil {
		return f.oldest
	}
	c := f.incoming
	switch {
	case c == nil || p.Seq == 0 || c.payload.Len() == 0 || c.refused != 0: // nobody asked
		return nil
	case !wire.HasReply(c.code) || c.code == wire.ComChangeUser: // small, and never refused half-way
		return nil
	}
	c.reply.Begin(c.code, f.caps, false)
	return c
}

// replyPiece takes a piece of a command's reply.
func (f *Follower) replyPiece(c *command, p *wire.Piece, at time.Duration) {
	if p.Head && p.Data != nil && wire.LeavesProtocol(c.code) && !bytes.HasPrefix(p.Data, []byte{0xFF}) {
		f.leave(c, at)
		return
	}
	done, err := c.reply.FeedPiece(p)
	if err != nil {
		f.lose(at, wire.CommandName(c.code)+": "+err.Error())
		return
	}
	if c.reply.Begun() {
		c.noteFirst(at)
	}
	if c.reply.WantsFile() {
		c.statement.Flags |= capture.Infile
		f.uploading = true
	}
	switch {
	case !done:
	case c == f.incoming && c.reply.Outcome.Errno == 0:
		f.lose(at, wire.CommandName(c.code)+": answered before its last byte was sent")
	case c == f.incoming:
		c.refused = at
	case p.Seq == 0 && partingErrno(c.reply.Outcome.Errno):
		c.statement.Outcome, c.parting = c.reply.Outcome, at
	default:
		c.statement.Outcome = c.reply.Outcome
		f.answered(c)
		f.finish(c, at)
		f.settle(at)
	}
}

// partingErrno tells the errors by which servers end a session that nobody asked for: shutdown, a kill, idleness. Such an
// ERR has the sequence id 0, which no answer has. If it crosses a command on its way it must not be taken for its answer.
func partingErrno(errno uint16) bool {
	switch errno {
	case 1053, 1317, 1927, 3169, 4031:
		return true
	}
	return false
}

// part takes an ERR for what it proved to be: the session's end, and no answer.
func (f *Follower) part(c *command) {
	f.end.Parting = *c.reply.Err()
	c.statement.First = 0
	c.reply.Outcome.Reset()
}

// partial ends a command that the server had refused before its last byte came, which now never will.
func (f *Follower) partial(at time.Duration) {
	c := f.incoming
	if c == nil || c.refused == 0 {
		return
	}
	f.incoming, c.cut = nil, true
	f.stamp(c, c.refused, c.refused)
	f.accept(c, at)
}

// leave gives up at a command that turns the connection into a stream that is not made of commands and replies.
func (f *Follower) leave(c *command, at time.Duration) {
	f.lose(at, wire.CommandName(c.code)+" turns the connection into another protocol")
}

// follow notes the sequence ids that come after a packet with this one, of either side.
func (c *command) follow(s *stream, seq byte) {
	c.next = seq + 1
	if s.frames != nil {
		c.frame = s.frames.Seq() + 1
	}
}

func (c *command) noteFirst(at time.Duration) {
	if c.statement.First == 0 {
		c.statement.First = at
	}
}

// answered takes over what a reply says of the session.
func (f *Follower) answered(c *command) {
	s := &c.statement
	if s.RunsSQL() {
		f.transactions.Assign(s)
	}
	if s.Outcome.Errno != 0 {
		if c.code == wire.ComStmtPrepare {
			f.lastID = 0
		}
		return
	}
	switch c.code {
	case wire.ComStmtPrepare:
		f.prepare(c)
	case wire.ComInitDB:
		f.schema = append(f.schema[:0], c.newSchema...)
	case wire.ComResetConnection:
		f.forget()
	case wire.ComQuery:
		f.followSchema(s)
	}
	if s.Outcome.State.SchemaChanged {
		f.schema = append(f.schema[:0], s.Outcome.State.Schema...)
	}
}

// followSchema notices a USE where the server does not report it by session tracking.
func (f *Follower) followSchema(s *capture.Statement) {
	if s.Outcome.Status&wire.StatusDBDropped != 0 {
		f.schema = f.schema[:0]
	}
	if f.caps.Has(wire.SessionTrack) {
		return
	}
	if name, ok := usedSchema(s.Text); ok {
		f.schema = append(f.schema[:0], name...)
	}
}

// usedSchema returns the name in a USE statement.
func usedSchema(text []byte) (name []byte, ok bool) {
	if len(text) == 0 || text[0] > ';' && text[0]|0x20 != 'u' { // most of the time nothing need be trimmed
		return nil, false
	}
	text = bytes.Trim(text, "; \t\r\n")
	if len(text) < 5 || !bytes.EqualFold(text[:3], []byte("use")) || bytes.IndexByte([]byte(" \t\r\n`"), text[3]) < 0 {
		return nil, false
	}
	name = bytes.TrimSpace(text[3:])
	if n := len(name); n > 2 && name[0] == '`' && name[n-1] == '`' {
		return bytes.ReplaceAll(name[1:n-1], []byte("``"), []byte("`")), true
	}
	return name, true
}
