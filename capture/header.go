package capture

import (
	"time"

	"redrive/internal/identity"
)

// A Header says where a capture comes from. It is stored as JSON; readers ignore names they do not know.
type Header struct {
	Producer string            `json:"producer"`           // proxy, replay, synth or import
	Product  string            `json:"product"`            // what wrote it, with version
	Host     string            `json:"host,omitempty"`     // machine it was written on
	Start    time.Time         `json:"start"`              // wall clock at offset 0 of all times
	Zone     string            `json:"zone,omitempty"`     // time zone of the writing machine
	Clock    string            `json:"clock"`              // of the offsets: "monotonic", or "none" for a stream that never ran
	Backend  string            `json:"backend,omitempty"`  // the server as it was addressed
	Resolved []string          `json:"resolved,omitempty"` // the addresses that stood for, host:port or a socket path
	Server   *identity.Server  `json:"server,omitempty"`   // what the server said of itself; nil if it was not asked
	Settings map[string]string `json:"settings,omitempty"` // flags that shaped the capture; never a secret
	Source   string            `json:"source,omitempty"`   // replay: the files that were played
}
