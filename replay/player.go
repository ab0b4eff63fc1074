package replay

import (
	"context"
	"errors"
	"sync"
	"time"

	"redrive/capture"
	"redrive/internal/client"
	"redrive/internal/pace"
	"redrive/internal/wire"
)

// A Player plays captures to a target. Its fields are set before Run and not changed.
type Player struct {
	Files    []File
	Scan     *Scan             // what ScanFiles said of Files
	Config   client.Config     // the target, and who to be there; Schema is for sessions that name none
	Speed    float64           // 0 means 1; see pace.Schedule
	Scale    int               // sessions for every captured one; 0 means 1
	Budget   int               // bytes of statements read ahead; 0 means 64 MiB
	Recorder *capture.Recorder // records what happens; nil: nobody does
	Clock    capture.Clock     // the recording's
	Dial     DialFunc          // nil means a client.Conn
	Notify   func(line string) // told at once of trouble that cannot wait for the result; may be called concurrently; nil: nobody

	schedule pace.Schedule
	origin   time.Duration // the clock's time at which things due at 0 are due
	budget   *budget
	turns    *turns // nil when paced
	result   results
	running  sync.WaitGroup
	live     sync.Map // *actor → struct{}: those with something to record
	presence presence
	stride   uint64   // session numbers of all files together: the distance between a session and its copy
	base     []uint64 // what is added to a file's session numbers
}

// A Conn is a connection to the target, as client.Conn is one.
type Conn interface {
	Offer(file []byte) // for the next command, if the server asks for one
	Do(payload []byte) (*wire.Reply, client.Times, error)
	Close() error
}

// A DialFunc logs in at the target. The SessionStart is what the login brought; the caller adds whose session it is.
type DialFunc func(ctx context.Context, config client.Config) (Conn, *capture.SessionStart, error)

// Run plays the captures and waits until every session has ended. When ctx ends it stops sending, closes all
// connections, so that the server rolls back what is open, and returns what happened until then. It stops by itself where
// no session is left and the target takes no new one: see presence.
func (p *Player) Run(ctx context.Context) (*Result, error) {
	source, err := openStream(p.Files, p.Scan)
	if err != nil {
		return nil, err
	}
	defer source.Close()
	p.prepare()
	stop := p.watch()
	playing, giveUp := context.WithCancelCause(ctx)
	defer giveUp(nil)
	p.presence.giveUp = giveUp
	p.read(playing, source)
	p.running.Wait()
	wall := p.Clock.Now() - p.origin
	stop()
	result := p.summary(playing, wall)
	result.Interrupted = ctx.Err() != nil
	for _, part := range source.parts {
		if err := part.ordered.Err(); err != nil {
			result.Broken = append(result.Broken, err.Error())
		}
	}
	return result, nil
}

func (p *Player) prepare() {
	p.Scale = max(1, p.Scale)
	p.schedule = pace.Schedule{Speed: p.Speed, From: p.Scan.From}
	p.budget = newBudget(p.Budget)
	if !p.schedule.Paced() {
		p.turns = new(turns)
	}
	if p.Dial == nil {
		p.Dial = dial
	}
	if p.Notify == nil {
		p.Notify = func(string) {}
	}
	p.presence.toCome = p.Scan.Sessions * uint64(p.Scale)
	for _, f := range p.Scan.Files {
		p.base = append(p.base, p.stride)
		p.stride += f.MaxSession
	}
	p.Config.Now = p.Clock.Now
	p.origin = p.Clock.Now()
}

// dial is the DialFunc over client.Dial.
func dial(ctx context.Context, config client.Config) (Conn, *capture.SessionStart, error) {
	c, err := client.Dial(ctx, config)
	if err != nil {
		return nil, nil, err
	}
	return c, &capture.SessionStart{
		At: c.Ready, Accepted: c.Dialed, User: config.User, Schema: config.Schema, Collation: uint16(config.Collation),
		Capabilities: c.Capabilities(), ConnectionID: uint64(c.Login.Greeting.ConnectionID),
		ServerVersion: c.Login.Greeting.ServerVersion, Status: c.Login.Status,
		Client: c.LocalAddr().String(), Attributes: config.Attributes,
	}, nil
}

// due is when, by the clock, something captured at this offset is due.
func (p *Player) due(captured time.Duration) time.Duration {
	return p.origin + p.schedule.Due(captured)
}

// until waits for a time of the clock. It reports false if ctx ends first.
func (p *Player) until(ctx context.Context, at time.Duration) bool {
	wait := at - p.Clock.Now()
	if wait <= 0 {
		return ctx.Err() == nil
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// summary puts together what the sessions have counted.
func (p *Player) summary(ctx context.Context, wall time.Duration) *Result {
	r := p.result.result()
	r.Sessions.Captured = p.Scan.Sessions
	if ctx.Err() != nil { // what was not even read
		r.Statements.unread(p.Scan.Statements)
		r.Commands.unread(p.Scan.Commands)
	}
	if up := new(surrender); errors.As(context.Cause(ctx), &up) {
		r.GaveUp = up.Error()
	}
	r.Shed = p.Scan.Shed
	r.Speed, r.Scale = pace.FormatSpeed(p.Speed), p.Scale
	r.Captured = p.Scan.To - p.Scan.From
	r.Expected = p.schedule.Scale(r.Captured)
	r.Wall = wall
	return r
}
