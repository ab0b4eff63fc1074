package mysqltest

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"os/exec"
	"strings"
	"time"
)

// SysbenchArgs are the options that make sysbench connect to addr (host:port) as the administrator.
func SysbenchArgs(addr, schema string) []string {
	host, port, _ := net.SplitHostPort(addr)
	return []string{
		"--mysql-host=" + host, "--mysql-port=" + port, "--mysql-db=" + schema,
		"--mysql-user=" + User, "--mysql-password=" + Password,
	}
}

// Sysbench runs the real sysbench and reads its report. Cancelling ctx kills it. The error of a run that failed has
// what sysbench printed.
func Sysbench(ctx context.Context, args ...string) (Report, error) {
	var out bytes.Buffer
	return sysbench(ctx, &out, &out, args)
}

// WarmSysbench runs a load of warmUp and then of length, both whole seconds. The report is of the latter alone;
// Histogram is filled. warm is called as that begins, by another goroutine, which has ended when WarmSysbench returns.
func WarmSysbench(ctx context.Context, warmUp, length time.Duration, warm func(), args ...string) (Report, error) {
	out := &alert{mark: "Checkpoint report:", raise: warm}
	return sysbench(ctx, out, &out.kept, append([]string{
		fmt.Sprintf("--time=%d", int((warmUp + length).Seconds())), fmt.Sprintf("--report-checkpoints=%d", int(warmUp.Seconds())),
		"--histogram=on",
	}, args...))
}

// sysbench runs it with its output to out, which keeps it in kept.
func sysbench(ctx context.Context, out io.Writer, kept *bytes.Buffer, args []string) (Report, error) {
	tool, err := Tool("sysbench")
	if err != nil {
		return Report{}, err
	}
	cmd := exec.Command(tool, args...)
	cmd.Stdout, cmd.Stderr = out, out
	process, err := Spawn(cmd)
	if err != nil {
		return Report{}, err
	}
	stop := context.AfterFunc(ctx, process.Kill)
	defer stop()
	if err := process.Wait(); err != nil {
		return Report{Output: kept.String()}, fmt.Errorf("sysbench %s: %w\n%s", strings.Join(args, " "), err, kept)
	}
	return ParseReport(kept.String())
}

// An alert keeps what is written and raises the alarm once, as soon as the mark is there. sysbench does not buffer
// what it prints.
type alert struct {
	kept  bytes.Buffer
	mark  string
	raise func() // nil once raised
}

func (a *alert) Write(p []byte) (int, error) {
	n, err := a.kept.Write(p)
	if a.raise != nil && bytes.Contains(a.kept.Bytes(), []byte(a.mark)) {
		a.raise()
		a.raise = nil
	}
	return n, err
}
