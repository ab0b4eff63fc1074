package main

import (
	"context"
	"fmt"
	"io"
	"os"

	"redrive/internal/mysqltest"
)

// sizeThreads is how many sessions the measured captures interleave.
const sizeThreads = 8

// size measures how large captures of the workloads come out.
func (b *bench) size(ctx context.Context, w io.Writer) error {
	fmt.Fprintf(w, "### Capture files\n\nStock sysbench, db-ps-mode %s, %d threads.\n\n", b.psMode, sizeThreads)
	fmt.Fprintln(w, "| workload | statements | bytes | bytes per statement |")
	fmt.Fprintln(w, "|---|--:|--:|--:|")
	for _, workload := range b.workloads {
		statements, bytes, err := b.captureSize(ctx, workload)
		if err != nil {
			return fmt.Errorf("capture of %s: %w", workload, err)
		}
		fmt.Fprintf(w, "| %s | %d | %d | %.1f |\n", workload, statements, bytes, float64(bytes)/float64(statements))
	}
	fmt.Fprintln(w)
	return nil
}

func (b *bench) captureSize(ctx context.Context, workload string) (statements uint64, bytes int64, err error) {
	file := b.newFile()
	proxy, err := b.startProxy("recording "+workload, "--out", file)
	if err != nil {
		return 0, 0, err
	}
	defer proxy.stop()
	args := append(b.sysbenchArgs(proxy.addr, sizeThreads), fmt.Sprintf("--time=%d", int(b.round.Seconds())), workload, "run")
	report, err := mysqltest.Sysbench(ctx, args...)
	if err != nil {
		return 0, 0, err
	}
	if _, err := proxy.stop(); err != nil {
		return 0, 0, err
	}
	info, err := os.Stat(file)
	if err != nil {
		return 0, 0, err
	}
	return report.Total, info.Size(), nil
}
