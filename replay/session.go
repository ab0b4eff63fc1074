package replay

import (
	"context"
	"fmt"
	"time"

	"redrive/capture"
	"redrive/internal/client"
	"redrive/internal/session"
	"redrive/internal/wire"
)

// copied are the capabilities that change what statements mean or may be sent, and so are the captured client's.
const copied = wire.FoundRows | wire.MultiStatements | wire.IgnoreSpace | wire.Interactive | wire.LocalFiles |
	wire.StmtBulk | wire.BulkUnitResults

// An actor is one session on the target: a captured one's, or a copy's. It belongs to the goroutine of its run.
type actor struct {
	*Player
	queue   *queue
	file    int
	session capture.SessionStart // the one it plays
	copy    uint32               // 0 for the session itself
	turn    <-chan struct{}      // closes when it may start; nil: as soon as it is due
	due     time.Duration        // when to connect
	opening *item                // what its waiting costs

	id           uint64 // in the recording
	conn         Conn   // nil before the login, and after the end
	gone         bool   // its login was refused, or its connection lost
	caps         wire.Capabilities
	statements   statements
	transactions session.Transactions
	begun        map[uint64]capture.Outcome // of statements sent at their begin, by captured number
	number       uint64                     // of the last command, in the recording
	prev         time.Duration              // when it was done
	payload      []byte
	out          capture.Statement
	progress     progress
}

func newActor(p *Player, key groupKey, start *capture.SessionStart, copy uint32) *actor {
	return &actor{
		Player: p, queue: newQueue(), file: key.file, session: *start, copy: copy,
		id:    uint64(copy)*p.stride + p.base[key.file] + key.session,
		begun: map[uint64]capture.Outcome{},
	}
}

// run plays the session from its connect to its end. Every item that is put into its queue gets its fate here, also
// after the connection was lost or the replay stopped.
func (a *actor) run(ctx context.Context) {
	if a.await(ctx) {
		a.connect(ctx)
		a.restore(ctx)
	}
	a.opening.release()
	for i := a.queue.take(); i != nil; i = a.queue.take() {
		a.play(ctx, i)
		i.release()
	}
	a.hangUp(capture.EndClient, "")
}

// await waits for the session's turn and time.
func (a *actor) await(ctx context.Context) bool {
	if a.turn != nil {
		select {
		case <-a.turn:
		case <-ctx.Done():
			return false
		}
	}
	return a.until(ctx, a.due)
}

// connect logs in. Where that fails the whole session is lost.
func (a *actor) connect(ctx context.Context) {
	a.live.Store(a, struct{}{})
	a.presence.comes()
	a.progress.begin(a.Clock.Now, nil)
	conn, start, err := a.Dial(ctx, a.config())
	if err != nil {
		a.live.Delete(a)
		a.turnedAway(ctx, err)
		return
	}
	a.presence.admitted()
	a.result.opened()
	a.conn, a.caps, a.prev = conn, start.Capabilities, start.Ready()
	start.Session, start.Source, start.Copy = a.id, a.session.Session, a.copy
	a.progress.end(func() {
		if a.Recorder != nil {
			a.Recorder.SessionStart(start)
		}
	})
}

// config is the target's, with what the captured session brought along.
func (a *actor) config() client.Config {
	c := a.Config
	if a.session.Schema != "" {
		c.Schema = a.session.Schema
	}
	if a.session.Collation <= 0xFF { // a login has room for one byte
		c.Collation = byte(a.session.Collation)
	}
	c.Capabilities |= a.session.Capabilities & copied
	return c
}

// hangUp ends the session, if it has not ended yet.
func (a *actor) hangUp(reason capture.EndReason, detail string) {
	if a.conn == nil {
		return
	}
	a.progress.begin(a.Clock.Now, nil)
	a.conn.Close() // what it could not say any more changes nothing
	a.conn = nil
	end := capture.SessionEnd{Session: a.id, At: a.Clock.Now(), Reason: reason, Detail: detail, Commands: a.number}
	a.progress.end(func() {
		if a.Recorder != nil {
			a.Recorder.SessionEnd(&end)
		}
	})
	a.live.Delete(a)
	if !a.gone {
		a.presence.leaves()
	}
}

// play does what an item asks for.
func (a *actor) play(ctx context.Context, i *item) {
	switch i.act {
	case actCompare:
		a.compareBegun(i.statement)
	case actEnd:
		if a.conn == nil {
			return
		}
		if a.until(ctx, i.due) {
			a.hangUp(capture.EndClient, "")
			return
		}
		a.hangUp(capture.EndStopped, stopped(ctx))
	default:
		fate, reason := a.fate(ctx, i)
		a.result.count(i.statement, a.copy, fate, reason)
	}
}

// fate plays a statement and says what became of it.
func (a *actor) fate(ctx context.Context, i *item) (fate fate, reason string) {
	if reason := a.skips(i); reason != "" {
		a.statements.skipped(i.statement, reason)
		return fateSkipped, reason
	}
	if a.conn != nil && !a.until(ctx, i.due) {
		a.hangUp(capture.EndStopped, stopped(ctx))
	}
	switch {
	case a.conn != nil:
		return a.perform(ctx, i)
	case ctx.Err() != nil && !a.gone:
		return fateUnreached, ""
	}
	return fateLost, ""
}

// skips says why the session does not send a statement.
func (a *actor) skips(i *item) string {
	if a.copy > 0 && i.skip == "" {
		return i.skipCopy
	}
	return i.skip
}

// where is the captured place of a command, for people.
func (a *actor) where(number uint64) string {
	place := fmt.Sprintf("%d.%d", a.session.Session, number)
	if len(a.Files) > 1 {
		return a.Files[a.file].Name + ":" + place
	}
	return place
}
