package replay

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"redrive/capture"
	"redrive/internal/sqltext"
	"redrive/internal/wire"
)

// maxWriteKinds bounds the kinds of writes told apart; further ones are counted by their verb alone.
const maxWriteKinds = 1000

// A Scan is what captures hold, seen before anything is sent.
type Scan struct {
	Files      []FileScan
	Sessions   uint64
	Statements uint64        // commands that run SQL
	Commands   uint64        // all others
	Shed       uint64        // statements that the captures say they left out
	Writes     []Write       // what a replay would change on the target, most frequent first
	From, To   time.Duration // first and last event, on the files' common time line
}

// A FileScan is one file's part of a Scan.
type FileScan struct {
	Name       string
	Header     *capture.Header
	Shift      time.Duration // its start on the common time line
	MaxSession uint64        // highest session number
	Err        error         // where the file ends too early; nil at a clean end
}

// A Write counts statements that may change the target.
type Write struct {
	Verb  string `json:"verb"`            // or the command's name
	Table string `json:"table,omitempty"` // as the statement names it; empty if none was found
	Count uint64 `json:"count"`
}

// String is the count, what is done, and to what.
func (w Write) String() string {
	if w.Table == "" {
		return fmt.Sprintf("%d %s", w.Count, w.Verb)
	}
	return fmt.Sprintf("%d %s %s", w.Count, w.Verb, w.Table)
}

// ScanFiles reads captures to their ends, in constant memory. A file that was cut short is scanned as far as it goes,
// which is as far as it would be played; one that cannot be read at all is an error, and so is the end of ctx.
func ScanFiles(ctx context.Context, files []File) (*Scan, error) {
	b := &scanner{writes: map[Write]uint64{}}
	for _, f := range files {
		if err := b.file(ctx, f); err != nil {
			return nil, err
		}
	}
	return b.finish(), nil
}

// A scanner gathers a Scan.
type scanner struct {
	scan   Scan
	spans  []span
	writes map[Write]uint64 // Count is 0 in the keys
}

// A span is from a file's first event to its last, by its own clock.
type span struct {
	from, to time.Duration
	any      bool
}

func (b *scanner) file(ctx context.Context, f File) error {
	r, err := f.Open()
	if err != nil {
		return fmt.Errorf("open capture: %w", err)
	}
	defer r.Close()
	reader := capture.NewReader(r, f.Name)
	header, err := reader.Header()
	if err != nil {
		return err
	}
	file := FileScan{Name: f.Name, Header: header}
	var times span
	sessions, open := map[uint64]bool{}, begins{}
	for reader.Next() {
		if ctx.Err() != nil {
			return fmt.Errorf("%s: offset %d: %w", f.Name, reader.Offset(), context.Cause(ctx))
		}
		rec := reader.Record()
		times.note(rec)
		switch rec.Kind {
		case capture.KindGap:
			b.scan.Shed += rec.Gap.Statements
		case capture.KindSessionStart:
			b.session(&file, sessions, rec.Start.Session)
		case capture.KindSessionEnd:
			delete(sessions, rec.End.Session)
		case capture.KindBegin, capture.KindStatement:
			b.session(&file, sessions, rec.Statement.Session)
			if !open.seen(rec) {
				b.statement(&rec.Statement)
			}
		}
	}
	file.Err = reader.Err()
	b.scan.Files = append(b.scan.Files, file)
	b.spans = append(b.spans, times)
	return nil
}

// session counts a session once, whether or not its start was recorded.
func (b *scanner) session(file *FileScan, open map[uint64]bool, id uint64) {
	if open[id] {
		return
	}
	open[id] = true
	b.scan.Sessions++
	file.MaxSession = max(file.MaxSession, id)
}

func (b *scanner) statement(s *capture.Statement) {
	if s.RunsSQL() {
		b.scan.Statements++
	} else {
		b.scan.Commands++
	}
	if skipRule(s) != "" || !writes(s) {
		return
	}
	w := writeOf(s)
	if _, known := b.writes[w]; !known && len(b.writes) >= maxWriteKinds {
		w.Table = ""
	}
	b.writes[w]++
}

func writeOf(s *capture.Statement) Write {
	switch s.Command {
	case wire.ComQuery, wire.ComStmtExecute:
		verb := sqltext.Verb(s.Text)
		return Write{Verb: cmp.Or(verb, "unknown statement"), Table: tableOf(s.Text)}
	}
	return Write{Verb: wire.CommandName(s.Command)}
}

// finish puts the files on one time line and sorts the writes.
func (b *scanner) finish() *Scan {
	scan := &b.scan
	start := scan.Files[0].Header.Start
	for _, f := range scan.Files {
		if f.Header.Start.Before(start) {
			start = f.Header.Start
		}
	}
	first := true
	for i := range scan.Files {
		f, times := &scan.Files[i], b.spans[i]
		f.Shift = f.Header.Start.Sub(start)
		if !times.any {
			continue
		}
		if from := times.from + f.Shift; first || from < scan.From {
			scan.From = from
		}
		scan.To = max(scan.To, times.to+f.Shift)
		first = false
	}
	for w, n := range b.writes {
		w.Count = n
		scan.Writes = append(scan.Writes, w)
	}
	slices.SortFunc(scan.Writes, func(a, b Write) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Verb, b.Verb), cmp.Compare(a.Table, b.Table))
	})
	return scan
}

func (s *span) note(rec *capture.Record) {
	switch rec.Kind {
	case capture.KindSessionStart:
		s.add(connectTime(&rec.Start), rec.Start.At)
	case capture.KindSessionEnd:
		if endsByClient(&rec.End) {
			s.add(rec.End.At, rec.End.At)
		}
	case capture.KindBegin, capture.KindStatement:
		s.add(rec.Statement.Started(), max(rec.Statement.Started(), rec.Statement.Done))
	}
}

func (s *span) add(from, to time.Duration) {
	if !s.any || from < s.from {
		s.from = from
	}
	s.to = max(s.to, to)
	s.any = true
}

// connectTime is when the client asked for the session.
func connectTime(s *capture.SessionStart) time.Duration {
	if s.Accepted != 0 {
		return s.Accepted
	}
	return s.At
}

// endsByClient reports whether the session's end was part of what went on, and not of the recording.
func endsByClient(e *capture.SessionEnd) bool {
	return e.Reason != capture.EndStopped && e.Reason != capture.EndOpaque && e.Reason != capture.EndBroken
}

// begins remembers statements whose begin record was seen, so that their end is not taken for another one.
type begins map[[2]uint64]bool

// seen reports whether rec is the end of a statement that a begin record told of.
func (b begins) seen(rec *capture.Record) bool {
	s := &rec.Statement
	id := [2]uint64{s.Session, s.Number}
	if rec.Kind == capture.KindBegin {
		b[id] = true
		return false
	}
	if !s.Flags.Has(capture.Begun) || !b[id] {
		return false
	}
	delete(b, id)
	return true
}
