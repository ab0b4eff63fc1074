package mysqltest_test

import (
	"bufio"
	"context"
	"maps"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"redrive/internal/mysqltest"
)

// parentVariable makes the test binary a process that starts a child, tells its pid and waits to be killed.
const parentVariable = "MYSQLTEST_BE_A_PARENT"

func TestMain(m *testing.M) {
	if os.Getenv(parentVariable) != "" {
		beParent()
	}
	mysqltest.Main(m)
}

func beParent() {
	child, err := mysqltest.Spawn(exec.Command("sleep", "600"))
	if err != nil {
		panic(err)
	}
	os.Stdout.WriteString(strconv.Itoa(child.Pid()) + "\n")
	<-child.Done()
}

func TestChildDiesWithItsParent(t *testing.T) {
	parent := exec.Command(os.Args[0])
	parent.Env = append(os.Environ(), parentVariable+"=1")
	out, err := parent.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := parent.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	child, err := strconv.Atoi(strings.TrimSpace(line))
	if err != nil {
		t.Fatal(err)
	}
	parent.Process.Kill()
	parent.Wait()
	if !await(func() bool { return !runs(child) }) {
		syscall.Kill(child, syscall.SIGKILL)
		t.Errorf("child %d outlived its parent", child)
	}
}

// runs reports whether the process is there and no zombie, which nobody may reap in a container.
func runs(pid int) bool {
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	return err == nil && !strings.Contains(string(stat), ") Z ")
}

func await(condition func() bool) bool {
	for deadline := time.Now().Add(30 * time.Second); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		if condition() {
			return true
		}
	}
	return false
}

func TestServer(t *testing.T) {
	s := mysqltest.Shared(t)
	for name, want := range map[string]string{"max_connections": "4000", "max_prepared_stmt_count": "1048576", "skip_name_resolve": "ON"} {
		var got string
		if err := s.DB().QueryRow("SHOW GLOBAL VARIABLES LIKE '"+name+"'").Scan(&name, &got); err != nil {
			t.Fatal(err)
		}
		if got != want {
			t.Errorf("%s = %s, want %s", name, got, want)
		}
	}
}

func TestStopRemovesServer(t *testing.T) {
	s, err := mysqltest.Launch("--max-connections=77")
	if err != nil {
		t.Fatal(err)
	}
	defer s.Stop()
	var connections int
	if err := s.DB().QueryRow("SELECT @@max_connections").Scan(&connections); err != nil {
		t.Error(err)
	}
	if connections != 77 {
		t.Errorf("max_connections = %d with an option of 77", connections)
	}
	s.Stop()
	if _, err := os.Stat(s.Socket); !os.IsNotExist(err) {
		t.Errorf("stat of the socket after Stop: %v, want it gone", err)
	}
	if conn, err := net.Dial("tcp", s.Addr); err == nil {
		conn.Close()
		t.Errorf("%s still listens after Stop", s.Addr)
	}
	if runs(s.Process().Pid()) {
		t.Errorf("process %d still runs after Stop", s.Process().Pid())
	}
}

func TestLaunchTellsWhatTheServerSaid(t *testing.T) {
	_, err := mysqltest.Launch("--no-such-option")
	if err == nil || !strings.Contains(err.Error(), "unknown option '--no-such-option'") {
		t.Errorf("Launch with an unknown option: %v, want the server's own words", err)
	}
}

func TestCreateUser(t *testing.T) {
	s := mysqltest.Shared(t)
	s.CreateUser(t, "user@tenant#cluster", `it's a \ secret`)
	out, err := mariadb(t, s, "user@tenant#cluster", `it's a \ secret`, "SELECT CURRENT_USER()")
	if err != nil || out != "user@tenant#cluster@%" {
		t.Errorf("login of a created user: %q, %v", out, err)
	}
	if out, err := mariadb(t, s, "user@tenant#cluster", "wrong", "SELECT 1"); err == nil {
		t.Errorf("login with a wrong password says %q, want a refusal", out)
	}
}

func mariadb(t *testing.T, s *mysqltest.Server, user, password, query string) (string, error) {
	t.Helper()
	tool, err := mysqltest.Tool("mariadb")
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(tool, "--no-defaults", "-N", "-h127.0.0.1", "-P"+strconv.Itoa(s.Port), "-u"+user, "-e", query)
	cmd.Env = append(os.Environ(), "MYSQL_PWD="+password)
	out, err := cmd.CombinedOutput()
	return strings.TrimSpace(string(out)), err
}

func TestStatusCountsOthersOnly(t *testing.T) {
	s := mysqltest.Shared(t)
	before := s.Status(t, "Rows_sent", "Com_select")
	s.Status(t, "Rows_sent", "Com_select", "Com_insert")
	for range 3 {
		var one, two int
		if err := s.DB().QueryRow("SELECT 1, 2 UNION SELECT 3, 4").Scan(&one, &two); err != nil {
			t.Fatal(err)
		}
	}
	after := s.Status(t, "Rows_sent", "Com_select")
	if grown := after["Rows_sent"] - before["Rows_sent"]; grown != 6 {
		t.Errorf("Rows_sent grew by %d over 3 selects of 2 rows, want 6", grown)
	}
	if grown := after["Com_select"] - before["Com_select"]; grown != 3 {
		t.Errorf("Com_select grew by %d over 3 selects, want 3", grown)
	}
}

func TestDumpAndRestoreKeepChecksums(t *testing.T) {
	s := mysqltest.Shared(t)
	from, to := s.Schema(t), s.Schema(t)
	s.Exec(t, "CREATE TABLE "+from+".a (id INT PRIMARY KEY, c VARCHAR(20))", "INSERT INTO "+from+".a VALUES (1, 'it''s'), (2, NULL)",
		"CREATE TABLE "+from+".b (x INT)")
	want := s.Checksum(t, from)
	if len(want) != 2 || want["a"] == 0 {
		t.Fatalf("checksums of two tables = %v", want)
	}
	s.Restore(t, s.Dump(t, from), to)
	if got := s.Checksum(t, to); !maps.Equal(got, want) {
		t.Errorf("checksums after restore = %v, want %v", got, want)
	}
	s.Exec(t, "UPDATE "+to+".a SET c = 'other' WHERE id = 2")
	if got := s.Checksum(t, to); maps.Equal(got, want) {
		t.Errorf("checksums after an update = %v as before it", got)
	}
}

func TestGeneralLog(t *testing.T) {
	s := mysqltest.Shared(t)
	path := s.GeneralLog(t)
	s.Exec(t, "DO 4711")
	log, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(log), "DO 4711") {
		t.Errorf("general log lacks the statement:\n%s", log)
	}
}

func TestFreePortIsFree(t *testing.T) {
	port, err := mysqltest.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	if err != nil {
		t.Fatalf("FreePort() = %d: %v", port, err)
	}
	l.Close()
}

func TestMissingToolNamesItsPackage(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	_, err := mysqltest.Tool("mariadb-dump")
	if err == nil || !strings.Contains(err.Error(), "apt-get install mariadb-client") {
		t.Errorf("Tool(mariadb-dump) without it: %v, want the package named", err)
	}
}

func TestSysbench(t *testing.T) {
	s := mysqltest.Shared(t)
	args := append(mysqltest.SysbenchArgs(s.Addr, s.Schema(t)), "--table-size=100", "--threads=1", "oltp_read_write") // two would get into each other's way without transactions
	if _, err := mysqltest.Sysbench(context.Background(), append(args, "prepare")...); err != nil {
		t.Fatal(err)
	}
	r, err := mysqltest.Sysbench(context.Background(), append(args, "--events=10", "--time=0", "--skip-trx=on", "run")...)
	if err != nil {
		t.Fatal(err)
	}
	if r.Events != 10 || r.Transactions != 10 || r.Total != r.Read+r.Write+r.Other || r.Total < 180 {
		t.Errorf("10 events of 18 statements: report %+v", r)
	}
	_, err = mysqltest.Sysbench(context.Background(), append(args, "--tables=2", "run")...)
	if err == nil || !strings.Contains(err.Error(), "sbtest2' doesn't exist") {
		t.Errorf("run without a table: %v, want sysbench's own words", err)
	}
}
