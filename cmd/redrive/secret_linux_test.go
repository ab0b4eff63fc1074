package main

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// A password on the command line is gone from what ps shows by the time the program connects, and has arrived.
func TestPasswordsLeaveTheProcessList(t *testing.T) {
	binary := filepath.Join(t.TempDir(), "redrive")
	if out, err := exec.Command("go", "build", "-o", binary, ".").CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	_, port, _ := net.SplitHostPort(l.Addr().String())
	for _, flag := range []string{"--mysql-password=Tell-no-one", "--mysql_password=Tell-no-one"} {
		cmd := exec.Command(binary, "synth", "--mysql-host=127.0.0.1", "--mysql-port="+port, flag, "oltp_point_select", "cleanup")
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		conn, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		shown, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", cmd.Process.Pid))
		if err != nil {
			t.Fatal(err)
		}
		if bytes.Contains(shown, []byte("Tell-no-one")) || !bytes.Contains(shown, []byte("password=xxxxxxxxxxx")) {
			t.Errorf("the command line shows %q", bytes.ReplaceAll(shown, []byte{0}, []byte(" ")))
		}
		conn.Close()
		if err := cmd.Wait(); err == nil {
			t.Error("a server that hangs up makes no error")
		}
	}
}
