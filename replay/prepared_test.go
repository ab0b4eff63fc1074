package replay_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"redrive/capture"
	"redrive/internal/wire"
	"redrive/replay"
)

// id sets a statement's captured id.
func id(n uint32) func(*capture.Statement) {
	return func(s *capture.Statement) { s.StatementID = n }
}

// sentIDs lists what was sent about prepared statements, with the ids it was sent with.
func sentIDs(commands []command) []string {
	var list []string
	for _, c := range commands {
		name := wire.CommandName(c.code)
		if c.code == wire.ComStmtPrepare {
			list = append(list, name+" "+c.text)
			continue
		}
		rest := c.text[4:]
		if c.code == wire.ComStmtExecute || c.code == wire.ComStmtFetch {
			rest = ""
		}
		list = append(list, fmt.Sprintf("%s %d %s", name, binary.LittleEndian.Uint32([]byte(c.text)), rest))
	}
	return list
}

func TestPrepared(t *testing.T) {
	const text = "select ?"
	tests := []struct {
		name    string
		build   func(add func(command byte, text string, edit ...func(*capture.Statement)))
		want    []string
		skipped string // the one reason of a skipped command
		count   uint64
	}{
		{
			"its own ids", func(add func(byte, string, ...func(*capture.Statement))) {
				add(wire.ComStmtPrepare, text, id(5))
				add(wire.ComStmtPrepare, "select 2", id(9))
				add(wire.ComStmtExecute, text, id(5))
				add(wire.ComStmtExecute, "select 2", id(9))
				add(wire.ComStmtReset, text, id(5))
				add(wire.ComStmtFetch, text, id(5))
				add(wire.ComStmtClose, text, id(5))
			},
			[]string{
				"COM_STMT_PREPARE select ?", "COM_STMT_PREPARE select 2", "COM_STMT_EXECUTE 1001 ", "COM_STMT_EXECUTE 1002 ",
				"COM_STMT_RESET 1001 ", "COM_STMT_FETCH 1001 ", "COM_STMT_CLOSE 1001 ",
			},
			"", 0,
		},
		{
			"prepared before the capture", func(add func(byte, string, ...func(*capture.Statement))) {
				add(wire.ComStmtExecute, text, id(5))
				add(wire.ComStmtExecute, text, id(5))
			},
			[]string{"COM_STMT_PREPARE select ?", "COM_STMT_EXECUTE 1001 ", "COM_STMT_EXECUTE 1001 "},
			"", 0,
		},
		{
			"an id used again, its close and prepare not seen", func(add func(byte, string, ...func(*capture.Statement))) {
				add(wire.ComStmtPrepare, text, id(5))
				add(wire.ComStmtExecute, "select 2", id(5))
			},
			[]string{"COM_STMT_PREPARE select ?", "COM_STMT_PREPARE select 2", "COM_STMT_EXECUTE 1002 "},
			"", 0,
		},
		{
			"refused by the target", func(add func(byte, string, ...func(*capture.Statement))) {
				add(wire.ComStmtPrepare, "select fail", id(5))
				add(wire.ComStmtExecute, "select fail", id(5))
				add(wire.ComStmtClose, "select fail", id(5))
			},
			[]string{"COM_STMT_PREPARE select fail"},
			"its PREPARE failed on the target", 2,
		},
		{
			"refused when captured, not by the target", func(add func(byte, string, ...func(*capture.Statement))) {
				add(wire.ComStmtPrepare, text, func(s *capture.Statement) { s.Outcome.Errno = 1064 })
			},
			[]string{"COM_STMT_PREPARE select ?", "COM_STMT_CLOSE 1001 "},
			"", 0,
		},
		{
			"closed without being known", func(add func(byte, string, ...func(*capture.Statement))) {
				add(wire.ComStmtClose, "", id(5))
			},
			nil, "of a statement prepared before the capture, or no longer there", 1,
		},
		{
			"long data", func(add func(byte, string, ...func(*capture.Statement))) {
				add(wire.ComStmtPrepare, text, id(5))
				add(wire.ComStmtSendLongData, "\x00\x00abc", id(5))
				add(wire.ComStmtExecute, text, id(5))
			},
			[]string{"COM_STMT_PREPARE select ?", "COM_STMT_SEND_LONG_DATA 1001 \x00\x00abc", "COM_STMT_EXECUTE 1001 "},
			"", 0,
		},
		{
			"reset connection forgets", func(add func(byte, string, ...func(*capture.Statement))) {
				add(wire.ComStmtPrepare, text, id(5))
				add(wire.ComResetConnection, "....")
				add(wire.ComStmtReset, text, id(5))
			},
			[]string{"COM_STMT_PREPARE select ?", "COM_RESET_CONNECTION 774778414 "},
			"of a statement prepared before the capture, or no longer there", 1,
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newScript()
				c.start(1, 0)
				at := time.Duration(0)
				tt.build(func(command byte, text string, edit ...func(*capture.Statement)) {
					at += 5 * ms
					c.add(1, at, command, text, edit...)
				})
				f := new(target)
				r, _ := play(t, context.Background(), c, f, nil)
				if got := sentIDs(f.commands); !slices.Equal(got, tt.want) {
					t.Errorf("sent %q, want %q", got, tt.want)
				}
				reasons := map[string]uint64{}
				for _, a := range []replay.Account{r.Statements, r.Commands} {
					for reason, n := range a.Reasons {
						reasons[reason] += n
					}
				}
				if reasons[tt.skipped] != tt.count || (tt.skipped == "") != (len(reasons) == 0) {
					t.Errorf("skipped %v, want %d because %q", reasons, tt.count, tt.skipped)
				}
			})
		})
	}
}

// An execute whose long data was skipped would store something else than when it was captured.
func TestLongDataSkipped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newScript()
		c.start(1, 0)
		c.add(1, 1*ms, wire.ComStmtPrepare, "insert", id(5))
		c.add(1, 5*ms, wire.ComStmtSendLongData, "\x00\x00abc", id(5), func(s *capture.Statement) { s.Flags = capture.Truncated })
		c.add(1, 10*ms, wire.ComStmtExecute, "insert", id(5))
		c.add(1, 15*ms, wire.ComStmtExecute, "insert", id(5))
		f := new(target)
		r, _ := play(t, context.Background(), c, f, nil)
		want := []string{"COM_STMT_PREPARE insert", "COM_STMT_EXECUTE 1001 "}
		if got := sentIDs(f.commands); !slices.Equal(got, want) || r.Statements.Reasons["long data skipped before"] != 1 {
			t.Errorf("sent %q, skipped %v, want %q and one execute skipped", got, r.Statements.Reasons, want)
		}
	})
}
