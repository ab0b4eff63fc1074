package replay_test

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"redrive/capture"
	"redrive/internal/pace"
	"redrive/internal/wire"
	"redrive/replay"
)

// affected makes a captured outcome what the fake target answers.
func affected(s *capture.Statement) {
	s.Outcome = capture.Outcome{Results: 1, Affected: 1, HasStatus: true}
}

// Statements go out at their captured offsets from the capture's first event, divided by the speed, to the tick.
func TestPacing(t *testing.T) {
	for _, speed := range []float64{1, 2, 0.5, 3} {
		synctest.Test(t, func(t *testing.T) {
			c := newScript()
			c.start(1, 5*time.Second)
			c.start(2, 5*time.Second+10*ms)
			for i := range 40 {
				c.query(uint64(1+i%2), 5*time.Second+time.Duration(20+i*i)*ms, fmt.Sprint("select ", i), affected)
			}
			c.end(1, 8*time.Second)
			c.end(2, 7*time.Second)
			f := new(target)
			r, _ := play(t, context.Background(), c, f, func(p *replay.Player) { p.Speed = speed })
			schedule := pace.Schedule{Speed: speed, From: 5 * time.Second}
			for i, command := range f.commands {
				if want := schedule.Due(5*time.Second + time.Duration(20+i*i)*ms); command.at != want {
					t.Errorf("speed %v: statement %d sent at %v, want %v", speed, i, command.at, want)
				}
			}
			if want := schedule.Scale(3 * time.Second); len(f.commands) != 40 || r.Wall != want || r.Expected != want {
				t.Errorf("speed %v: %d statements in %v (expected %v), want 40 in %v", speed, len(f.commands), r.Wall, r.Expected, want)
			}
			if r.Lag.Max != 0 || r.Errors != (replay.ErrorCounts{}) || r.Affected != 0 || !r.Complete() {
				t.Errorf("speed %v: lag %v, errors %+v, %d affected differ, complete %v; want none, none, none, true", speed, r.Lag.Max, r.Errors, r.Affected, r.Complete())
			}
		})
	}
}

// A server that freezes shows in service and wait, never in lag; what comes after is due when it was, not later.
func TestFrozenServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newScript()
		c.start(1, 0)
		c.query(1, 10*ms, "select slow 1s")
		for i := 1; i < 20; i++ {
			c.query(1, time.Duration(10+100*i)*ms, "select 1")
		}
		r, file := play(t, context.Background(), c, new(target), nil)
		if r.Lag.Max != 0 {
			t.Errorf("lag %v after a freeze, want 0", r.Lag.Max)
		}
		if r.Service.Max != time.Second || r.Wait.Max != 900*ms {
			t.Errorf("service %v and wait %v, want 1s and 900ms", r.Service.Max, r.Wait.Max)
		}
		all := records(t, file)
		last := all[len(all)-2].Statement // before the session's end
		if last.Intended != 1910*ms || last.Sent != 1910*ms {
			t.Errorf("the last statement was intended for %v and sent at %v, want both 1.91s", last.Intended, last.Sent)
		}
	})
}

// At full speed nothing waits for a time, sessions keep their order, and no more of them are open than were captured.
func TestFullSpeed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newScript()
		for session := uint64(1); session <= 9; session++ {
			at := time.Duration((session-1)/3) * time.Hour // three by three
			c.start(session, at)
			for i := range 10 {
				c.query(session, at+time.Duration(i+1)*time.Minute, fmt.Sprint("select ", i))
			}
			c.end(session, at+30*time.Minute)
		}
		f := new(target)
		r, file := play(t, context.Background(), c, f, func(p *replay.Player) { p.Speed = pace.Max })
		if r.Wall != 30*ms || f.mostOpen != 3 {
			t.Errorf("took %v with up to %d sessions open, want 30ms with 3", r.Wall, f.mostOpen)
		}
		if r.Service == nil || r.Wait != nil || r.Lag != nil || r.Response != nil {
			t.Errorf("times %v, %v, %v, %v; want service alone, as nothing is late where nothing has a time", r.Service, r.Wait, r.Lag, r.Response)
		}
		next := map[string]int{}
		for _, command := range f.commands {
			if want := fmt.Sprint("select ", next[command.session]); command.text != want {
				t.Fatalf("session %s sent %q, want %q", command.session, command.text, want)
			}
			next[command.session]++
		}
		for _, rec := range records(t, file) {
			if s := &rec.Statement; rec.Kind == capture.KindStatement && s.Intended != 0 {
				t.Errorf("%d.%d is intended for %v; at full speed nothing is", s.Session, s.Number, s.Intended)
			}
		}
	})
}

// Copies are sessions of their own that send reads, what keeps a session going, and nothing else.
func TestCopies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newScript()
		c.start(7, 0)
		for i, text := range []string{"begin", "select 1", "select 1 for update", "update t set a=1", "set @a=1", "commit"} {
			c.query(7, time.Duration(i+1)*ms, text)
		}
		c.add(7, 10*ms, wire.ComStmtPrepare, "insert into t values (?)", func(s *capture.Statement) { s.StatementID = 3 })
		c.add(7, 11*ms, wire.ComStmtExecute, "insert into t values (?)", func(s *capture.Statement) { s.StatementID = 3 })
		c.add(7, 12*ms, wire.ComStmtClose, "insert into t values (?)", func(s *capture.Statement) { s.StatementID = 3 })
		c.end(7, 20*ms)
		f := new(target)
		r, file := play(t, context.Background(), c, f, func(p *replay.Player) { p.Scale = 3 })
		counts := map[string]int{}
		for _, command := range f.commands {
			counts[command.text]++
		}
		for text, want := range map[string]int{"begin": 3, "select 1": 3, "select 1 for update": 1, "update t set a=1": 1, "set @a=1": 3, "commit": 3, "insert into t values (?)": 1} {
			if counts[text] != want {
				t.Errorf("%q was sent %d times, want %d", text, counts[text], want)
			}
		}
		if r.Sessions.Opened != 3 || r.Copies.Statements.Skipped != 6 || r.Copies.Commands.Skipped != 4 {
			t.Errorf("opened %d, copies skipped %d statements and %d commands, want 3, 6 and 4", r.Sessions.Opened, r.Copies.Statements.Skipped, r.Copies.Commands.Skipped)
		}
		sessions := map[uint64]uint32{}
		for _, rec := range records(t, file) {
			switch rec.Kind {
			case capture.KindSessionStart:
				if rec.Start.Source != 7 {
					t.Errorf("session %d has source %d, want 7", rec.Start.Session, rec.Start.Source)
				}
				sessions[rec.Start.Session] = rec.Start.Copy
			case capture.KindStatement:
				if got := rec.Statement.Flags.Has(capture.Copy); got != (sessions[rec.Statement.Session] > 0) {
					t.Errorf("%d.%d has the copy flag %v", rec.Statement.Session, rec.Statement.Number, got)
				}
			}
		}
		if len(sessions) != 3 {
			t.Errorf("the recording has %d sessions, want 3", len(sessions))
		}
	})
}

// A lost connection loses the rest of its session and nothing else; a refused login loses the whole session.
func TestLostSessions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newScript()
		for session := uint64(1); session <= 3; session++ {
			c.start(session, 0)
			for i := range 5 {
				text := "select 1"
				if session == 2 && i == 2 {
					text = "select lose"
				}
				c.query(session, time.Duration(10*i+1)*ms, text)
			}
			c.end(session, 100*ms)
		}
		f := &target{refuse: "s3"}
		r, file := play(t, context.Background(), c, f, nil)
		if a := r.Statements; a.Replayed != 7 || a.Lost != 8 || r.Sessions.Lost != 1 || r.Sessions.Refused != 1 || r.Complete() {
			t.Errorf("replayed %d, lost %d, sessions lost %d and refused %d, complete %v; want 7, 8, 1, 1, false", a.Replayed, a.Lost, r.Sessions.Lost, r.Sessions.Refused, r.Complete())
		}
		var lost *capture.Statement
		for _, rec := range records(t, file) {
			if rec.Kind == capture.KindStatement && rec.Statement.Flags.Has(capture.Unanswered) {
				lost = &rec.Statement
			}
		}
		if lost == nil || lost.Session != 2 || lost.Number != 3 || lost.Txn == 0 || lost.TxnEnd != capture.TxnDisconnect {
			t.Errorf("the recording's unanswered statement is %+v, want 2.3, at the end of a transaction", lost)
		}
	})
}

// Stopping ends everything at once: sleeping sessions, statements under way, and what was never read.
func TestInterrupted(t *testing.T) {
	for _, speed := range []float64{1, pace.Max} {
		synctest.Test(t, func(t *testing.T) {
			c := newScript()
			for session := uint64(1); session <= 3; session++ {
				at := time.Duration(session) * time.Second
				c.start(session, at)
				for i := range 100 {
					c.query(session, at+time.Duration(100*i+1)*ms, "select slow 30ms")
				}
				c.end(session, at+20*time.Second)
			}
			ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
			defer cancel()
			f := new(target)
			r, _ := play(t, ctx, c, f, func(p *replay.Player) { p.Speed, p.Budget = speed, 20<<10 })
			if r.Wall != 2*time.Second || !r.Interrupted || r.Complete() || r.Statements.Unreached == 0 || f.open != 0 {
				t.Errorf("speed %v: took %v, interrupted %v, complete %v, %d unreached, %d open; want 2s, true, false, some, 0", speed, r.Wall, r.Interrupted, r.Complete(), r.Statements.Unreached, f.open)
			}
			if sent := r.Statements.Replayed + r.Statements.Lost; sent != uint64(len(f.commands)) {
				t.Errorf("speed %v: %d replayed and lost, want the %d that were sent", speed, sent, len(f.commands))
			}
		})
	}
}

// The reader holds no more than its budget. When all that is held waits for a lock, and what would release it is yet to
// be read, it reads on all the same.
func TestBudget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newScript()
		c.start(1, 0)
		c.start(2, 0)
		c.query(1, 1*ms, "select lock a")
		for i := range 200 {
			c.query(1, time.Duration(2+i)*ms, "select 1 /* "+strings.Repeat("x", 1000)+" */")
		}
		c.query(2, 300*ms, "select unlock a")
		r, _ := play(t, context.Background(), c, new(target), func(p *replay.Player) { p.Speed, p.Budget = pace.Max, 50<<10 })
		if !r.Complete() || r.Wall < time.Second || r.Wall > 30*time.Second {
			t.Errorf("complete %v, took %v; want true, a second (the reader must have been stuck) to 30s", r.Complete(), r.Wall)
		}
	})
}

// Where a slow server makes statements pile up to the budget, reading is late, and says so.
func TestBudgetMakesLate(t *testing.T) {
	for _, limit := range []int{20 << 10, 0} {
		synctest.Test(t, func(t *testing.T) {
			c := newScript()
			c.start(1, 0)
			c.query(1, 1*ms, "select slow 2s")
			for i := range 100 {
				c.query(1, time.Duration(2+i)*ms, "select 1 /* "+strings.Repeat("x", 1000)+" */")
			}
			r, _ := play(t, context.Background(), c, new(target), func(p *replay.Player) { p.Budget = limit })
			if late := r.Paused > 0; late != (limit > 0) || !r.Complete() {
				t.Errorf("budget %d: paused %v, complete %v, want paused %v, true", limit, r.Paused, r.Complete(), limit > 0)
			}
		})
	}
}

// A statement larger than the whole budget passes too.
func TestLargeStatement(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newScript()
		c.start(1, 0)
		c.query(1, 1*ms, "select '"+strings.Repeat("x", 100_000)+"'")
		c.query(1, 2*ms, "select 1")
		r, _ := play(t, context.Background(), c, new(target), func(p *replay.Player) { p.Budget = 1000 })
		if r.Statements.Replayed != 2 || !r.Complete() {
			t.Errorf("replayed %d, complete %v, want 2, true", r.Statements.Replayed, r.Complete())
		}
	})
}

// A statement that has a begin record is sent when it began, once, and compared when its end comes.
func TestBegun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newScript()
		c.start(1, 0)
		c.query(1, 100*ms, "update slow 2s", affected, func(s *capture.Statement) { s.Done, s.First = 3*time.Second, 3*time.Second })
		c.begun()
		c.query(1, 4*time.Second, "update fail", affected, func(s *capture.Statement) { s.Done = 6 * time.Second })
		c.begun()
		c.end(1, 7*time.Second)
		f := new(target)
		r, file := play(t, context.Background(), c, f, nil)
		if len(f.commands) != 2 || f.commands[0].at != 100*ms || f.commands[1].at != 4*time.Second {
			t.Errorf("sent %v, want the statements at 100ms and 4s", f.commands)
		}
		if r.Compared != 2 || r.Errors.New != 1 || r.Affected != 0 {
			t.Errorf("compared %d, %d new errors, %d affected differ; want 2, 1, 0", r.Compared, r.Errors.New, r.Affected)
		}
		begins := 0
		for _, rec := range records(t, file) {
			if rec.Kind == capture.KindBegin {
				begins++
			}
		}
		if begins != 1 {
			t.Errorf("the recording has %d begins, want 1, of the statement that took 2s", begins)
		}
	})
}

// Sessions whose start is not in the capture are played all the same, with the schema their statements have.
func TestSessionWithoutStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newScript()
		c.query(4, 1*ms, "select 1")
		c.query(4, 2*ms, "select 2")
		f := new(target)
		r, _ := play(t, context.Background(), c, f, nil)
		if len(f.commands) != 2 || f.commands[0].session != "s4" || r.Sessions.Captured != 1 || r.Sessions.Opened != 1 {
			t.Errorf("sent %v, %d sessions captured, %d opened; want two statements in s4, 1, 1", f.commands, r.Sessions.Captured, r.Sessions.Opened)
		}
	})
}

// Whatever is in a capture and whatever goes wrong, each command has one fate (play checks that).
func TestAccountsBalance(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	texts := []string{"select 1", "select fail", "select lose", "insert into t values (1)", "kill 5", "set password = 'x'", "begin", "commit"}
	commands := []byte{
		wire.ComQuery, wire.ComQuery, wire.ComQuery, wire.ComStmtPrepare, wire.ComStmtExecute, wire.ComStmtClose, wire.ComStmtReset,
		wire.ComStmtFetch, wire.ComStmtSendLongData, wire.ComPing, wire.ComQuit, wire.ComChangeUser, wire.ComBinlogDump, wire.ComResetConnection,
	}
	for range 60 {
		c := newScript()
		for session := uint64(1); session <= 4; session++ {
			if rng.IntN(5) > 0 {
				c.start(session, 0)
			}
			for i := range 30 {
				c.add(session, time.Duration(i+1)*5*ms, commands[rng.IntN(len(commands))], texts[rng.IntN(len(texts))], func(s *capture.Statement) {
					s.StatementID = uint32(rng.IntN(3))
					s.Flags = capture.Flags(1<<rng.IntN(40)) & (capture.Truncated | capture.Infile | capture.NoTypes | capture.TextUnknown | capture.Masked | capture.Unanswered)
				})
				if rng.IntN(10) == 0 {
					c.begun()
				}
			}
			if rng.IntN(3) > 0 {
				c.end(session, time.Second)
			}
		}
		speed, scale, stop := []float64{1, 10, pace.Max}[rng.IntN(3)], 1+rng.IntN(3), time.Duration(rng.IntN(300))*ms
		synctest.Test(t, func(t *testing.T) {
			ctx := context.Background()
			if stop > 150*ms {
				var cancel context.CancelFunc
				ctx, cancel = context.WithTimeout(ctx, stop-150*ms)
				defer cancel()
			}
			_, file := play(t, ctx, c, new(target), func(p *replay.Player) { p.Speed, p.Scale = speed, scale })
			checkRecording(t, file)
		})
	}
}

// checkRecording checks that a recording's sessions start, number their commands without holes, and end.
func checkRecording(t *testing.T, file []byte) {
	t.Helper()
	numbers, open := map[uint64]uint64{}, map[uint64]bool{}
	for _, rec := range records(t, file) {
		switch rec.Kind {
		case capture.KindSessionStart:
			open[rec.Start.Session] = true
		case capture.KindSessionEnd:
			if got := numbers[rec.End.Session]; rec.End.Commands != got {
				t.Errorf("session %d ends after %d commands and says %d", rec.End.Session, got, rec.End.Commands)
			}
			delete(open, rec.End.Session)
		case capture.KindStatement:
			s := &rec.Statement
			numbers[s.Session]++
			if s.Number != numbers[s.Session] || !open[s.Session] {
				t.Errorf("%d.%d recorded, want number %d, in an open session (%v)", s.Session, s.Number, numbers[s.Session], open[s.Session])
			}
		}
	}
	if len(open) > 0 {
		t.Errorf("sessions without an end: %v", open)
	}
}

// Several captures are played on one time line, as their clocks tell, whatever numbers their sessions have in common.
func TestSeveralFiles(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var files []replay.File
		for i, start := range []time.Duration{500 * ms, 0} {
			c := newScript()
			c.header.Start = c.header.Start.Add(start)
			c.start(1, 100*ms)
			c.query(1, 200*ms, fmt.Sprintf("select %d", i), affected)
			c.query(1, 300*ms, fmt.Sprintf("select fail %d", i), affected)
			c.end(1, 400*ms)
			files = append(files, memoryFile(fmt.Sprintf("%d.rdt", i), c.bytes(t)))
		}
		scan, err := replay.ScanFiles(context.Background(), files)
		if err != nil {
			t.Fatal(err)
		}
		f := &target{clock: capture.NewClock()}
		var out bytes.Buffer
		recorder := capture.NewRecorder(&out, capture.Header{Start: f.clock.Start()}, capture.RecorderOptions{OnFull: capture.Block})
		p := &replay.Player{Files: files, Scan: scan, Recorder: recorder, Clock: f.clock, Dial: f.dial}
		r, err := p.Run(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := recorder.Close(0); err != nil {
			t.Fatal(err)
		}
		want := []string{"100ms select 1", "200ms select fail 1", "600ms select 0", "700ms select fail 0"}
		for i, command := range f.commands {
			if got := fmt.Sprint(command.at, " ", command.text); got != want[i] {
				t.Errorf("command %d is %q, want %q", i, got, want[i])
			}
		}
		if r.Sessions.Captured != 2 || r.Sessions.Opened != 2 || r.Wall != 800*ms {
			t.Errorf("%d sessions captured, %d opened, took %v; want 2, 2, 800ms", r.Sessions.Captured, r.Sessions.Opened, r.Wall)
		}
		if len(r.Differences) != 1 || r.Differences[0].Where != "1.rdt:1.2" || r.Differences[0].Count != 2 {
			t.Errorf("differences %+v, want two of a kind, the first at 1.rdt:1.2", r.Differences)
		}
		checkRecording(t, out.Bytes())
	})
}
