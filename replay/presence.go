package replay

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"redrive/internal/wire"
)

// enoughRefusals is how many logins refused in a row are taken for an answer.
const enoughRefusals = 3

// A surrender is why a replay stopped by itself.
type surrender struct{ reason string }

func (s *surrender) Error() string { return s.reason }

// presence counts who is there, so that a replay need not go on for hours after the target is lost to it. It gives up
// where no session is open or logging in, and either the last logins, of three captured sessions or more, were all
// refused with the same error, or the last session lost its connection and another login, tried at once, is refused.
type presence struct {
	giveUp context.CancelCauseFunc

	mu      sync.Mutex
	toCome  uint64 // sessions that have not yet asked to log in
	present int    // sessions open or logging in
	refused int    // logins refused in a row, not counting copies'
	errno   uint16 // with what error; 0: no server answered

	firstRefusal, firstLoss sync.Once
}

// comes counts a session that is about to log in.
func (p *presence) comes() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.toCome--
	p.present++
}

// admitted counts a login that was accepted.
func (p *presence) admitted() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.refused = 0
}

// leaves counts a session that has ended, however. It reports whether nobody is left while others are to come.
func (p *presence) leaves() (alone bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.present--
	return p.present == 0 && p.toCome > 0
}

// empty reports whether nobody is there.
func (p *presence) empty() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.present == 0
}

// refuse counts a refused login. It reports whether there is no hope for the others.
func (p *presence) refuse(err error, isCopy bool) (hopeless bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.present--
	if errno := errnoOf(err); errno != p.errno {
		p.errno, p.refused = errno, 0
	}
	if !isCopy {
		p.refused++
	}
	return p.present == 0 && p.refused >= enoughRefusals
}

func errnoOf(err error) uint16 {
	var refusal *wire.Error
	if errors.As(err, &refusal) {
		return refusal.Errno
	}
	return 0
}

// turnedAway deals with a refused login of the session.
func (a *actor) turnedAway(ctx context.Context, err error) {
	stopped := ctx.Err() != nil
	a.gone = !stopped
	a.result.refused(err, stopped)
	hopeless := a.presence.refuse(err, a.copy > 0)
	if stopped {
		return
	}
	a.presence.firstRefusal.Do(func() {
		a.Notify(fmt.Sprintf("session %d was refused (others are in the summary): %v", a.session.Session, err))
	})
	if hopeless {
		a.surrender("the last %d sessions were refused, and none is open: %v", enoughRefusals, err)
	}
}

// abandoned deals with the session's lost connection, which is hung up already.
func (a *actor) abandoned(ctx context.Context, err error) {
	stopped := ctx.Err() != nil
	a.result.lost(err, stopped)
	if stopped {
		return
	}
	alone := a.presence.leaves()
	a.presence.firstLoss.Do(func() {
		a.Notify(fmt.Sprintf("session %d was lost (others are in the summary): %v", a.session.Session, err))
	})
	if alone {
		a.tryAgain(ctx)
	}
}

// tryAgain asks whether the target still takes sessions.
func (a *actor) tryAgain(ctx context.Context) {
	config := a.Config
	config.Schema = "" // the target may lack it, and that is not what is asked
	conn, _, refusal := a.Dial(ctx, config)
	switch {
	case refusal == nil:
		conn.Close()
	case a.presence.empty():
		a.surrender("all sessions are lost, and a new login is refused: %v", refusal)
	}
}

// surrender stops the replay. Whoever comes first is heard.
func (a *actor) surrender(format string, args ...any) {
	a.presence.giveUp(&surrender{fmt.Sprintf(format, args...)})
}
