package replay

import (
	"sync"
	"time"

	"redrive/capture"
)

// openLimit is how long a command may be under way before a begin record tells of it.
const openLimit = time.Second

// progress is what the watcher may know of an actor: since when something is under way that is not yet recorded.
type progress struct {
	mu    sync.Mutex
	since time.Duration      // 0: nothing is
	open  *capture.Statement // the command; nil for a login and the like
	told  bool               // by a begin record
}

// begin says that what will be recorded next is not earlier than now, which is read where the watcher cannot come in
// between. open, if not nil, gets that time as its Sent and must not change before end.
func (p *progress) begin(now func() time.Duration, open *capture.Statement) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.since, p.open, p.told = max(1, now()), open, false
	if open != nil {
		open.Sent = p.since
	}
}

// end runs record while nobody looks, and says that nothing is under way any more.
func (p *progress) end(record func()) {
	p.mu.Lock()
	record()
	p.since, p.open = 0, nil
	p.mu.Unlock()
}

// look writes a begin record if one is due, and returns the time before which nothing unheard of can have started.
func (p *progress) look(now time.Duration, recorder *capture.Recorder) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.open != nil && !p.told && now-p.since >= openLimit {
		recorder.Begin(p.open)
		p.told = true
	}
	if p.since == 0 || p.told {
		return now
	}
	return p.since
}

// watch keeps the recording readable in start order, and up to date with what takes long, until stop is called.
func (p *Player) watch() (stop func()) {
	if p.Recorder == nil {
		return func() {}
	}
	quit := make(chan struct{})
	var ended sync.WaitGroup
	ended.Go(func() {
		ticker := time.NewTicker(openLimit / 4)
		defer ticker.Stop()
		for {
			select {
			case <-quit:
				return
			case <-ticker.C:
				p.Recorder.Horizon(p.survey())
			}
		}
	})
	return func() { close(quit); ended.Wait() }
}

func (p *Player) survey() time.Duration {
	now := p.Clock.Now()
	horizon := now
	p.live.Range(func(key, _ any) bool {
		horizon = min(horizon, key.(*actor).progress.look(now, p.Recorder))
		return true
	})
	return horizon
}
