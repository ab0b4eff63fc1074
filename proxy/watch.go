package proxy

import (
	"context"
	"time"

	"redrive/capture"
)

// openLimit is how long a command may be open before a begin record tells of it, so that a reader knows of what was
// in flight, and a crash loses no more than this of it.
const openLimit = time.Second

// watch writes begin records of commands that stay open, tells the recorder from when on nothing unheard of can have
// started, and hangs up on sessions that have been idle for too long, until ctx is done.
func (p *Proxy) watch(ctx context.Context) {
	ticker := time.NewTicker(openLimit / 4)
	defer ticker.Stop()
	var conns []*conn
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			recorder := p.current()
			if recorder == nil && p.IdleTimeout == 0 {
				continue
			}
			conns = p.open(conns[:0])
			horizon := p.survey(conns)
			clear(conns)
			if recorder != nil {
				recorder.Horizon(horizon)
			}
		}
	}
}

// survey looks at every connection and returns the horizon: a command that has neither been recorded nor begun in the
// record started at or after it. A connection's times are taken under its lock, so none can slip in from before.
func (p *Proxy) survey(conns []*conn) time.Duration {
	now := p.Clock.Now()
	horizon := now
	for _, c := range conns {
		horizon = min(horizon, c.survey(now))
	}
	return horizon
}

func (c *conn) survey(now time.Duration) (horizon time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.look()
	c.checkIdle(now)
	horizon = now
	if c.recorder == nil {
		return horizon
	}
	if at := c.follower.Arriving(); at != 0 {
		horizon = min(horizon, at)
	}
	c.follower.EachOpen(func(s *capture.Statement) {
		switch {
		case s.Flags.Has(capture.Begun):
		case now-s.Received >= openLimit:
			c.begin(s)
		default:
			horizon = min(horizon, s.Received)
		}
	})
	return horizon
}

// checkIdle hangs up if the session has done nothing for too long.
func (c *conn) checkIdle(now time.Duration) {
	limit := c.proxy.IdleTimeout
	if limit != 0 && now-c.active >= limit && c.relay != nil && !c.writing && c.idle() {
		c.hangUp("idle for "+limit.String()+" (--idle-timeout)", false)
	}
}
