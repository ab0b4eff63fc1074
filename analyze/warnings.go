package analyze

import (
	"fmt"

	"redrive/capture"
	"redrive/internal/units"
)

// warnings say what the figures lack, worst first. They stand in front of the figures.
func (s *Summary) warnings(from Origin) []string {
	all := []string{} // in JSON a list even when empty
	warn := func(n uint64, format string, args ...any) {
		if n > 0 {
			all = append(all, fmt.Sprintf(format, args...))
		}
	}
	if from.Err != nil {
		warn(1, "reading ended early, figures cover what came before: %v", from.Err)
	} else if from.Ledger == nil {
		warn(1, "the capture has no end: its last part is missing")
	}
	for _, g := range s.lost.gaps {
		warn(1, "%s", g.warning())
	}
	l := s.ledger(from)
	if l.Forwarded != 0 && l.Shed > s.lost.shed {
		warn(1, "%s shed, of which the capture's gap records tell %s", statements(l.Shed), units.Number(s.lost.shed))
	}
	warn(l.Unfinished, "%s unfinished when the capture ended: not in the figures", statements(l.Unfinished))
	warn(max(l.Opaque, s.lost.opaque), "%s relayed without being understood: what they did is not in the figures",
		units.Count(max(l.Opaque, s.lost.opaque), "session"))
	warn(s.lost.unparsed, "%s with a reply that was not understood: counted, not timed", statements(s.lost.unparsed))
	warn(s.lost.dryRun, "%s never sent to a server: counted, no times", statements(s.lost.dryRun))
	warn(s.total.unanswered, "%s whose connection was lost before the reply ended: counted, not timed", statements(s.total.unanswered))
	warn(s.ends.Incomplete, "%s incomplete, as members are missing: counted, in no table", units.Count(s.ends.Incomplete, "transaction"))
	warn(s.lost.rejected, "%s failed", units.Count(s.lost.rejected, "login"))
	warn(s.lost.late, "%s without a start in the capture", units.Count(s.lost.late, "session"))
	warn(s.lost.truncated, "%s longer than what was kept of the text: typed by its beginning", statements(s.lost.truncated))
	return all
}

// ledger is the capture's own account or, without its end, what the records show.
func (s *Summary) ledger(from Origin) capture.Ledger {
	if from.Ledger != nil {
		return *from.Ledger
	}
	return capture.Ledger{Unfinished: s.lost.begun}
}

func (g Gap) warning() string {
	what := statements(g.Statements)
	if g.Statements == 0 {
		what = units.Count(g.Sessions, "session record")
	}
	rest := ""
	if g.Cut > 0 {
		rest = fmt.Sprintf(", and with them the rest of %s,", units.Count(g.Cut, "transaction"))
	}
	return fmt.Sprintf("%s shed%s between %s and %s (%s)", what, rest, units.Duration(g.From), units.Duration(g.To), g.Reason)
}

func statements(n uint64) string { return units.Count(n, "statement") }
