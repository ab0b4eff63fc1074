package replay

import (
	"context"

	"redrive/capture"
	"redrive/internal/wire"
)

// restore puts the session where the captured one was when it joined the recording, as far as that is known: its
// autocommit, and a transaction that was open. Its prepared statements come from the executes, which carry their texts.
func (a *actor) restore(ctx context.Context) {
	status := a.session.Status
	if !a.session.Joined || a.conn == nil {
		return
	}
	if status&wire.StatusAutocommit == 0 {
		a.say(ctx, "SET autocommit=0")
	}
	if status&wire.StatusInTrans != 0 {
		a.say(ctx, "START TRANSACTION")
	}
}

// say sends a query of our own. What comes of it is on record; a connection it loses is lost as by any other.
func (a *actor) say(ctx context.Context, text string) {
	if a.conn == nil {
		return
	}
	s := capture.Statement{Command: wire.ComQuery, Text: []byte(text), Schema: []byte(a.session.Schema)}
	a.begin(&s, a.prev)
	_, _ = a.exchange(ctx, a.command(&s, nil))
}
