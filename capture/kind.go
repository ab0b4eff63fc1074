package capture

import "fmt"

// String is the kind's name in output and messages.
func (k Kind) String() string {
	switch k {
	case KindStatement:
		return "statement"
	case KindBegin:
		return "begin"
	case KindSessionStart:
		return "session start"
	case KindSessionEnd:
		return "session end"
	case KindGap:
		return "gap"
	}
	return fmt.Sprintf("kind %d", byte(k))
}

// String is the reason's name in output.
func (r EndReason) String() string {
	switch r {
	case EndQuit:
		return "quit"
	case EndClient:
		return "client closed"
	case EndServer:
		return "server closed"
	case EndRejected:
		return "login failed"
	case EndOpaque:
		return "not understood from here on"
	case EndStopped:
		return "recording stopped"
	case EndBroken:
		return "own error"
	}
	return fmt.Sprintf("reason %d", byte(r))
}

// String is the end's name in output; a transaction that goes on has none.
func (e TxnEnd) String() string {
	switch e {
	case TxnOpen:
		return ""
	case TxnAuto:
		return "autocommit"
	case TxnCommit:
		return "commit"
	case TxnRollback:
		return "rollback"
	case TxnImplicit:
		return "implicit commit"
	case TxnError:
		return "error"
	case TxnDisconnect:
		return "disconnect"
	}
	return fmt.Sprintf("end %d", byte(e))
}

var flagNames = []string{
	"truncated", "unanswered", "cut", "begun", "text unknown", "types unknown", "no outcome", "cursor", "infile", "copy",
	"unparsed", "masked", "file kept",
}

// Names are the names of the flags that are set, in output.
func (f Flags) Names() []string {
	var names []string
	for i, name := range flagNames {
		if f&(1<<i) != 0 {
			names = append(names, name)
		}
	}
	return names
}
