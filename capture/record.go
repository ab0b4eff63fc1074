package capture

import (
	"time"

	"redrive/internal/wire"
)

// Kind says what a record is.
type Kind byte

const (
	KindStatement    Kind = 1 + iota // a command and what became of it
	KindBegin                        // a command that had been open for a second when this was written
	KindSessionStart                 // a login that succeeded
	KindSessionEnd                   // the end of a connection, logged in or not
	KindGap                          // what was shed, and why
)

// A Record is one entry of a capture file: a kind, and the field that goes with it.
type Record struct {
	Kind      Kind
	Statement Statement    // KindStatement, KindBegin
	Start     SessionStart // KindSessionStart
	End       SessionEnd   // KindSessionEnd
	Gap       Gap          // KindGap
}

// Outcome is what became of a statement: counts, status, error, as the server's reply told them.
type Outcome = wire.Outcome

// A Statement is one command of a session together with what became of it. Commands that run no SQL (a PREPARE, a
// PING) are recorded too: RunsSQL tells them apart. Times count from the start of the capture, so that files can be
// cut and joined; a time that does not apply is 0.
type Statement struct {
	Session uint64 // connection the command came in on; unique within a file, from 1
	Number  uint64 // of the command within its session, from 1, without holes
	Txn     uint64 // transaction of the session, from 1; 0 for commands that belong to none
	Place   uint32 // within the transaction, from 1
	TxnEnd  TxnEnd // how the transaction ended with this statement; TxnOpen if it did not

	Command     byte   // COM_QUERY, COM_STMT_EXECUTE, …
	Flags       Flags  // what is special about this record
	StatementID uint32 // the server's id of the prepared statement concerned; of a PREPARE the one it was given
	Schema      []byte // default schema when the command was sent
	Text        []byte // SQL text; of an execute or close, the text it was prepared from; else the rest of the payload
	TextLen     uint64 // length of the whole text, if Flags has Truncated; of an execute, of its payload
	TextHash    uint64 // FNV-1a (64 bit) of the same; 0 of a COM_CHANGE_USER, whose payload has a secret
	Params      Params // of an execute; of a fetch Values alone: the number of rows, four bytes
	Attributes  []byte // query attributes as sent; nil if none
	File        []byte // the file the client sent for LOCAL INFILE, if Flags has FileKept

	Intended time.Duration // when it was due; 0 where nothing paced it
	Received time.Duration // first byte read from the client (proxy)
	Complete time.Duration // last byte read from the client (proxy)
	Sent     time.Duration // return of the write that passed its last byte to the server
	First    time.Duration // first byte of the reply; 0 if there was none
	Done     time.Duration // last byte of the reply, or when it became clear that none would come
	Stalled  time.Duration // time the reply waited for a client that did not read (proxy)

	RequestBytes uint64 // packet headers included
	Outcome      Outcome
}

// Params are an execute's parameters as sent, with the types in force, so that they can be decoded by themselves.
type Params struct {
	Nulls  []byte // NULL bitmap
	Types  []byte // two bytes a parameter: type and flags
	Values []byte // binary values of those that are neither NULL nor sent as long data; of a bulk execute, flags and rows
	Long   []byte // bitmap of those sent as long data before, which stand in records of their own; nil if none was
}

// TxnEnd is how a transaction ended.
type TxnEnd byte

const (
	TxnOpen       TxnEnd = iota // it did not end with this statement
	TxnAuto                     // the statement was a transaction of its own (autocommit)
	TxnCommit                   // by COMMIT
	TxnRollback                 // by ROLLBACK
	TxnImplicit                 // committed by a statement that commits: DDL, SET autocommit=1, BEGIN
	TxnError                    // rolled back by the server because of this statement's error
	TxnDisconnect               // the session ended, or was reset, with it open
)

// Flags tell what is special about a statement's record.
type Flags uint16

const (
	Truncated   Flags = 1 << iota // Text is a prefix; replay skips the statement
	Unanswered                    // the connection ended before a reply began
	Cut                           // the connection ended within the reply
	Begun                         // a begin record went before
	TextUnknown                   // an execute whose PREPARE was not seen: Text is empty
	NoTypes                       // an execute whose parameter types were not seen
	NoOutcome                     // never sent to a server: outcome and times of the reply are absent
	Cursor                        // an execute that asked for a cursor
	Infile                        // the server asked for a file
	Copy                          // one of a replay's extra copies: it has no counterpart in the capture
	Unparsed                      // the reply was not understood: outcome and times of the reply are absent
	Masked                        // Text bore a password and is its digest text instead; replay skips the statement
	FileKept                      // File is the whole of the file the server asked for
)

// Has reports whether every flag of want is set.
func (f Flags) Has(want Flags) bool { return f&want == want }

// RunsSQL reports whether the command runs SQL (COM_QUERY, COM_STMT_EXECUTE, COM_STMT_BULK_EXECUTE): what analyze and
// replay count as a statement.
func (s *Statement) RunsSQL() bool { return wire.RunsSQL(s.Command) }

// Due is when the statement was due: as intended or, where nothing paced it, when it arrived (proxy) or when the
// session's previous one was done (closed loop). prevDone is Done of the session's previous command; of the first one,
// SessionStart.Ready.
func (s *Statement) Due(prevDone time.Duration) time.Duration {
	switch {
	case s.Intended != 0:
		return s.Intended
	case s.Received != 0:
		return s.Received
	}
	return prevDone
}

// Wait is the time spent queued behind the session's own previous command: the database was slow before.
func (s *Statement) Wait(prevDone time.Duration) time.Duration {
	return max(0, prevDone-s.Due(prevDone))
}

// Lag is how late we were by our own fault: past the due time and the session's previous reply.
func (s *Statement) Lag(prevDone time.Duration) time.Duration {
	return max(0, s.start()-max(s.Due(prevDone), prevDone))
}

// Service is the time the database (and the network) took. At the proxy it counts from the client's last byte read.
func (s *Statement) Service(prevDone time.Duration) time.Duration {
	return max(0, s.Done-max(s.start(), prevDone))
}

// Response is what a user would have felt: from the due time to the last byte.
func (s *Statement) Response(prevDone time.Duration) time.Duration {
	return max(0, s.Done-s.Due(prevDone))
}

// start is when the statement was on its way: at the proxy its last byte read, for a load client its last byte sent.
func (s *Statement) start() time.Duration {
	if s.Complete != 0 {
		return s.Complete
	}
	return s.Sent
}

// Started is the earliest time the record knows of the statement: what start order sorts by.
func (s *Statement) Started() time.Duration {
	switch {
	case s.Received != 0:
		return s.Received
	case s.Sent != 0:
		return s.Sent
	}
	return s.Intended
}

// A SessionStart is a login that succeeded.
type SessionStart struct {
	Session       uint64
	At            time.Duration     // the server's OK; what the connection cost began at Accepted
	Accepted      time.Duration     // the client's connection came in, or was dialed
	User          string            // as the client named it
	Schema        string            // initial default schema; empty for none
	Collation     uint16            // the client's; names the character set
	Capabilities  wire.Capabilities // negotiated
	ConnectionID  uint64            // the server's
	ServerVersion string            // as the greeting put it
	Status        uint16            // status flags of the login's OK; of a session that joined, the latest
	Client        string            // address of the client
	Attributes    []wire.Attribute  // connection attributes
	Source        uint64            // replay: the captured session this one plays; 0 elsewhere
	Copy          uint32            // replay: 0 for the session itself, 1… for its copies

	// Of a session that was open before the recording began: what could be told of it then.
	Joined   bool       // At is when it joined; User and what else the login tells are those in force by then
	Prepared []Prepared // statements the server keeps for it, by id
	Unknown  string     // what could not be known, for people
}

// A Prepared is a statement that had been prepared before its session joined the recording.
type Prepared struct {
	ID     uint32
	Params uint16
	Types  []byte // of its last execute: two bytes a parameter; nil if none bound any
	Text   []byte
}

// Ready is when the session could take its first command, and so that command's prevDone: the end of the login. It is 0
// for a session that joined, as what went before is not known.
func (s *SessionStart) Ready() time.Duration {
	if s.Joined {
		return 0
	}
	return s.At
}

// A SessionEnd is the end of a connection.
type SessionEnd struct {
	Session  uint64
	At       time.Duration
	Reason   EndReason
	Errno    uint16 // the server's parting error, if it sent one
	Detail   string // for people: what was not understood, which side closed
	Commands uint64 // commands the session sent: the last one's number
}

// EndReason is why a session ended.
type EndReason byte

const (
	EndQuit     EndReason = 1 + iota // the client said COM_QUIT
	EndClient                        // the client closed or vanished
	EndServer                        // the server closed
	EndRejected                      // the login failed
	EndOpaque                        // from here on the bytes were relayed without being understood
	EndStopped                       // we stopped: recording ended, or the program
	EndBroken                        // an error on our own side
)

// A Gap tells what was left out of the capture, and why.
type Gap struct {
	From, To   time.Duration
	Statements uint64 // records shed, statements and begins of statements not counted twice
	Sessions   uint64 // session records shed
	Cut        uint64 // transactions of which the rest was shed when their beginning was stored
	Reason     string
}

// add widens the gap by another. Its reason is the first there was.
func (g *Gap) add(o *Gap) {
	if o.empty() {
		return
	}
	if g.empty() {
		g.From, g.Reason = o.From, o.Reason
	}
	g.From, g.To = min(g.From, o.From), max(g.To, o.To)
	g.Statements += o.Statements
	g.Sessions += o.Sessions
	g.Cut += o.Cut
}

func (g *Gap) empty() bool { return g.Statements == 0 && g.Sessions == 0 && g.Cut == 0 }

// A Ledger accounts for every command that was forwarded: Stored + Shed + Unfinished = Forwarded.
type Ledger struct {
	Forwarded  uint64 `json:"forwarded"`  // commands seen, counted before recording
	Stored     uint64 `json:"stored"`     // statement records in the file
	Shed       uint64 `json:"shed"`       // left out, as the gap records say
	Unfinished uint64 `json:"unfinished"` // without an end when the capture ended
	Opaque     uint64 `json:"opaque"`     // sessions that were relayed without being understood
}
