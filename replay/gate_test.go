package replay_test

import (
	"context"
	"errors"
	"net/netip"
	"strings"
	"testing"
	"time"

	"redrive/capture"
	"redrive/internal/identity"
	"redrive/internal/wire"
	"redrive/replay"
)

func scanOf(t *testing.T, c *script) *replay.Scan {
	t.Helper()
	scan, err := replay.ScanFiles(context.Background(), []replay.File{memoryFile("hand.rdt", c.bytes(t))})
	if err != nil {
		t.Fatal(err)
	}
	return scan
}

func TestSameServerGate(t *testing.T) {
	probed := &identity.Server{Version: "8.0.36", UUID: "u1", ServerID: "1", Hostname: "db1", Port: "3306", Datadir: "/d/", Socket: "/run/m.sock"}
	target := func(address string, server identity.Server, resolved ...string) replay.Target {
		return replay.Target{Address: address, Resolved: resolved, Server: server, Host: "here", Local: []netip.Addr{netip.MustParseAddr("10.0.0.5")}}
	}
	local := identity.Server{Hostname: "here", Port: "3306", Socket: "/run/m.sock"}
	backend := func(host string, addresses ...string) capture.Header {
		return capture.Header{Host: host, Backend: addresses[0], Resolved: addresses[1:]}
	}
	other := identity.Server{Version: "8.4.0", UUID: "u2", Hostname: "db2", Port: "3306", Datadir: "/d/"}
	tests := []struct {
		name   string
		header capture.Header
		target replay.Target
		reason string // of a refusal; "" lets it pass
		note   string
	}{
		{"same uuid", capture.Header{Server: probed}, target("10.1.1.1:3306", *probed), "same uuid u1", ""},
		{"another server at the captured address", capture.Header{Server: probed, Backend: "10.1.1.1:3306"}, target("10.1.1.1:3306", other), "", ""},
		{"another server", capture.Header{Server: probed, Backend: "db1:3306"}, target("db2:3306", other), "", ""},
		{"an identity that was refused falls back to addresses", capture.Header{Server: &identity.Server{}, Backend: "db1:3306"}, target("db1:3306", other), "captured one, db1:3306", "only addresses"},
		{"same name", backend("prod", "db1:3306"), target("db1:3306", other), "captured one", "only addresses"},
		{"same number under another name", backend("prod", "db1:3306", "10.9.9.9:3306"), target("alias:3306", other, "10.9.9.9:3306"), "captured one, 10.9.9.9:3306", "only addresses"},
		{"IPv4 within IPv6", backend("prod", "10.9.9.9:3306"), target("[::ffff:10.9.9.9]:3306", other), "captured one", "only addresses"},
		{"another port", backend("prod", "db1:3306", "10.9.9.9:3306"), target("db1:3307", other, "10.9.9.9:3307"), "", "only addresses"},
		{"loopback by its name", backend("here", "127.0.0.1:3306"), target("localhost:3306", local, "127.0.0.1:3306"), "captured one", "only addresses"},
		{"loopback and our own address", backend("here", "127.0.0.1:3306"), target("10.0.0.5:3306", local, "10.0.0.5:3306"), "captured one", "only addresses"},
		{"our own address and loopback", backend("prod", "10.0.0.5:3306"), target("127.0.0.1:3306", local), "captured one", "only addresses"},
		{"our own name and loopback", backend("here", "here:3306"), target("127.0.0.1:3306", local), "captured one", "only addresses"},
		{"loopback and the socket", backend("here", "127.0.0.1:3306"), target("/run/m.sock", local), "captured one", "only addresses"},
		{"the socket and loopback", backend("here", "/run/m.sock"), target("127.0.0.1:3306", local), "captured one", "only addresses"},
		{"the socket of another server", backend("here", "/run/n.sock"), target("127.0.0.1:3306", local), "", "only addresses"},
		{"the socket of another port's server", backend("here", "127.0.0.1:3307"), target("/run/m.sock", local), "", "only addresses"},
		{"two sockets", backend("here", "/run/n.sock"), target("/run/m.sock", local), "", "only addresses"},
		{"a socket and a server that tells nothing", backend("here", "127.0.0.1:3306"), target("/run/m.sock", identity.Server{}), "captured one", "only addresses"},
		{"another machine's loopback, other port here", backend("prod", "127.0.0.1:3306"), target("127.0.0.1:3307", local), "", "only addresses"},
		{"another machine's loopback, spelled the same", backend("prod", "127.0.0.1:3306"), target("127.0.0.1:3306", local), "captured one", "only addresses"},
		{"another machine's loopback, reached by its name", backend("prod", "127.0.0.1:3306"), target("prod:3306", other), "captured one", "only addresses"},
		{"another machine's loopback, reached by a tunnel", backend("prod", "127.0.0.1:3306"), target("127.0.0.1:13306", identity.Server{Hostname: "prod", Port: "3306"}), "captured one", "only addresses"},
		{"our proxy", capture.Header{Host: "here", Backend: "10.7.7.7:3306", Settings: map[string]string{"listen": "[::]:3310"}}, target("127.0.0.1:3310", other), "captured one, [::]:3310", "only addresses"},
		{"nothing known", capture.Header{Producer: "import"}, target("db1:3306", other), "", "does not name the server"},
	}
	for _, tt := range tests {
		c := newScript()
		c.header = tt.header
		c.start(1, 0)
		c.query(1, ms, "select 1")
		notes, err := replay.Gate{}.Check(scanOf(t, c), &tt.target)
		if tt.reason == "" && err != nil || tt.reason != "" && (err == nil || !strings.Contains(err.Error(), tt.reason) || !strings.Contains(err.Error(), "--allow-same-server")) {
			t.Errorf("%s: Check = %v, want a refusal with %q", tt.name, err, tt.reason)
		}
		if got := strings.Join(notes, "\n"); (tt.note == "") != (got == "") || !strings.Contains(got, tt.note) {
			t.Errorf("%s: notes %q, want %q", tt.name, got, tt.note)
		}
		if _, err := (replay.Gate{AllowSameServer: true}).Check(scanOf(t, c), &tt.target); err != nil {
			t.Errorf("%s: with AllowSameServer, Check = %v, want nil", tt.name, err)
		}
	}
}

func TestWriteGate(t *testing.T) {
	writing := newScript()
	writing.start(1, 0)
	writing.query(1, 1*ms, "select 1")
	writing.query(1, 2*ms, "insert into shop.orders values (1)")
	writing.query(1, 3*ms, "INSERT INTO shop.orders VALUES (2)")
	writing.add(1, 4*ms, wire.ComStmtExecute, "update `stock` set n=? where id=?")
	writing.query(1, 5*ms, "delete from t", func(s *capture.Statement) { s.Flags = capture.Truncated }) // will not be sent
	reading := newScript()
	reading.start(1, 0)
	for i, text := range []string{"begin", "select 1 for update", "set @a=1", "show tables", "commit"} {
		reading.query(1, time.Duration(i+1)*ms, text)
	}
	const address = "db2:3306"
	tests := []struct {
		name   string
		script *script
		gate   replay.Gate
		marked bool
		pass   bool
	}{
		{"reads", reading, replay.Gate{}, false, true},
		{"writes", writing, replay.Gate{}, false, false},
		{"writes to a marked target, not allowed", writing, replay.Gate{}, true, false},
		{"writes allowed, target not known", writing, replay.Gate{AllowWrites: true}, false, false},
		{"writes allowed, wrong address", writing, replay.Gate{AllowWrites: true, IKnow: "db1:3306"}, false, false},
		{"the address without leave to write", writing, replay.Gate{IKnow: address}, false, false},
		{"writes allowed to a marked target", writing, replay.Gate{AllowWrites: true}, true, true},
		{"writes allowed to a named target", writing, replay.Gate{AllowWrites: true, IKnow: address}, false, true},
	}
	for _, tt := range tests {
		target := replay.Target{Address: address, Marked: tt.marked}
		_, err := tt.gate.Check(scanOf(t, tt.script), &target)
		if tt.pass && err != nil {
			t.Errorf("%s: Check = %v, want nil", tt.name, err)
		}
		if tt.pass {
			continue
		}
		var refusal *replay.Refusal
		if !errors.As(err, &refusal) {
			t.Errorf("%s: Check = %v, want a refusal", tt.name, err)
			continue
		}
		for _, want := range []string{"3 statements that may write", "2 insert shop.orders", "1 update `stock`", "--allow-writes", "redrive_target_ok", "--i-know db2:3306"} {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%s: the refusal lacks %q: %v", tt.name, want, err)
			}
		}
	}
}

// What a command does that we do not know, nobody can say; and what MariaDB sets or calls from within a harmless word.
func TestWriteGateInDoubt(t *testing.T) {
	unknown := newScript()
	unknown.add(1, ms, 0x2A, "")
	scripts := map[string]*script{"an unknown command": unknown}
	for _, text := range []string{"SET STATEMENT max_statement_time=1 FOR SET GLOBAL wait_timeout=1", "EXPLAIN SELECT * FROM (SELECT f()) d", "SHOW STATUS WHERE f()"} {
		scripts[text] = newScript()
		scripts[text].query(1, ms, text)
	}
	for name, c := range scripts {
		var refusal *replay.Refusal
		if _, err := (replay.Gate{}).Check(scanOf(t, c), &replay.Target{Address: "db2:3306"}); !errors.As(err, &refusal) {
			t.Errorf("%s: Check = %v, want a refusal", name, err)
		}
	}
}

func TestScanTables(t *testing.T) {
	tests := map[string]string{
		"insert into t values (1)":                          "1 insert t",
		"INSERT IGNORE INTO a.b SET x=1":                    "1 insert a.b",
		"update `a b` set x=1":                              "1 update `a b`",
		"delete low_priority from t":                        "1 delete t",
		"create table if not exists t (a int)":              "1 create table t",
		"create unique index i on t (a)":                    "1 create index t",
		"drop table if exists x, y":                         "1 drop table x",
		"truncate t":                                        "1 truncate t",
		"call p()":                                          "1 call p",
		"/* c */ replace t values (1)":                      "1 replace t",
		"gibberish":                                         "1 gibberish",
		"insert into " + strings.Repeat("n", 90) + " set a": "1 insert " + strings.Repeat("n", 80),
	}
	for text, want := range tests {
		c := newScript()
		c.query(1, ms, text)
		scan := scanOf(t, c)
		if len(scan.Writes) != 1 || scan.Writes[0].String() != want {
			t.Errorf("%q writes %v, want %s", text, scan.Writes, want)
		}
	}
}

// A capture that was cut short is scanned as far as it goes; what is no capture is refused.
func TestScanBroken(t *testing.T) {
	c := newScript()
	c.start(1, 0)
	c.query(1, ms, "insert into t values (1)")
	whole := c.bytes(t)
	scan, err := replay.ScanFiles(context.Background(), []replay.File{memoryFile("cut.rdt", whole[:len(whole)-1])})
	if err != nil {
		t.Fatal(err)
	}
	if scan.Files[0].Err == nil || !strings.Contains(scan.Files[0].Err.Error(), "cut.rdt: offset") || len(scan.Writes) != 1 {
		t.Errorf("a cut file: error %v, writes %v, want one with the offset, and the insert", scan.Files[0].Err, scan.Writes)
	}
	if _, err := replay.ScanFiles(context.Background(), []replay.File{memoryFile("x.txt", []byte("hello"))}); err == nil || !strings.Contains(err.Error(), "x.txt: offset 0") {
		t.Errorf("a foreign file: %v, want an error with its name and offset", err)
	}
}
