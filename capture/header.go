package capture

import "time"

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
	Server   *ServerIdentity   `json:"server,omitempty"`   // what the server said of itself; nil if it was not asked
	Settings map[string]string `json:"settings,omitempty"` // flags that shaped the capture; never a secret
	Source   string            `json:"source,omitempty"`   // replay: the files that were played
}

// ServerIdentity is what a server says of itself when asked by SQL.
type ServerIdentity struct {
	Version    string `json:"version,omitempty"`
	Comment    string `json:"version_comment,omitempty"`
	ServerID   string `json:"server_id,omitempty"`
	UUID       string `json:"uuid,omitempty"` // server_uuid, or MariaDB's server_uid
	Hostname   string `json:"hostname,omitempty"`
	Port       string `json:"port,omitempty"`
	Datadir    string `json:"datadir,omitempty"`
	Socket     string `json:"socket,omitempty"`
	BinlogFile string `json:"binlog_file,omitempty"`
	BinlogPos  uint64 `json:"binlog_pos,omitempty"`
	GTID       string `json:"gtid,omitempty"`
}
