package replay

import (
	"fmt"
	"strings"

	"redrive/capture"
	"redrive/internal/identity"
)

// A Gate decides whether captures may be played to a target: never to the server they come from, and never writing to
// a server that was not meant to be written to, unless told so for this very replay.
type Gate struct {
	AllowSameServer bool
	AllowWrites     bool
	IKnow           string // the target's address, spelled out as proof that it is meant
}

// A Refusal is a gate's no, with all its reasons.
type Refusal struct {
	Reasons []string // sentences: what is the matter, and what to do
}

func (r *Refusal) Error() string { return "refused: " + strings.Join(r.Reasons, "\nrefused: ") }

// maxListed bounds the kinds of writes a refusal lists.
const maxListed = 10

// Check returns nil if the captures may be played to t, else a *Refusal. notes say what could not be made certain.
func (g Gate) Check(scan *Scan, t *Target) (notes []string, err error) {
	refusal := new(Refusal)
	for _, f := range scan.Files {
		same, reason, note := sameServer(f.Header, t)
		if note != "" {
			notes = append(notes, f.Name+": "+note)
		}
		if same && !g.AllowSameServer {
			refusal.Reasons = append(refusal.Reasons, fmt.Sprintf(
				"%s is the server that %s was captured from: %s. Replay to a copy, or give --allow-same-server if this is meant", t.Address, f.Name, reason))
		}
	}
	if len(scan.Writes) > 0 && !g.mayWrite(t) {
		refusal.Reasons = append(refusal.Reasons, g.writesReason(scan, t))
	}
	if len(refusal.Reasons) > 0 {
		return notes, refusal
	}
	return notes, nil
}

func (g Gate) mayWrite(t *Target) bool {
	return g.AllowWrites && (t.Marked || g.IKnow == t.Address)
}

// writesReason says what would be written and what would permit it.
func (g Gate) writesReason(scan *Scan, t *Target) string {
	var total uint64
	for _, w := range scan.Writes {
		total += w.Count
	}
	var b strings.Builder
	fmt.Fprintf(&b, "the capture has %d statements that may write, and %s is not known to be meant for that.\n", total, t.Address)
	for i, w := range scan.Writes {
		if i == maxListed {
			fmt.Fprintf(&b, "    … and %d more kinds\n", len(scan.Writes)-i)
			break
		}
		fmt.Fprintf(&b, "    %v\n", w)
	}
	if g.IKnow != "" && g.IKnow != t.Address {
		fmt.Fprintf(&b, "--i-know %s names another address than the target's, %s.\n", g.IKnow, t.Address)
	}
	fmt.Fprintf(&b, "To let it write, give --allow-writes and either create a schema %s on the target or give --i-know %s", MarkerSchema, t.Address)
	return b.String()
}

// sameServer compares by what the servers said of themselves; where that says nothing, by addresses.
func sameServer(h *capture.Header, t *Target) (same bool, reason, note string) {
	if h.Server != nil {
		switch verdict, why := identity.Compare(*h.Server, t.Server); verdict {
		case identity.Same:
			return true, why, ""
		case identity.Different:
			return false, "", ""
		}
	}
	if h.Backend == "" && len(h.Resolved) == 0 {
		return false, "", "does not name the server it was captured from, so nothing could be compared with the target"
	}
	note = "the captured server's identity is not in the capture (proxy --probe-user stores it), so only addresses could be compared"
	if why := sameAddress(h, t); why != "" {
		return true, why + " (only addresses could be compared)", note
	}
	return false, "", note
}
