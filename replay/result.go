package replay

import (
	"time"

	"redrive/internal/stats"
)

// ResultVersion is the version of Result's JSON form. It grows when a field changes its meaning or goes.
const ResultVersion = 1

// A Result is what became of a replay. Durations are nanoseconds in JSON.
type Result struct {
	Version     int      `json:"version"`
	Speed       string   `json:"speed"`
	Scale       int      `json:"scale"`
	Interrupted bool     `json:"interrupted"`
	GaveUp      string   `json:"gave_up,omitempty"` // why the replay stopped by itself
	Broken      []string `json:"broken,omitempty"`  // where files end too early
	Shed        uint64   `json:"shed"`              // statements that the captures say they left out

	Sessions   Sessions  `json:"sessions"`
	Statements Account   `json:"statements"` // of the captured sessions: commands that run SQL
	Commands   Account   `json:"commands"`   // of the captured sessions: all others
	Copies     CopyParts `json:"copies"`

	Compared    uint64        `json:"compared"`  // commands whose outcome was compared with the captured one
	Different   uint64        `json:"different"` // of them, those that ended otherwise
	Errors      ErrorCounts   `json:"errors"`
	Rows        uint64        `json:"row_differences"`
	Affected    uint64        `json:"affected_differences"`
	Differences []Difference  `json:"differences,omitempty"` // by kind and error numbers
	Captured    time.Duration `json:"captured_ns"`           // from the capture's first event to its last
	Expected    time.Duration `json:"expected_ns"`           // that, at the speed of the replay
	Wall        time.Duration `json:"wall_ns"`               // what the replay took
	Paused      time.Duration `json:"paused_ns"`             // of it, reading waited for room and so made statements late

	// Of statements that were answered, copies included; nil if there are none. Only a pace makes anything late: at full
	// speed there is nothing but the service time. They are what an analysis of the recording finds.
	Service  *stats.Times `json:"service"`
	Response *stats.Times `json:"response"`
	Wait     *stats.Times `json:"wait"`
	Lag      *stats.Times `json:"lag"`
}

// Complete reports whether everything due was sent, and answered, and the captures were whole.
func (r *Result) Complete() bool {
	for _, a := range r.accounts() {
		if a.Lost > 0 || a.Unreached > 0 {
			return false
		}
	}
	return !r.Interrupted && r.GaveUp == "" && len(r.Broken) == 0 && r.Sessions.Refused == 0 && r.unprepared() == 0
}

func (r *Result) accounts() []*Account {
	return []*Account{&r.Statements, &r.Commands, &r.Copies.Statements, &r.Copies.Commands}
}

// unprepared is how many commands were due but not sent, as the target had refused to prepare their statement.
func (r *Result) unprepared() (n uint64) {
	for _, a := range r.accounts() {
		n += a.Reasons[skipPrepare]
	}
	return n
}

// Sessions counts connections, those of copies included but in Captured.
type Sessions struct {
	Captured uint64   `json:"captured"`
	Opened   uint64   `json:"opened"`
	Refused  uint64   `json:"refused"` // could not connect or log in
	Lost     uint64   `json:"lost"`    // ended before their time
	Reasons  []string `json:"reasons,omitempty"`
}

// An Account says what became of commands: Captured = Replayed + Skipped + Lost + Unreached.
type Account struct {
	Captured  uint64            `json:"captured"`
	Replayed  uint64            `json:"replayed"` // sent, and answered if they have an answer
	Skipped   uint64            `json:"skipped"`  // by a rule, or because the target refused their PREPARE
	Lost      uint64            `json:"lost"`     // not sent or not answered because their session was lost
	Unreached uint64            `json:"unreached"`
	Reasons   map[string]uint64 `json:"skipped_because,omitempty"`
}

// Balances reports whether every command has one fate.
func (a *Account) Balances() bool {
	return a.Captured == a.Replayed+a.Skipped+a.Lost+a.Unreached
}

// unread adds those of a total that were never read.
func (a *Account) unread(total uint64) {
	a.Unreached += total - a.Captured
	a.Captured = total
}

// CopyParts are the accounts of the additional copies. Captured is what they would have sent, had they sent all.
type CopyParts struct {
	Statements Account `json:"statements"`
	Commands   Account `json:"commands"`
	Errors     uint64  `json:"errors"` // they are not compared with the capture, only counted
}

// ErrorCounts compares the errors of the replay with the captured ones.
type ErrorCounts struct {
	New      uint64 `json:"new"`      // it succeeded when it was captured
	Vanished uint64 `json:"vanished"` // it failed when it was captured
	Changed  uint64 `json:"changed"`  // another error
	Same     uint64 `json:"same"`
}

// A Difference counts commands whose outcome differs from the captured one in the same way.
type Difference struct {
	Kind     string `json:"kind"` // new error, vanished error, changed error, rows, affected rows
	Count    uint64 `json:"count"`
	Captured uint64 `json:"captured"` // error number (0: none) or, of the first, number of rows
	Replayed uint64 `json:"replayed"`
	SQLState string `json:"sqlstate,omitempty"` // of the error on the target, or of that which vanished
	Where    string `json:"where"`              // the first: session.number in the capture, the file in front if there are several
	Text     string `json:"statement"`          // the first's digest text, or the command's name
}
