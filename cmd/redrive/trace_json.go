package main

import (
	"fmt"
	"time"
	"unicode/utf8"

	"redrive/capture"
	"redrive/internal/wire"
)

// The objects of trace cat --format json; docs/trace.md describes them. Times are nanoseconds from the capture's start.

type statementJSON struct {
	Kind         string        `json:"kind"`
	Session      uint64        `json:"session"`
	Number       uint64        `json:"number"`
	Txn          uint64        `json:"txn,omitempty"`
	Place        uint32        `json:"place,omitempty"`
	TxnEnd       string        `json:"txn_end,omitempty"`
	Command      string        `json:"command"`
	Flags        []string      `json:"flags,omitempty"`
	StatementID  uint32        `json:"statement_id,omitempty"`
	Schema       string        `json:"schema,omitempty"`
	Text         string        `json:"text,omitempty"`
	TextBytes    []byte        `json:"text_base64,omitempty"`
	TextLen      uint64        `json:"text_len,omitempty"`
	TextHash     string        `json:"text_hash,omitempty"`
	Params       []string      `json:"params,omitempty"`
	ParamsError  string        `json:"params_error,omitempty"`
	Attributes   []byte        `json:"attributes_base64,omitempty"`
	Intended     time.Duration `json:"intended_ns,omitempty"`
	Received     time.Duration `json:"received_ns,omitempty"`
	Complete     time.Duration `json:"complete_ns,omitempty"`
	Sent         time.Duration `json:"sent_ns,omitempty"`
	First        time.Duration `json:"first_ns,omitempty"`
	Done         time.Duration `json:"done_ns,omitempty"`
	Stalled      time.Duration `json:"stalled_ns,omitempty"`
	RequestBytes uint64        `json:"request_bytes"`
	*outcomeJSON               // of a statement, not of a begin
}

type outcomeJSON struct {
	Service      time.Duration `json:"service_ns"`
	Results      uint32        `json:"results"`
	ResultSets   uint32        `json:"result_sets"`
	Rows         uint64        `json:"rows"`
	Affected     uint64        `json:"affected"`
	LastInsertID uint64        `json:"last_insert_id,omitempty"`
	Warnings     uint16        `json:"warnings,omitempty"`
	Status       *uint16       `json:"status,omitempty"`
	Errno        uint16        `json:"errno,omitempty"`
	SQLState     string        `json:"sqlstate,omitempty"`
	ReplyBytes   uint64        `json:"reply_bytes"`
	NewSchema    *string       `json:"new_schema,omitempty"`
	GTIDs        string        `json:"gtids,omitempty"`
	TxnState     string        `json:"transaction_state,omitempty"`
	Redirect     bool          `json:"redirect,omitempty"`
}

type sessionStartJSON struct {
	Kind          string            `json:"kind"`
	Session       uint64            `json:"session"`
	At            time.Duration     `json:"at_ns"`
	Accepted      time.Duration     `json:"accepted_ns,omitempty"`
	User          string            `json:"user"`
	Schema        string            `json:"schema,omitempty"`
	Collation     uint16            `json:"collation"`
	Capabilities  wire.Capabilities `json:"capabilities"`
	ConnectionID  uint64            `json:"connection_id"`
	ServerVersion string            `json:"server_version"`
	Status        uint16            `json:"status"`
	Client        string            `json:"client,omitempty"`
	Attributes    [][2]string       `json:"attributes,omitempty"`
	Source        uint64            `json:"source,omitempty"`
	Copy          uint32            `json:"copy,omitempty"`
	Joined        bool              `json:"joined,omitempty"`
	Prepared      []preparedJSON    `json:"prepared,omitempty"`
	Unknown       string            `json:"unknown,omitempty"`
}

type preparedJSON struct {
	ID     uint32 `json:"id"`
	Params uint16 `json:"params"`
	Text   string `json:"text"`
}

type sessionEndJSON struct {
	Kind     string        `json:"kind"`
	Session  uint64        `json:"session"`
	At       time.Duration `json:"at_ns"`
	Reason   string        `json:"reason"`
	Errno    uint16        `json:"errno,omitempty"`
	Detail   string        `json:"detail,omitempty"`
	Commands uint64        `json:"commands"`
}

type gapJSON struct {
	Kind       string        `json:"kind"`
	From       time.Duration `json:"from_ns"`
	To         time.Duration `json:"to_ns"`
	Statements uint64        `json:"statements"`
	Sessions   uint64        `json:"sessions"`
	Cut        uint64        `json:"cut,omitempty"`
	Reason     string        `json:"reason"`
}

func objectOf(rec *capture.Record, service time.Duration) any {
	kind := rec.Kind.String()
	switch rec.Kind {
	case capture.KindSessionStart:
		return sessionStartObject(kind, &rec.Start)
	case capture.KindSessionEnd:
		e := &rec.End
		return sessionEndJSON{kind, e.Session, e.At, e.Reason.String(), e.Errno, e.Detail, e.Commands}
	case capture.KindGap:
		g := &rec.Gap
		return gapJSON{kind, g.From, g.To, g.Statements, g.Sessions, g.Cut, g.Reason}
	}
	object := statementObject(kind, &rec.Statement)
	if rec.Kind == capture.KindStatement {
		object.outcomeJSON = outcomeObject(&rec.Statement.Outcome, service)
	}
	return object
}

func sessionStartObject(kind string, s *capture.SessionStart) sessionStartJSON {
	object := sessionStartJSON{
		Kind: kind, Session: s.Session, At: s.At, Accepted: s.Accepted, User: s.User, Schema: s.Schema,
		Collation: s.Collation, Capabilities: s.Capabilities, ConnectionID: s.ConnectionID,
		ServerVersion: s.ServerVersion, Status: s.Status, Client: s.Client, Source: s.Source, Copy: s.Copy,
	}
	for _, a := range s.Attributes {
		object.Attributes = append(object.Attributes, [2]string{a.Name, a.Value})
	}
	object.Joined, object.Unknown = s.Joined, s.Unknown
	for _, p := range s.Prepared {
		object.Prepared = append(object.Prepared, preparedJSON{p.ID, p.Params, string(p.Text)})
	}
	return object
}

func statementObject(kind string, s *capture.Statement) *statementJSON {
	object := &statementJSON{
		Kind: kind, Session: s.Session, Number: s.Number, Txn: s.Txn, Place: s.Place, TxnEnd: s.TxnEnd.String(),
		Command: commandName(s), Flags: s.Flags.Names(), StatementID: s.StatementID, Schema: string(s.Schema),
		TextLen: s.TextLen, Attributes: s.Attributes,
		Intended: s.Intended, Received: s.Received, Complete: s.Complete, Sent: s.Sent, First: s.First, Done: s.Done,
		Stalled: s.Stalled, RequestBytes: s.RequestBytes,
	}
	if utf8.Valid(s.Text) {
		object.Text = string(s.Text)
	} else {
		object.TextBytes = s.Text
	}
	if s.TextHash != 0 {
		object.TextHash = fmt.Sprintf("%016x", s.TextHash) // JSON's numbers end at 53 bits
	}
	params, err := literals(s)
	object.Params = params
	if err != nil {
		object.ParamsError = err.Error()
	}
	return object
}

func outcomeObject(o *capture.Outcome, service time.Duration) *outcomeJSON {
	object := &outcomeJSON{
		Service: service, Results: o.Results, ResultSets: o.ResultSets, Rows: o.Rows, Affected: o.Affected,
		LastInsertID: o.LastInsertID, Warnings: o.Warnings, Errno: o.Errno, ReplyBytes: o.ReplyBytes,
		GTIDs: string(o.State.GTIDs), TxnState: string(o.State.Transaction), Redirect: o.State.Redirect,
	}
	if o.HasStatus {
		object.Status = &o.Status
	}
	if o.SQLState != [5]byte{} {
		object.SQLState = string(o.SQLState[:])
	}
	if o.State.SchemaChanged {
		schema := string(o.State.Schema)
		object.NewSchema = &schema
	}
	return object
}
