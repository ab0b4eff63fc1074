package replay

import (
	"bytes"
	"context"

	"redrive/capture"
	"redrive/internal/wire"
)

// A prepared is a statement prepared on the target.
type prepared struct {
	id     uint32 // the target's
	text   []byte
	params int
	skip   string // why it is not there, and what concerns it is not sent; empty if it was prepared
}

// statements are a session's prepared statements, by the id the captured server gave them.
type statements struct {
	byID     map[uint32]*prepared
	longLost map[uint32]bool // those whose next execute lacks long data that was skipped
}

func (m *statements) set(id uint32, p *prepared) {
	if m.byID == nil {
		m.byID = map[uint32]*prepared{}
	}
	m.byID[id] = p
}

// skipped notes what follows from a command that was not sent: what concerns a statement goes with its PREPARE.
func (m *statements) skipped(s *capture.Statement, reason string) {
	switch s.Command {
	case wire.ComStmtPrepare:
		if s.StatementID != 0 {
			m.set(s.StatementID, &prepared{skip: reason})
		}
	case wire.ComStmtSendLongData:
		if m.longLost == nil {
			m.longLost = map[uint32]bool{}
		}
		m.longLost[s.StatementID] = true
	case wire.ComStmtReset, wire.ComStmtClose:
		delete(m.longLost, s.StatementID)
	}
}

// statementOf finds the prepared statement that a command concerns, nil if it concerns none. One that was prepared
// before the capture, or whose PREPARE was shed, is prepared now, from the text that the execute carries. A reason says
// why the command must be skipped; an error, that the connection was lost.
func (a *actor) statementOf(ctx context.Context, i *item) (p *prepared, reason string, err error) {
	s := i.statement
	switch s.Command {
	case wire.ComStmtExecute, wire.ComStmtClose, wire.ComStmtReset, wire.ComStmtFetch,
		wire.ComStmtSendLongData, wire.ComStmtBulkExecute:
	default:
		return nil, "", nil
	}
	m := &a.statements
	p = m.byID[s.StatementID]
	if s.Command == wire.ComStmtExecute || s.Command == wire.ComStmtBulkExecute {
		if m.longLost[s.StatementID] {
			delete(m.longLost, s.StatementID)
			return nil, skipLongData, nil
		}
		if p == nil || !bytes.Equal(p.text, s.Text) {
			if p, err = a.prepareNow(ctx, i); err != nil {
				return nil, "", err
			}
		}
	}
	if s.Command == wire.ComStmtClose {
		delete(m.byID, s.StatementID)
	}
	switch {
	case p == nil:
		return nil, skipStatement, nil
	case p.skip != "":
		return nil, p.skip, nil
	}
	return p, "", nil
}

// prepareNow sends a PREPARE that the capture does not have at this place.
func (a *actor) prepareNow(ctx context.Context, i *item) (*prepared, error) {
	s := *i.statement
	s.Command, s.Params, s.Flags = wire.ComStmtPrepare, capture.Params{}, 0
	a.begin(&s, i.due)
	reply, err := a.exchange(ctx, a.command(&s, nil))
	if err != nil {
		return nil, err
	}
	return a.keep(&s, reply), nil
}

// keep remembers what a PREPARE has given.
func (a *actor) keep(s *capture.Statement, reply *wire.Reply) *prepared {
	p := &prepared{id: reply.Prepared.ID, params: int(reply.Prepared.Params), text: bytes.Clone(s.Text)}
	if reply.Outcome.Errno != 0 {
		p.skip = skipPrepare
	}
	a.statements.set(s.StatementID, p)
	return p
}

// answered takes over what a reply means for the commands to come.
func (a *actor) answered(ctx context.Context, s *capture.Statement, reply *wire.Reply) {
	switch s.Command {
	case wire.ComStmtPrepare:
		if s.StatementID != 0 {
			a.keep(s, reply)
		} else if reply.Outcome.Errno == 0 { // it failed when it was captured: nobody will close it
			a.closeUnused(ctx, reply.Prepared.ID)
		}
	case wire.ComResetConnection:
		if reply.Outcome.Errno == 0 {
			a.statements = statements{}
			a.transactions.Reset()
		}
	}
}

func (a *actor) closeUnused(ctx context.Context, id uint32) {
	s := capture.Statement{Command: wire.ComStmtClose}
	a.begin(&s, a.prev)
	a.out.StatementID = id
	_, _ = a.exchange(ctx, a.command(&s, &prepared{id: id})) // where the connection is lost that is on record
}
