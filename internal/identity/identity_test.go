package identity_test

import (
	"context"
	"database/sql"
	"strconv"
	"strings"
	"testing"

	"github.com/go-sql-driver/mysql"

	"redrive/internal/identity"
	"redrive/internal/mysqltest"
)

func TestMain(m *testing.M) { mysqltest.Main(m) }

func open(t *testing.T, server *mysqltest.Server, user, password string) *sql.DB {
	t.Helper()
	c := mysql.NewConfig()
	c.User, c.Passwd, c.Net, c.Addr = user, password, "tcp", server.Addr
	connector, err := mysql.NewConnector(c)
	if err != nil {
		t.Fatal(err)
	}
	db := sql.OpenDB(connector)
	t.Cleanup(func() { db.Close() })
	return db
}

func TestProbe(t *testing.T) {
	server := mysqltest.Shared(t)
	s, err := identity.Probe(context.Background(), server.DB())
	if err != nil {
		t.Fatal(err)
	}
	if s.Port != strconv.Itoa(server.Port) || s.Socket != server.Socket {
		t.Errorf("Probe says port %q and socket %q, want %d and %q", s.Port, s.Socket, server.Port, server.Socket)
	}
	var version, host, datadir string
	if err := server.DB().QueryRow("SELECT VERSION(), @@hostname, @@datadir").Scan(&version, &host, &datadir); err != nil {
		t.Fatal(err)
	}
	if s.Version != version || s.Hostname != host || s.Datadir != datadir {
		t.Errorf("Probe says %q, %q, %q, want %q, %q, %q", s.Version, s.Hostname, s.Datadir, version, host, datadir)
	}
	if s.UUID == "" || s.ServerID == "" || s.Comment == "" {
		t.Errorf("Probe leaves something out that MariaDB tells: %+v", s)
	}
	if verdict, reason := identity.Compare(s, s); verdict != identity.Same || !strings.Contains(reason, s.UUID) {
		t.Errorf("a server compared with itself: %v, %q, want Same by its uuid", verdict, reason)
	}
}

// The binary log takes a privilege, the rest does not.
func TestProbeWithoutPrivileges(t *testing.T) {
	server := mysqltest.Start(t, "--log-bin=bin")
	server.Exec(t, "CREATE USER nobody@'%' IDENTIFIED BY 'x'")
	full, err := identity.Probe(context.Background(), server.DB())
	if err != nil {
		t.Fatal(err)
	}
	if full.BinlogFile != "bin.000001" || full.BinlogPos == 0 || full.GTID == "" {
		t.Errorf("as root, binary log %q at %d, GTID %q, want bin.000001 past 0, and a GTID", full.BinlogFile, full.BinlogPos, full.GTID)
	}
	s, err := identity.Probe(context.Background(), open(t, server, "nobody", "x"))
	if err != nil {
		t.Fatal(err)
	}
	if s.BinlogFile != "" || s.UUID != full.UUID {
		t.Errorf("without privileges, binary log %q and uid %q, want none and %q", s.BinlogFile, s.UUID, full.UUID)
	}
}

func TestProbeFails(t *testing.T) {
	server := mysqltest.Shared(t)
	_, err := identity.Probe(context.Background(), open(t, server, mysqltest.User, "wrong-secret"))
	if err == nil || !strings.Contains(err.Error(), "1045") || strings.Contains(err.Error(), "wrong-secret") {
		t.Errorf("Probe with a wrong password fails with %v, want error 1045 without the password", err)
	}
}

func TestCompare(t *testing.T) {
	mysql8 := identity.Server{Version: "8.0.36", ServerID: "1", UUID: "u1", Hostname: "db1", Port: "3306", Datadir: "/d/"}
	maria := identity.Server{Version: "10.11.6-MariaDB", ServerID: "1", UUID: "m1", Hostname: "db1", Port: "3306", Datadir: "/d/"}
	binlog := identity.Server{ServerID: "7", BinlogFile: "bin.000003", BinlogPos: 100}
	with := func(s identity.Server, change func(*identity.Server)) identity.Server {
		change(&s)
		return s
	}
	tests := []struct {
		name   string
		a, b   identity.Server
		want   identity.Verdict
		reason string
	}{
		{"itself", mysql8, mysql8, identity.Same, "uuid u1"},
		{"moved, renamed", mysql8, with(mysql8, func(s *identity.Server) { s.Hostname, s.Port, s.Datadir = "x", "1", "/y/" }), identity.Same, "uuid"},
		{"reinstalled in place", mysql8, with(mysql8, func(s *identity.Server) { s.UUID = "u2" }), identity.Same, "db1:3306"},
		{"another server id in place", mysql8, with(mysql8, func(s *identity.Server) { s.UUID, s.ServerID = "u2", "2" }), identity.Different, "uuid"},
		{"beside it", mysql8, with(mysql8, func(s *identity.Server) { s.UUID, s.Port, s.Datadir = "u2", "3307", "/e/" }), identity.Different, "uuid: u2, not u1"},
		{"MariaDB under a new name", maria, with(maria, func(s *identity.Server) { s.Hostname = "f00" }), identity.Same, "uuid"},
		{"MariaDB with other data, same card and port", maria, with(maria, func(s *identity.Server) { s.Datadir = "/e/" }), identity.Different, "data directory: /e/, not /d/"},
		{"no uuid, other port", with(mysql8, func(s *identity.Server) { s.UUID = "" }), with(mysql8, func(s *identity.Server) { s.UUID, s.Port = "", "3307" }), identity.Different, "port"},
		{"binary log goes on", binlog, with(binlog, func(s *identity.Server) { s.BinlogPos = 200 }), identity.Same, "binary log"},
		{"binary log starts before", binlog, with(binlog, func(s *identity.Server) { s.BinlogPos = 50 }), identity.Unknown, "too little"},
		{"nothing told", mysql8, identity.Server{}, identity.Unknown, "too little"},
		{"nothing told by both", identity.Server{}, identity.Server{}, identity.Unknown, "too little"},
	}
	for _, tt := range tests {
		got, reason := identity.Compare(tt.a, tt.b)
		if got != tt.want || !strings.Contains(reason, tt.reason) {
			t.Errorf("%s: Compare = %v, %q, want %v and a reason with %q", tt.name, got, reason, tt.want, tt.reason)
		}
	}
}
