package proxy

import (
	"bytes"
	"fmt"

	"redrive/capture"
	"redrive/internal/sqltext"
	"redrive/internal/wire"
)

// A conn hears what its follower understands, and records it. Its methods are called with mu held.

func (c *conn) LoggedIn(start *capture.SessionStart) {
	c.loggedIn, c.active = true, start.At
	c.start(start)
}

// into is where the recording takes this connection's records.
func (c *conn) into() *capture.Lane { return c.recorder.Lane(c.lane) }

// start records the beginning of the session, or where it joins.
func (c *conn) start(start *capture.SessionStart) {
	if c.recorder == nil {
		return
	}
	start.Session, start.Accepted, start.Client = c.id, c.accepted, c.origin
	c.into().SessionStart(start)
}

func (c *conn) Done(s *capture.Statement) {
	c.totals.Commands++
	if s.Flags.Has(capture.Truncated) {
		c.totals.Truncated++
	}
	if s.RunsSQL() {
		c.totals.Statements++
		if s.Outcome.Errno != 0 {
			c.totals.Errors++
		}
	}
	c.number = s.Number
	if c.recorder == nil {
		return
	}
	s.Session = c.id
	c.mask(s)
	c.into().Statement(s)
}

// begin records that a command is open.
func (c *conn) begin(s *capture.Statement) {
	s.Session = c.id
	s.Flags |= capture.Begun
	open := *s
	c.mask(&open)
	c.into().Begin(&open)
}

func (c *conn) Lost(reason string, clientOffset, serverOffset uint64) {
	c.lost = fmt.Sprintf("%s (behind byte %d of the client and byte %d of the server)", reason, clientOffset, serverOffset)
	c.totals.Opaque++
	c.proxy.Logger.Warn("connection no longer followed; it is relayed all the same", "session", c.id,
		"reason", reason, "client_offset", clientOffset, "server_offset", serverOffset)
}

// finish records the end of the connection.
func (c *conn) finish() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.look()
	at := c.proxy.Clock.Now()
	end := c.follower.Close(at)
	if !end.LoggedIn && end.Parting.Errno != 0 {
		c.totals.Rejected++
	}
	record := capture.SessionEnd{At: at, Errno: end.Parting.Errno, Commands: end.Commands, Reason: c.closer}
	switch {
	case c.lost != "":
		record.Reason, record.Detail = capture.EndOpaque, c.lost
	case c.stopped:
		record.Reason, record.Detail = capture.EndStopped, c.why
	case end.Quit:
		record.Reason = capture.EndQuit
	case !end.LoggedIn && end.Parting.Errno != 0:
		record.Reason = capture.EndRejected
	}
	if c.ended != nil && record.Detail == "" && !end.Quit && !c.stopped {
		record.Detail = c.ended.Error()
	}
	c.record(&record)
	c.recorder, c.next = nil, nil // nothing comes after the end
}

func (c *conn) record(end *capture.SessionEnd) {
	if c.recorder == nil {
		return
	}
	end.Session = c.id
	if end.At == 0 {
		end.At = c.proxy.Clock.Now()
	}
	c.into().SessionEnd(end)
}

// mask takes the literals out of a statement that may bear a password. It must not touch the bytes of s.Text, which
// are the follower's.
func (c *conn) mask(s *capture.Statement) {
	switch s.Command {
	case wire.ComInitDB, wire.ComFieldList, wire.ComChangeUser:
		return // names are no statements
	case wire.ComRegisterSlave: // a replica tells its password
		s.Text = nil
	case wire.ComStmtSendLongData:
		if !c.secretStatements[s.StatementID] {
			return
		}
		s.Text = nil
	default:
		if !mayBearPassword(s.Text) && !changesAccounts(s) {
			c.forgetSecret(s)
			return
		}
		c.noteSecret(s)
		s.Text = sqltext.Normalize(nil, s.Text)
	}
	s.Params = capture.Params{}
	s.Attributes = nil
	s.Flags |= capture.Masked
}

// noteSecret remembers a statement that may bear a password, for the long data that is sent for it.
func (c *conn) noteSecret(s *capture.Statement) {
	if s.Command != wire.ComStmtPrepare || s.StatementID == 0 {
		return
	}
	if c.secretStatements == nil {
		c.secretStatements = map[uint32]bool{}
	}
	c.secretStatements[s.StatementID] = true
}

// forgetSecret notes that the id belongs to another statement now.
func (c *conn) forgetSecret(s *capture.Statement) {
	if s.Command == wire.ComStmtPrepare && len(c.secretStatements) > 0 {
		delete(c.secretStatements, s.StatementID)
	}
}

// changesAccounts reports whether a statement is sent in the schema that keeps the accounts, and is no plain SELECT.
func changesAccounts(s *capture.Statement) bool {
	return bytes.EqualFold(s.Schema, accountSchema) && s.RunsSQL() && len(s.Text) > 0 && s.Text[0]|0x20 != 's'
}

// mayBearPassword is quick for what applications send all day, and errs on the side of caution for the rest: a
// statement that is neither a plain SELECT, INSERT, UPDATE, DELETE or the like, and names a password.
func mayBearPassword(text []byte) bool {
	text = bytes.TrimRight(text, "; \t\r\n")
	if len(text) < 12 {
		return false
	}
	switch text[0] {
	case 'S', 's':
		if text[1]|0x20 == 'e' && text[2]|0x20 == 'l' && bytes.IndexByte(text, ';') < 0 {
			return concernsAccounts(text)
		}
	case 'I', 'i', 'U', 'u', 'D', 'd', 'R', 'r', 'B', 'b':
		if bytes.IndexByte(text, ';') < 0 {
			return concernsAccounts(text)
		}
	}
	return containsAnyFold(text, secretWords)
}

// secretWords stand near passwords in statements that administer a server, in capitals as likely as not.
var secretWords = [][]byte{
	[]byte("password"), []byte("identified"), []byte("encrypted by"), []byte("secret"), []byte("mysql://"),
}

// Where a plain SELECT, INSERT, UPDATE or DELETE may bear a password: the function that hashes one, and the tables that
// keep them.
var (
	passwordFunctions = [][]byte{[]byte("PASSWORD("), []byte("password("), []byte("Password(")}
	accountTables     = [][]byte{
		[]byte("mysql.user"), []byte("mysql.global_priv"), []byte("`mysql`.`user`"), []byte("`mysql`.`global_priv`"),
	}
	accountSchema = []byte("mysql")
)

func concernsAccounts(text []byte) bool {
	return containsAny(text, passwordFunctions) || containsAnyFold(text, accountTables)
}

func containsAny(text []byte, words [][]byte) bool {
	for _, word := range words {
		if bytes.Contains(text, word) {
			return true
		}
	}
	return false
}

// containsAnyFold is containsAny for words of small letters, in whatever case they stand in text. It makes no copy of a
// text that may be large, and goes through it at the speed of bytes.IndexByte: the relay waits for it.
func containsAnyFold(text []byte, words [][]byte) bool {
	for _, word := range words {
		if containsFold(text, word, word[0]) || containsFold(text, word, word[0]-'a'+'A') {
			return true
		}
	}
	return false
}

// containsFold looks for word where text has its first letter so.
func containsFold(text, word []byte, first byte) bool {
	for {
		i := bytes.IndexByte(text, first)
		if i < 0 || len(text)-i < len(word) {
			return false
		}
		if text = text[i:]; bytes.EqualFold(text[:len(word)], word) {
			return true
		}
		text = text[1:]
	}
}
