package e2e_test

import (
	"bytes"
	"cmp"
	"path/filepath"
	"slices"
	"testing"

	"redrive/capture"
	"redrive/internal/mysqltest"
	"redrive/internal/wire"
)

// A client is a library or program with its smoke script in testdata/clients: login, statements as text and prepared,
// transactions, a large blob both ways, errors, several statements in one, cursors, as far as the client can.
type client struct {
	name        string
	command     []string // program, script, arguments
	environment []string
	packages    string // what to install on Debian
	compresses  bool   // it can
}

func clients(t *testing.T) []client {
	node := []string{"NODE_PATH=" + nodeModules(t)}
	java := []string{"CLASSPATH=" + javaClient(t)}
	return []client{
		{name: "mariadb", command: []string{"sh", script("mariadb.sh")}, packages: "mariadb-client", compresses: true},
		{name: "sysbench", command: []string{"sh", script("sysbench.sh")}, packages: "sysbench", compresses: true},
		{name: "go-sql-driver", command: []string{goClient(t)}, packages: "golang", compresses: true},
		{name: "pymysql", command: []string{python(), script("pymysql_smoke.py")}, packages: "python3-pymysql"},
		{name: "mysqldb", command: []string{python(), script("mysqldb_smoke.py")}, packages: "python3-mysqldb", compresses: true},
		{name: "php-mysqli", command: []string{"php", script("mysqli.php")}, packages: "php-cli php-mysql", compresses: true},
		{name: "perl-mysql", command: []string{"perl", script("dbi.pl"), "mysql"}, packages: "libdbd-mysql-perl", compresses: true},
		{name: "perl-mariadb", command: []string{"perl", script("dbi.pl"), "MariaDB"}, packages: "libdbd-mariadb-perl", compresses: true},
		{name: "node-mysql2", command: []string{"node", script("node/mysql2.js")}, environment: node, packages: nodePackages, compresses: true},
		{name: "node-mariadb", command: []string{"node", script("node/mariadb.js")}, environment: node, packages: nodePackages, compresses: true},
		{name: "connector-j-client", command: []string{"java", "Smoke", "client"}, environment: java, packages: javaPackages, compresses: true},
		{name: "connector-j-server", command: []string{"java", "Smoke", "server"}, environment: java, packages: javaPackages},
	}
}

// A transport is a way for clients to reach the server through the proxy. However they do, what they print, and the
// commands that are recorded, are those of a plain connection without a proxy.
type transport struct {
	name        string
	proxy       []string // flags of redrive proxy
	environment []string // of the smoke script
	blob        int      // its size in MiB
	can         func(c client) bool
	bytes       func(t *testing.T, i int, direct, front, back *tapped) // compares those of connection i
}

func transports(cert *mysqltest.Certificate) []transport {
	return []transport{
		{
			name: "plain", blob: 20, can: func(client) bool { return true }, bytes: plainBytes,
		},
		{
			name: "compressed", proxy: []string{"--compression", "follow"}, environment: []string{"SMOKE_COMPRESS=1"},
			blob: 2, can: func(c client) bool { return c.compresses }, bytes: compressedBytes,
		},
		{
			name: "TLS", proxy: []string{"--tls-cert", cert.Cert, "--tls-key", cert.Key, "--backend-ssl-mode", "verify-identity", "--backend-ssl-ca", cert.CA},
			environment: []string{"SMOKE_CA=" + cert.CA}, blob: 2, can: func(client) bool { return true }, bytes: encryptedBytes,
		},
	}
}

// Every client behaves through the proxy as it does without: it prints the same, and sends and is sent the same bytes.
// Each command is in the capture once, and nothing stays behind at the server.
func TestClientMatrix(t *testing.T) {
	t.Parallel()
	cert := mysqltest.NewCertificate(t)
	server := mysqltest.Start(t, "--max-allowed-packet=64M", "--ssl-cert="+cert.Cert, "--ssl-key="+cert.Key)
	server.CreateUser(t, smokeUser, smokePassword)
	for _, c := range clients(t) {
		t.Run(c.name, func(t *testing.T) {
			direct := map[int]run{} // by the size of the blob
			for _, tr := range transports(cert) {
				if !tr.can(c) {
					continue
				}
				if _, done := direct[tr.blob]; !done {
					direct[tr.blob] = runDirect(t, server, c, tr.blob)
				}
				t.Run(tr.name, func(t *testing.T) { compareThroughProxy(t, server, c, tr, direct[tr.blob]) })
			}
		})
	}
}

// runDirect runs a client without a proxy.
func runDirect(t *testing.T, server *mysqltest.Server, c client, blob int) run {
	t.Helper()
	front := startTap(t, server.Addr)
	r := smoke(t, server, c, front.addr, blob, nil)
	r.conns = front.stop()
	for i, conn := range r.conns {
		commands, err := scan(conn.fromClient)
		if err != nil {
			t.Fatalf("connection %d: %v", i+1, err)
		}
		r.commands = append(r.commands, commands)
		conn.blot()
	}
	return r
}

// compareThroughProxy runs a client through the proxy and compares.
func compareThroughProxy(t *testing.T, server *mysqltest.Server, c client, tr transport, direct run) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "capture.rdt")
	behind := startTap(t, server.Addr)
	p := startProxy(t, append([]string{"--backend", behind.addr, "--out", file}, tr.proxy...)...)
	front := startTap(t, p.addr)
	got := smoke(t, server, c, front.addr, tr.blob, tr.environment)
	got.conns = front.stop()
	p.stop(t)
	back := behind.stop()

	if got.output != direct.output {
		t.Errorf("through the proxy it prints\n%s\nwithout\n%s", got.output, direct.output)
	}
	for name, n := range direct.grown {
		if got.grown[name] != n {
			t.Errorf("through the proxy %s grew by %d, without by %d", name, got.grown[name], n)
		}
	}
	compareCapture(t, file, direct)
	if len(got.conns) != len(direct.conns) || len(back) != len(direct.conns) {
		t.Fatalf("%d connections to the proxy and %d to the server, %d without a proxy", len(got.conns), len(back), len(direct.conns))
	}
	for i, d := range direct.conns {
		tr.bytes(t, i, d, got.conns[i], back[i])
	}
}

// plainBytes are the same on both sides of the proxy, but for the offers that it withheld, and the same as without a
// proxy, but for what every connection has of its own.
func plainBytes(t *testing.T, i int, direct, front, back *tapped) {
	t.Helper()
	sameOnBothSides(t, i, front, back, wire.SSL|wire.Compress|wire.Zstd)
	front.blot()
	sameBytes(t, i, "client to server, with the proxy and without", commandPhase(front.fromClient), commandPhase(direct.fromClient))
	sameBytes(t, i, "server to client, with the proxy and without", replyPhase(front.fromServer), replyPhase(direct.fromServer))
}

func compressedBytes(t *testing.T, i int, _, front, back *tapped) {
	t.Helper()
	sameOnBothSides(t, i, front, back, wire.SSL)
	if packets, err := scan(front.fromClient); err == nil && len(packets) > 1 {
		t.Errorf("connection %d: the client does not compress", i+1)
	}
}

// encryptedBytes show nothing of what is said.
func encryptedBytes(t *testing.T, i int, _, front, back *tapped) {
	t.Helper()
	for _, stream := range [][]byte{front.fromClient, front.fromServer, back.fromClient, back.fromServer} {
		if bytes.Contains(stream, []byte("people")) {
			t.Errorf("connection %d is not encrypted", i+1)
		}
	}
}

func sameOnBothSides(t *testing.T, i int, front, back *tapped, withheld wire.Capabilities) {
	t.Helper()
	back.withhold(withheld)
	sameBytes(t, i, "client to server, behind the proxy and before it", back.fromClient, front.fromClient)
	sameBytes(t, i, "server to client, before the proxy and behind it", front.fromServer, back.fromServer)
}

func sameBytes(t *testing.T, i int, what string, got, want []byte) {
	t.Helper()
	if !bytes.Equal(got, want) {
		t.Errorf("connection %d, %s: %s", i+1, what, firstDifference(got, want))
	}
}

// compareCapture asks that the capture has the commands that the bytes of a direct connection hold, each once, and
// nothing else, and that its sessions were followed to their ends.
func compareCapture(t *testing.T, file string, direct run) {
	t.Helper()
	recorded := map[uint64][]*capture.Statement{} // by session; the proxy numbers them as they come in
	for _, r := range records(t, file) {
		switch {
		case r.Kind == capture.KindStatement:
			recorded[r.Statement.Session] = append(recorded[r.Statement.Session], &r.Statement)
		case r.Kind == capture.KindSessionEnd && r.End.Reason != capture.EndQuit:
			t.Errorf("session %d ended for reason %d, %s: want COM_QUIT", r.End.Session, r.End.Reason, r.End.Detail)
		case r.Kind == capture.KindGap:
			t.Errorf("a gap: %s", r.Gap.Reason)
		}
	}
	if len(recorded) != len(direct.conns) {
		t.Fatalf("%d sessions in the capture, %d connections", len(recorded), len(direct.conns))
	}
	for i, commands := range direct.commands {
		statements := recorded[uint64(i+1)]
		slices.SortFunc(statements, func(a, b *capture.Statement) int { return cmp.Compare(a.Number, b.Number) })
		if len(statements) != len(commands) {
			t.Errorf("session %d: %d commands in the capture, %d in the bytes", i+1, len(statements), len(commands))
			continue
		}
		m := matcher{texts: map[uint32][]byte{}}
		for k, s := range statements {
			if s.Number != uint64(k+1) {
				t.Errorf("session %d: command %d has number %d", i+1, k+1, s.Number)
			}
			for _, wrong := range m.compare(s, commands[k]) {
				t.Errorf("session %d: %s", i+1, wrong)
			}
		}
	}
	compareCounters(t, recorded, direct.grown)
}

// compareCounters asks that the capture says what the server counted.
func compareCounters(t *testing.T, recorded map[uint64][]*capture.Statement, grown map[string]uint64) {
	t.Helper()
	seen := map[string]uint64{}
	for _, statements := range recorded {
		for _, s := range statements {
			addCounts(seen, s)
		}
	}
	for name, n := range grown {
		if seen[name] != n {
			t.Errorf("%s: %d by the capture, the server counted %d", name, seen[name], n)
		}
	}
}

// addCounts adds a command as MariaDB does.
func addCounts(counters map[string]uint64, s *capture.Statement) {
	call := bytes.HasPrefix(bytes.ToUpper(s.Text[:min(5, len(s.Text))]), []byte("CALL "))
	rows := s.Outcome.Rows
	switch s.Command {
	case wire.ComStmtPrepare:
		counters["Com_stmt_prepare"]++
		return
	case wire.ComPing, wire.ComStatistics, wire.ComStmtClose, wire.ComStmtReset:
		return
	case wire.ComStmtExecute, wire.ComStmtBulkExecute:
		if s.StatementID != 0 { // 0 was sent as "the latest", which could not be prepared
			counters["Com_stmt_execute"]++
		}
		if bytes.Contains(s.Text, []byte("doubled")) {
			rows-- // the row of OUT parameters
		}
	case wire.ComStmtFetch:
		counters["Com_stmt_fetch"]++
		rows = 0
	case wire.ComStmtSendLongData:
		counters["Com_stmt_send_long_data"]++
	case wire.ComQuery:
		switch { // the server counts these with the commands of the protocol
		case bytes.HasPrefix(s.Text, []byte("PREPARE ")):
			counters["Com_stmt_prepare"]++
		case bytes.HasPrefix(s.Text, []byte("EXECUTE ")):
			counters["Com_stmt_execute"]++
		}
		if !call { // a procedure's results are not statements of their own
			counters["Questions"] += uint64(max(1, s.Outcome.Results)) - 1
		}
	}
	counters["Questions"]++
	counters["Rows_sent"] += rows
}
