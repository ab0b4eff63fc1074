package proxy

import (
	"context"
	"time"

	"redrive/capture"
)

// openLimit is how long a command may be open before a begin record tells of it, so that a reader knows of what was
// in flight, and a crash loses no more than this of it.
const openLimit = time.Second

// watch writes begin records of commands that stay open, and tells the recorder from when on nothing unheard of can
// have started, until ctx is done.
func (p *Proxy) watch(ctx context.Context) {
	ticker := time.NewTicker(openLimit / 4)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			if r := p.current(); r != nil {
				r.Horizon(p.survey())
			}
		}
	}
}

// survey looks at every connection and returns the horizon: a command that has neither been recorded nor begun in the
// record started at or after it. A connection's times are taken under its lock, so none can slip in from before.
func (p *Proxy) survey() time.Duration {
	now := p.Clock.Now()
	horizon := now
	p.each(func(c *conn) {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.look()
		if c.recorder == nil {
			return
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
	})
	return horizon
}
