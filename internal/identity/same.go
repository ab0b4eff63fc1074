package identity

import (
	"fmt"
	"strings"
)

// A Verdict says whether two answers mean the same server.
type Verdict int

const (
	Unknown Verdict = iota // too little was told
	Same                   // or so like it that nobody should write to it by accident
	Different
)

// Compare tells whether two answers come from the same server, and by what. It leans to Same: a server that looks the
// same in one way and different in another is taken for the same. MariaDB's uid is made from a network card and a
// port, so it proves nothing about servers whose data lie in different places; MySQL's uuid is stored with the data.
func Compare(a, b Server) (verdict Verdict, reason string) {
	if a.UUID != "" && a.UUID == b.UUID && (!a.isMariaDB() || !differ(a.Datadir, b.Datadir)) {
		return Same, "the same uuid " + a.UUID
	}
	if told(a.Hostname, a.Port, a.Datadir) && a.place() == b.place() && !differ(a.ServerID, b.ServerID) {
		return Same, fmt.Sprintf("the same server id, host, port and data directory (%s, %s:%s, %s)", a.ServerID, a.Hostname, a.Port, a.Datadir)
	}
	for _, part := range []struct{ name, a, b string }{
		{"uuid", a.UUID, b.UUID},
		{"host name", a.Hostname, b.Hostname},
		{"port", a.Port, b.Port},
		{"data directory", a.Datadir, b.Datadir},
		{"server id", a.ServerID, b.ServerID},
	} {
		if differ(part.a, part.b) {
			return Different, fmt.Sprintf("another %s: %s, not %s", part.name, part.b, part.a)
		}
	}
	if a.continuedBy(b) {
		return Same, fmt.Sprintf("the same server id %s and a binary log that goes on from the captured one (%s)", a.ServerID, a.BinlogFile)
	}
	return Unknown, "the servers told too little of themselves"
}

func (s Server) isMariaDB() bool {
	return strings.Contains(strings.ToLower(s.Version+s.Comment), "mariadb")
}

func (s Server) place() [3]string { return [3]string{s.Hostname, s.Port, s.Datadir} }

// continuedBy reports whether b's binary log is ours, at or past our position.
func (s Server) continuedBy(b Server) bool {
	return told(s.ServerID, s.BinlogFile) && s.ServerID == b.ServerID && s.BinlogFile == b.BinlogFile && b.BinlogPos >= s.BinlogPos
}

func told(values ...string) bool {
	for _, v := range values {
		if v == "" {
			return false
		}
	}
	return true
}

// differ reports whether both were told and are not the same.
func differ(a, b string) bool { return a != "" && b != "" && a != b }
