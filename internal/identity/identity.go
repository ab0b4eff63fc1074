// Package identity asks a server who it is, and tells whether two answers mean the same server.
package identity

// Server is what a server says of itself when asked by SQL. Empty fields were not told.
type Server struct {
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
