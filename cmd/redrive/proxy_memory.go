package main

import (
	"context"
	"os"
	"runtime/debug"
	"runtime/metrics"
	"time"

	"redrive/capture"
)

const (
	leastRoom = 64 << 20 // what the runtime may have for relaying, however little that needs
	roomStep  = 16 << 20
)

// boundHeap keeps the process near the account's limit, until ctx is done. Left to itself the garbage collector lets the
// heap grow to twice what is in use: a full account would cost twice --memory-limit. So the runtime gets a memory limit: what
// the account may grow to, and room for relaying. That room must not be tight, since a collector short of it takes half the
// CPU from the clients; and what connections need (prepared statements, TLS, stacks) is not known beforehand. So it is
// twice what they are found to use, as if there were no limit, and is looked at once a second.
//
// GOMEMLIMIT in the environment has the last word.
func boundHeap(ctx context.Context, account *capture.Memory) {
	if os.Getenv("GOMEMLIMIT") != "" {
		return
	}
	ticker := time.NewTicker(time.Second)
	defer ticker.Stop()
	for set := int64(0); ; {
		if limit := heapLimit(account.Limit(), account.Used(), memoryInUse()); limit != set {
			debug.SetMemoryLimit(limit) // stops the world for a moment
			set = limit
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// heapLimit is what the runtime may take while inUse bytes are in use, of them taken on an account of limit bytes. It is
// in whole steps, so that it seldom changes.
func heapLimit(limit, taken, inUse int) int64 {
	relaying := max(0, inUse-taken)
	return int64(limit) + max(leastRoom, (2*int64(relaying)/roomStep+1)*roomStep)
}

// memoryInUse is what the collector found alive the last time, with what the runtime has beside the heap.
func memoryInUse() int {
	samples := []metrics.Sample{
		{Name: "/gc/heap/live:bytes"},
		{Name: "/memory/classes/total:bytes"},
		{Name: "/memory/classes/heap/objects:bytes"},
		{Name: "/memory/classes/heap/free:bytes"},
		{Name: "/memory/classes/heap/released:bytes"},
		{Name: "/memory/classes/heap/unused:bytes"},
	}
	metrics.Read(samples)
	inUse := samples[0].Value.Uint64() + samples[1].Value.Uint64()
	for _, heap := range samples[2:] {
		inUse -= heap.Value.Uint64()
	}
	return int(inUse)
}
