package replay_test

import (
	"context"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"redrive/internal/pace"
	"redrive/internal/wire"
	"redrive/replay"
)

// A replay whose sessions the target does not take says so with the first of them, and ends when there is no hope,
// rather than idling for the hours the capture took.
func TestGiveUp(t *testing.T) {
	tests := []struct {
		name     string
		sessions uint64
		apart    time.Duration // between sessions' starts
		texts    []string      // of every session, an hour apart
		refuse   string        // schemas of sessions that are refused
		scale    int
		takes    time.Duration // at most
		notes    []string      // what is told at once
		gaveUp   string
	}{
		{
			"all refused", 8, 0,
			[]string{"select 1"},
			"s", 1, time.Second,
			[]string{"session 1 was refused"},
			"the last 3 sessions were refused",
		},
		{
			"all refused, later ones too", 8, time.Minute,
			[]string{"select 1"},
			"s", 1, 3 * time.Minute,
			[]string{"session 1 was refused"},
			"the last 3 sessions were refused",
		},
		{
			"copies are no proof", 8, time.Minute,
			[]string{"select 1"},
			"s", 5, 3 * time.Minute,
			[]string{"session 1 was refused"},
			"the last 3 sessions were refused",
		},
		{
			"the only one refused", 1, 0,
			[]string{"select 1"},
			"s", 1, time.Second,
			[]string{"session 1 was refused"},
			"",
		},
		{
			"one of several refused", 3, time.Minute,
			[]string{"select 1"},
			"s2", 1, 3 * time.Hour,
			[]string{"session 2 was refused"},
			"",
		},
		{
			"the target stops", 3, 2 * time.Hour,
			[]string{"select stop"},
			"", 1, 2 * time.Hour,
			[]string{"session 1 was lost"},
			"all sessions are lost, and a new login is refused",
		},
		{
			"the target goes on", 3, 2 * time.Hour,
			[]string{"select lose"},
			"", 1, 7 * time.Hour,
			[]string{"session 1 was lost"},
			"",
		},
	}
	for _, tt := range tests {
		for _, speed := range []float64{1, pace.Max} {
			synctest.Test(t, func(t *testing.T) {
				c := newScript()
				for session := range tt.sessions {
					at := time.Duration(session) * tt.apart
					c.start(session+1, at)
					for i, text := range tt.texts {
						c.query(session+1, at+time.Duration(i+1)*time.Hour, text)
					}
					c.end(session+1, at+time.Duration(len(tt.texts)+1)*time.Hour)
				}
				var mu sync.Mutex
				var notes []string
				f := target{refuse: tt.refuse}
				r, _ := play(t, context.Background(), c, &f, func(p *replay.Player) {
					p.Speed, p.Scale = speed, tt.scale
					p.Notify = func(line string) {
						mu.Lock()
						defer mu.Unlock()
						notes = append(notes, line)
					}
				})
				if r.Wall > tt.takes || r.Complete() || r.Interrupted || f.open != 0 {
					t.Errorf("%s, speed %v: took %v, complete %v, interrupted %v, %d open; want at most %v, false, false, 0", tt.name, speed, r.Wall, r.Complete(), r.Interrupted, f.open, tt.takes)
				}
				if !strings.HasPrefix(r.GaveUp, tt.gaveUp) || (r.GaveUp == "") != (tt.gaveUp == "") {
					t.Errorf("%s, speed %v: gave up because %q, want %q", tt.name, speed, r.GaveUp, tt.gaveUp)
				}
				if len(notes) != len(tt.notes) || !strings.Contains(notes[0], tt.notes[0]) && !(speed == pace.Max || tt.apart == 0) {
					t.Errorf("%s, speed %v: told %q, want %q", tt.name, speed, notes, tt.notes)
				}
			})
		}
	}
}

// What the target refuses to prepare was due and is not sent: the replay is incomplete.
func TestRefusedPrepareIsIncomplete(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newScript()
		c.start(1, 0)
		c.add(1, 1*ms, wire.ComStmtPrepare, "select fail", id(5))
		c.add(1, 5*ms, wire.ComStmtExecute, "select fail", id(5))
		c.end(1, 10*ms)
		r, _ := play(t, context.Background(), c, new(target), nil)
		var text strings.Builder
		if err := r.WriteText(&text); err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{"INCOMPLETE: 1 command not sent, as the target refused their PREPARE\n", "new error                 1      ok        error 1105 HY000  1.1", "\n1 of 1 command compared ended otherwise than captured\n"} {
			if !strings.Contains(text.String(), want) {
				t.Errorf("the summary lacks %q:\n%s", want, text.String())
			}
		}
		if r.Complete() {
			t.Error("complete though the execute was not sent")
		}
	})
}
