package e2e_test

import (
	"net"
	"os/exec"
	"strings"
	"testing"

	"redrive/capture"
	"redrive/internal/mysqltest"
)

// A replica's stream passes through the proxy as it is; its session is recorded as opaque, with the reason.
func TestBinlogDump(t *testing.T) {
	server := mysqltest.Start(t, "--log-bin=binlog", "--server-id=7")
	schema := server.Schema(t)
	server.Exec(t, "CREATE TABLE "+schema+".t (a INT)", "INSERT INTO "+schema+".t VALUES (4711)")
	tool, err := mysqltest.Tool("mariadb-binlog")
	if err != nil {
		t.Fatal(err)
	}
	dump := func(addr string) string {
		host, port, _ := net.SplitHostPort(addr)
		out, err := exec.Command(tool, "--no-defaults", "--read-from-remote-server", "--host="+host, "--port="+port, "--user="+mysqltest.User,
			"--password="+mysqltest.Password, "--base64-output=never", "--verbose", "--skip-ssl", "binlog.000001").CombinedOutput()
		if err != nil {
			t.Fatalf("mariadb-binlog: %v\n%s", err, out)
		}
		return string(out)
	}
	want := dump(server.Addr)
	if !strings.Contains(want, "4711") && !strings.Contains(want, "INSERT") {
		t.Fatalf("the dump does not show the insert: the test does not bite\n%s", want)
	}
	var got string
	file := record(t, server, func(addr string) { got = dump(addr) })
	if got != want {
		t.Errorf("the dump through the proxy differs:\n%s\nwant\n%s", got, want)
	}
	opaque := 0
	for _, rec := range records(t, file) {
		if rec.Kind == capture.KindSessionEnd && rec.End.Reason == capture.EndOpaque && strings.Contains(rec.End.Detail, "COM_BINLOG_DUMP") {
			opaque++
		}
	}
	if opaque != 1 {
		t.Errorf("%d sessions recorded as opaque for COM_BINLOG_DUMP, want 1", opaque)
	}
}
