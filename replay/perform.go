package replay

import (
	"context"
	"encoding/binary"
	"errors"
	"time"

	"redrive/capture"
	"redrive/internal/client"
	"redrive/internal/wire"
)

// stopped is why sessions end when a replay is stopped.
func stopped(ctx context.Context) string {
	if up := new(surrender); errors.As(context.Cause(ctx), &up) {
		return "the replay gave up"
	}
	return "the replay was interrupted"
}

// keptPayload is the largest command buffer that is kept for the next command.
const keptPayload = 1 << 20

// perform sends one statement, and what must go before it. An error of the connection loses it.
func (a *actor) perform(ctx context.Context, i *item) (fate fate, reason string) {
	s := i.statement
	statement, reason, err := a.statementOf(ctx, i)
	switch {
	case err != nil:
		return fateLost, ""
	case reason != "":
		a.statements.skipped(s, reason)
		return fateSkipped, reason
	case s.Command == wire.ComQuit:
		a.quit(i)
		return fateReplayed, ""
	}
	a.begin(s, i.due)
	if statement != nil {
		a.out.StatementID = statement.id
	}
	a.out.Flags |= s.Flags & capture.Cursor
	a.conn.Offer(s.File)
	reply, err := a.exchange(ctx, a.command(s, statement))
	if err != nil {
		return fateLost, ""
	}
	if a.copy == 0 {
		a.compareTo(i, &reply.Outcome)
	} else if reply.Outcome.Errno != 0 {
		a.result.copyError()
	}
	a.answered(ctx, s, reply)
	return fateReplayed, ""
}

// begin sets up the record of the next command.
func (a *actor) begin(s *capture.Statement, due time.Duration) {
	a.out = capture.Statement{
		Command: s.Command, Text: s.Text, Schema: s.Schema, Params: s.Params, Intended: a.intended(due),
	}
	if a.copy > 0 {
		a.out.Flags = capture.Copy
	}
}

// intended is what is recorded as due: nothing at full speed, where a command is due when the one before is done.
func (a *actor) intended(due time.Duration) time.Duration {
	if !a.schedule.Paced() {
		return 0
	}
	return max(1, due) // 0 would say that nothing paced it
}

// exchange sends the command that begin and the caller have described, reads its reply and records both. An error
// means that the connection is lost, and the session with it.
func (a *actor) exchange(ctx context.Context, payload []byte) (*wire.Reply, error) {
	out := &a.out
	a.number++
	out.Session, out.Number = a.id, a.number
	out.RequestBytes = uint64(len(payload) + wire.HeaderLen*(1+len(payload)/wire.MaxPayload))
	a.progress.begin(a.Clock.Now, out)
	reply, times, err := a.conn.Do(payload)
	a.progress.end(func() { a.complete(reply, times, err) })
	if cap(a.payload) > keptPayload {
		a.payload = nil
	}
	if err == nil {
		return reply, nil
	}
	reason := capture.EndServer
	if ctx.Err() != nil {
		reason = capture.EndStopped
	}
	a.gone = ctx.Err() == nil
	a.hangUp(reason, err.Error())
	a.abandoned(ctx, err)
	return nil, err
}

// complete adds what came of the command at hand, and records it.
func (a *actor) complete(reply *wire.Reply, times client.Times, err error) {
	out := &a.out
	out.First, out.Done = times.First, times.Done
	if times.Sent != 0 { // else the time before it was tried
		out.Sent = times.Sent
	}
	out.Outcome = reply.Outcome
	if reply.AskedFile() {
		out.Flags |= capture.Infile
	}
	switch {
	case err != nil && out.First == 0:
		out.Flags |= capture.Unanswered
	case err != nil:
		out.Flags |= capture.Cut
	}
	if out.Done == 0 { // no reply, or none to come
		out.Done = max(out.Sent, a.Clock.Now())
	}
	switch {
	case !out.RunsSQL():
	case err != nil:
		a.transactions.Abandon(out)
	default:
		a.transactions.Assign(out)
		a.result.timed(out, a.prev)
	}
	if a.Recorder != nil {
		a.Recorder.Statement(out)
	}
	a.prev = out.Done
}

// quit says goodbye as the captured client did. Its record is made here: Close sends it.
func (a *actor) quit(i *item) {
	a.begin(i.statement, i.due)
	a.number++
	a.out.Session, a.out.Number, a.out.RequestBytes = a.id, a.number, wire.HeaderLen+1
	a.progress.begin(a.Clock.Now, &a.out)
	a.progress.end(func() {
		a.out.Done = a.out.Sent
		if a.Recorder != nil {
			a.Recorder.Statement(&a.out)
		}
	})
	a.hangUp(capture.EndQuit, "")
}

// command is the payload that sends s, whose prepared statement on the target is p.
func (a *actor) command(s *capture.Statement, p *prepared) []byte {
	b := a.payload[:0]
	switch s.Command {
	case wire.ComQuery:
		b = wire.AppendQuery(b, s.Text, s.Attributes, a.caps)
	case wire.ComStmtExecute:
		b = appendExecute(b, s, p)
	case wire.ComStmtClose, wire.ComStmtReset:
		b = binary.LittleEndian.AppendUint32(append(b, s.Command), p.id)
	case wire.ComStmtFetch:
		b = binary.LittleEndian.AppendUint32(append(b, s.Command), p.id)
		b = binary.LittleEndian.AppendUint32(b, fetchCount(s))
	case wire.ComStmtBulkExecute:
		b = appendBulk(b, s, p)
	case wire.ComStmtSendLongData:
		b = append(binary.LittleEndian.AppendUint32(append(b, s.Command), p.id), s.Text...)
	default:
		b = append(append(b, s.Command), s.Text...)
	}
	a.payload = b
	return b
}

// appendExecute leaves out query attributes, which stand behind the statement's own parameters.
func appendExecute(b []byte, s *capture.Statement, p *prepared) []byte {
	var flags byte
	if s.Flags.Has(capture.Cursor) {
		flags = wire.CursorReadOnly
	}
	nulls, types := s.Params.Nulls, s.Params.Types
	if n := p.params; n < len(types)/2 {
		types, nulls = types[:2*n], nulls[:min(len(nulls), (n+7)/8)]
	}
	return wire.AppendExecute(b, p.id, flags, nulls, types, s.Params.Values)
}

// appendBulk sends the types along, as the record has them of every bulk execute.
func appendBulk(b []byte, s *capture.Statement, p *prepared) []byte {
	c := wire.NewCursor(s.Params.Values)
	flags := c.Uint16()
	return wire.AppendBulk(b, wire.Bulk{ID: p.id, Flags: flags, Types: s.Params.Types, Rows: c.Rest()})
}

// fetchCount is how many rows a FETCH asks for: as recorded, or else as many as it got.
func fetchCount(s *capture.Statement) uint32 {
	if len(s.Params.Values) == 4 {
		return binary.LittleEndian.Uint32(s.Params.Values)
	}
	return uint32(max(1, s.Outcome.Rows))
}
