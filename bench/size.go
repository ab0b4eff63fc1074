package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
)

// A size is how large a capture of one workload came out.
type size struct {
	workload   string
	bytes      int64
	statements uint64
}

// sizeThreads is how many sessions the measured captures interleave.
const sizeThreads = 8

// captureSizes records stock workloads in text mode, where every statement's values are in its text.
func (b *bench) captureSizes(ctx context.Context) ([]size, error) {
	var sizes []size
	for _, workload := range []string{"oltp_read_write", "oltp_point_select"} {
		s, err := b.captureSize(ctx, workload)
		if err != nil {
			return nil, fmt.Errorf("capture of %s: %w", workload, err)
		}
		sizes = append(sizes, s)
	}
	return sizes, nil
}

func (b *bench) captureSize(ctx context.Context, workload string) (size, error) {
	file := filepath.Join(b.dir, workload+".rdt")
	proxy, err := b.startProxy("recording "+workload, "--out", file)
	if err != nil {
		return size{}, err
	}
	defer proxy.stop()
	report, err := b.sysbench(ctx, proxy.addr, workload, sizeThreads,
		fmt.Sprintf("--time=%d", int(b.round.Seconds())), "--db-ps-mode=disable", "run")
	if err != nil {
		return size{}, err
	}
	if _, err := proxy.stop(); err != nil {
		return size{}, err
	}
	info, err := os.Stat(file)
	if err != nil {
		return size{}, err
	}
	return size{workload, info.Size(), report.Total}, nil
}
