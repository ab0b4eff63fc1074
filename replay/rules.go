package replay

import (
	"bytes"

	"redrive/capture"
	"redrive/internal/sqltext"
	"redrive/internal/wire"
)

// Why a command of a capture is not sent to the target. The words are the report's.
const (
	skipTruncated   = "text not recorded in full"
	skipMasked      = "text masked in the capture"
	skipUnknown     = "prepared before the capture, text unknown"
	skipTypes       = "types of parameters unknown"
	skipFile        = "local file not recorded"
	skipAdmin       = "never replayed: replication, KILL, SHUTDOWN and the like"
	skipAccount     = "never replayed: changes of user or password"
	skipPrepare     = "its PREPARE failed on the target"
	skipStatement   = "of a statement prepared before the capture, or no longer there"
	skipLongData    = "long data skipped before"
	skipCopyWrites  = "copies run reads only: it may write or lock"
	skipCopyCommand = "copies run reads only: administrative command"
)

// skipRule says why a command is never sent, by the record alone; "" means that it is.
func skipRule(s *capture.Statement) string {
	switch {
	case s.Flags.Has(capture.Masked):
		return skipMasked
	case s.Flags.Has(capture.Truncated):
		return skipTruncated
	case s.Flags.Has(capture.TextUnknown):
		return skipUnknown
	case s.Flags.Has(capture.NoTypes):
		return skipTypes
	case s.Flags.Has(capture.Infile) && !s.Flags.Has(capture.FileKept):
		return skipFile
	case wire.LeavesProtocol(s.Command):
		return skipAdmin
	}
	switch s.Command {
	case wire.ComRegisterSlave, wire.ComShutdown, wire.ComProcessKill:
		return skipAdmin
	case wire.ComChangeUser:
		return skipAccount
	case wire.ComQuery, wire.ComStmtPrepare, wire.ComStmtExecute:
		return forbiddenSQL(s.Text)
	}
	return ""
}

// forbiddenSQL says why no statement of this text is sent. Ids of threads differ on the target, passwords are not
// ours to change.
func forbiddenSQL(text []byte) string {
	if !mayBeForbidden(text) {
		return ""
	}
	l := sqltext.NewLexer(text, 0)
	first, second := "", ""
	for {
		t := l.Next()
		word := string(bytes.ToLower(l.Bytes(t)))
		switch {
		case t.Kind == sqltext.End || t.Kind == sqltext.Operator && word == ";":
			if reason := forbiddenWords(first, second); reason != "" || t.Kind == sqltext.End {
				return reason
			}
			first, second = "", ""
		case word == "kill" && first == "begin" && second == "not": // within BEGIN NOT ATOMIC … END
			return skipAdmin
		case word == "for" && first == "set" && second == "statement": // SET STATEMENT … FOR what counts
			first, second = "", ""
		case t.Kind == sqltext.Hint || t.Kind == sqltext.Operator && word == "(":
		case first == "":
			first = word
		case second == "":
			second = word
		}
	}
}

func forbiddenWords(first, second string) string {
	switch first {
	case "kill", "shutdown", "restart", "clone":
		return skipAdmin
	case "set":
		if second == "password" {
			return skipAccount
		}
	}
	return ""
}

// mayBeForbidden spares the lexer what applications send all day: one statement with a first letter that none of the
// forbidden words has.
func mayBeForbidden(text []byte) bool {
	if len(text) == 0 {
		return false
	}
	switch text[0] | 0x20 {
	case 'i', 'u', 'd', 'b': // insert, update, delete, begin
	case 's':
		if len(text) < 3 || text[1]|0x20 != 'e' || text[2]|0x20 != 'l' { // not select
			return true
		}
	default:
		return true
	}
	return bytes.IndexByte(text, ';') >= 0
}

// writes reports whether sending the command may change what the target keeps. A command we do not know may.
func writes(s *capture.Statement) bool {
	switch s.Command {
	case wire.ComQuery, wire.ComStmtExecute:
		return sqltext.Writes(s.Text)
	case wire.ComSleep, wire.ComQuit, wire.ComInitDB, wire.ComFieldList, wire.ComStatistics, wire.ComProcessInfo, wire.ComDebug,
		wire.ComPing, wire.ComStmtPrepare, wire.ComStmtSendLongData, wire.ComStmtClose, wire.ComStmtReset,
		wire.ComSetOption, wire.ComStmtFetch, wire.ComResetConnection:
		return false
	}
	return true
}

// copySkipRule says why copies of a session do not send what the session itself does: they may neither write nor take
// locks that the captured sessions would wait for.
func copySkipRule(s *capture.Statement) string {
	switch s.Command {
	case wire.ComQuery, wire.ComStmtExecute, wire.ComStmtPrepare:
		if sqltext.Locks(s.Text) {
			return skipCopyWrites
		}
	case wire.ComStmtBulkExecute:
		return skipCopyWrites
	case wire.ComDebug:
		return skipCopyCommand
	default:
		if writes(s) {
			return skipCopyCommand
		}
	}
	return ""
}
