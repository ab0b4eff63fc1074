package capture_test

import (
	"bytes"
	"math/rand"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"redrive/capture"
)

var _ capture.Sink = (*capture.Lane)(nil)

// A client plays a session in a lane as the proxy would record it.
type client struct {
	lane  *capture.Lane
	clock capture.Clock
	rng   *rand.Rand
	pause time.Duration // between statements, about
	long  int           // every so many statements one stays open for seconds

	mu      sync.Mutex
	session uint64
	number  uint64
	started time.Duration // of the statement that is open
	begun   bool
	open    bool
}

func (c *client) statement() *capture.Statement {
	return &capture.Statement{
		Session: c.session, Number: c.number, Command: 3, Text: []byte("SELECT c FROM sbtest1 WHERE id=4711"),
		Received: c.started, Complete: c.started, Sent: c.started, Done: c.clock.Now(),
	}
}

func (c *client) play(until time.Duration) {
	c.lane.SessionStart(&capture.SessionStart{Session: c.session, At: c.clock.Now()})
	for c.clock.Now() < until {
		time.Sleep(time.Duration(c.rng.Int63n(int64(2 * c.pause))))
		c.mu.Lock()
		c.number++
		c.started, c.open, c.begun = c.clock.Now(), true, false
		c.mu.Unlock()
		took := time.Duration(c.rng.Int63n(int64(c.pause)))
		if c.long > 0 && c.rng.Intn(c.long) == 0 {
			took = time.Duration(c.rng.Int63n(int64(5 * time.Second)))
		}
		time.Sleep(took)
		c.mu.Lock()
		c.open = false
		c.lane.Statement(c.statement())
		c.mu.Unlock()
	}
	c.lane.SessionEnd(&capture.SessionEnd{Session: c.session, At: c.clock.Now(), Reason: capture.EndQuit, Commands: c.number})
}

// look begins the statement that has been open for long, and returns before when none of the session can have started.
func (c *client) look(now time.Duration) time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case !c.open || c.begun:
		return now
	case now-c.started < time.Second:
		return c.started
	}
	s := c.statement()
	s.Done = 0
	c.lane.Begin(s)
	c.begun = true
	return now
}

// play lets clients play, and promises horizons meanwhile. It returns how many statements there were.
func play(r *capture.Recorder, clients []*client, until time.Duration) (forwarded uint64) {
	var wg sync.WaitGroup
	for _, c := range clients {
		wg.Go(func() { c.play(until) })
	}
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		tick := time.NewTicker(250 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-stop:
				return
			case <-tick.C:
				horizon := clients[0].clock.Now()
				now := horizon
				for _, c := range clients {
					horizon = min(horizon, c.look(now))
				}
				r.Horizon(horizon)
			}
		}
	}()
	wg.Wait()
	close(stop)
	<-stopped
	for _, c := range clients {
		forwarded += c.number
	}
	return forwarded
}

func newClients(r *capture.Recorder, clock capture.Clock, n int, long int, pause func(i int) time.Duration) []*client {
	clients := make([]*client, n)
	for i := range clients {
		clients[i] = &client{lane: r.Lane(i), clock: clock, rng: rand.New(rand.NewSource(int64(i))), pause: pause(i), long: long, session: uint64(i + 1)}
	}
	return clients
}

// A slow writer takes its time for every block.
type slow struct {
	disk
	takes  time.Duration
	blocks int
}

func (s *slow) Write(p []byte) (int, error) {
	time.Sleep(s.takes)
	s.blocks++
	return s.disk.Write(p)
}

// verified reads a file in both orders and checks all that FORMAT.md promises.
func verified(t *testing.T, data []byte) *capture.Verification {
	t.Helper()
	v := capture.Verify(capture.NewReader(bytes.NewReader(data), "test.rdt"))
	if !v.OK() {
		t.Errorf("verify: %v, %d problems: %q", v.Err, len(v.Problems)+v.Further, v.Problems)
	}
	in := capture.InStartOrder(capture.NewReader(bytes.NewReader(data), "test.rdt"))
	last, of := time.Duration(0), map[uint64]time.Duration{}
	for in.Next() {
		rec := in.Record()
		if rec.Kind == capture.KindGap {
			continue
		}
		place := rec.Place()
		if rec.Kind == capture.KindStatement || rec.Kind == capture.KindBegin { // never before the session's record before
			place = max(place, of[rec.Statement.Session])
			of[rec.Statement.Session] = place
		}
		if place < last {
			t.Fatalf("in start order a %s at %v comes after %v", rec.Kind, place, last)
		}
		last = place
	}
	return v
}

// TestLanes: whatever lanes do at once, and however slow the disk, the file is in order, and no horizon is broken.
func TestLanes(t *testing.T) {
	for name, pause := range map[string]func(i int) time.Duration{
		"alike": func(int) time.Duration { return 20 * time.Millisecond },
		"one busy, others quiet": func(i int) time.Duration {
			if i == 0 {
				return time.Millisecond / 2
			}
			return time.Duration(i) * 700 * time.Millisecond
		},
	} {
		for _, takes := range []time.Duration{0, 30 * time.Millisecond, 7 * time.Second} {
			t.Run(name+"/"+takes.String(), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					clock := capture.NewClock()
					w := slow{takes: takes}
					r := capture.NewRecorder(&w, capture.Header{}, capture.RecorderOptions{Lanes: 4})
					forwarded := play(r, newClients(r, clock, 12, 50, pause), clock.Now()+20*time.Second)
					l, err := r.Close(0)
					if err != nil {
						t.Fatal(err)
					}
					balanced(t, l, forwarded)
					v := verified(t, w.bytes())
					if v.Records[capture.KindStatement] != forwarded || v.Records[capture.KindBegin] == 0 || w.blocks < 8 {
						t.Errorf("%d of %d statements, %d begins, %d blocks; want all, and some of the others", v.Records[capture.KindStatement],
							forwarded, v.Records[capture.KindBegin], w.blocks)
					}
				})
			})
		}
	}
}

// TestLanesAfterASuspension: the machine slept with records in every lane, and one lane is quick to fill its block then.
func TestLanesAfterASuspension(t *testing.T) {
	for name, before := range map[string][]int{"all lanes": {0, 1, 2}, "other lanes": {0, 2}} {
		t.Run(name, func(t *testing.T) { afterASuspension(t, before) })
	}
}

func afterASuspension(t *testing.T, before []int) {
	var d disk
	r := capture.NewRecorder(&d, capture.Header{}, capture.RecorderOptions{Lanes: 3})
	at := time.Second
	number := [3]uint64{}
	put := func(lane int) {
		number[lane]++
		at += time.Microsecond
		s := statement(uint64(lane+1), number[lane])
		s.Params.Values = bytes.Repeat([]byte{byte(number[lane])}, 1000)
		s.Received, s.Done = at, at
		r.Lane(lane).Statement(s)
	}
	for _, lane := range before {
		put(lane)
	}
	at += time.Hour
	for range 3000 { // three blocks
		put(1)
	}
	put(2)
	put(0)
	if _, err := r.Close(0); err != nil {
		t.Fatal(err)
	}
	verified(t, d.bytes())
}

// TestLanesOnASlowDisk: what is shed in several lanes is told to the last statement.
func TestLanesOnASlowDisk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		clock := capture.NewClock()
		w := slow{takes: 9 * time.Second}
		memory := capture.NewMemory(200_000)
		r := capture.NewRecorder(&w, capture.Header{}, capture.RecorderOptions{Lanes: 3, Memory: memory})
		forwarded := play(r, newClients(r, clock, 12, 100, func(int) time.Duration { return time.Millisecond }), clock.Now()+20*time.Second)
		l, err := r.Close(0)
		if err != nil {
			t.Fatal(err)
		}
		balanced(t, l, forwarded)
		if v := verified(t, w.bytes()); l.Shed == 0 || l.Stored == 0 || v.Records[capture.KindSessionStart] != 12 {
			t.Errorf("%+v, %d sessions; want some stored, some shed, all 12 sessions", l, v.Records[capture.KindSessionStart])
		}
		if used := memory.Used(); used != 0 {
			t.Errorf("%d bytes are not given back", used)
		}
	})
}

// TestLanesAtOnce is for the race detector: everything a Recorder has, from many goroutines.
func TestLanesAtOnce(t *testing.T) {
	var d disk
	r := capture.NewRecorder(&d, capture.Header{}, capture.RecorderOptions{Lanes: 4, Memory: capture.NewMemory(300_000), FlushEvery: time.Millisecond})
	var wg sync.WaitGroup
	for i := range uint64(8) {
		wg.Go(func() {
			lane := r.Lane(int(i))
			lane.SessionStart(&capture.SessionStart{Session: i + 1, At: 1})
			for n := range uint64(3000) {
				s := statement(i+1, n+1)
				if n%100 == 0 {
					lane.Begin(s)
				}
				lane.Statement(s)
			}
			lane.SessionEnd(&capture.SessionEnd{Session: i + 1, At: time.Minute, Reason: capture.EndQuit})
			r.Ledger()
		})
	}
	wg.Wait()
	r.Release()
	l, err := r.Close(2)
	if err != nil {
		t.Fatal(err)
	}
	balanced(t, l, 8*3000+2)
	records, in := read(d.bytes())
	if c := count(records); in.Err() != nil || c.statements != l.Stored || c.shed != l.Shed {
		t.Errorf("file: %+v, %v; ledger %+v", c, in.Err(), l)
	}
}
