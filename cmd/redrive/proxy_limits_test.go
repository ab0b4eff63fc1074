package main

import (
	"context"
	"maps"
	"math"
	"math/rand/v2"
	"runtime/debug"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"

	"redrive/capture"
	"redrive/proxy"
)

// incompressible is text of n letters that no compression makes shorter than three quarters.
func incompressible(n int) string {
	random := rand.New(rand.NewPCG(1, 2))
	var b strings.Builder
	for range n {
		b.WriteByte("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"[random.IntN(64)])
	}
	return b.String()
}

func TestProxyLimits(t *testing.T) {
	type limits struct {
		portable                       bool
		loops, connections             int
		login, idle, drain             time.Duration
		loginPacket, statement, memory int
		onFull                         capture.OnFull
	}
	standard := limits{login: time.Minute, drain: 10 * time.Second, loginPacket: 1048576, statement: 67108864, memory: 268435456}
	told := map[string]string{
		"relay": "auto", "loops": "0", "pin": "true", "max-connections": "0", "login-timeout": "1m0s", "idle-timeout": "0s", "drain-timeout": "10s",
		"max-login-packet": "1MiB", "max-statement": "64MiB", "memory-limit": "256MiB", "on-full": "shed",
	}
	for _, tt := range []struct {
		args   string
		change func(*limits)
		told   map[string]string
	}{
		{"", func(*limits) {}, nil},
		{"--relay loops --loops 3", func(l *limits) { l.loops = 3 }, map[string]string{"relay": "loops", "loops": "3"}},
		{"--relay goroutines", func(l *limits) { l.portable = true }, map[string]string{"relay": "goroutines"}},
		{"--max-connections 100", func(l *limits) { l.connections = 100 }, map[string]string{"max-connections": "100"}},
		{
			"--login-timeout 5s --idle-timeout 8h --drain-timeout 90s", func(l *limits) { l.login, l.idle, l.drain = 5*time.Second, 8*time.Hour, 90*time.Second },
			map[string]string{"login-timeout": "5s", "idle-timeout": "8h0m0s", "drain-timeout": "1m30s"},
		},
		{
			"--max-login-packet 65536 --max-statement 1gib --memory-limit 3MiB", func(l *limits) { l.loginPacket, l.statement, l.memory = 65536, 1073741824, 3145728 },
			map[string]string{"max-login-packet": "64KiB", "max-statement": "1GiB", "memory-limit": "3MiB"},
		},
		{"--on-full shed-transactions", func(l *limits) { l.onFull = capture.ShedTransactions }, map[string]string{"on-full": "shed-transactions"}},
		{"--on-full block", func(l *limits) { l.onFull = capture.Block }, map[string]string{"on-full": "block"}},
		{"--on-full stop", func(l *limits) { l.onFull = capture.StopRecording }, map[string]string{"on-full": "stop"}},
	} {
		set := pflag.NewFlagSet("test", pflag.ContinueOnError)
		var o proxyLimitOptions
		o.addFlags(set)
		if err := set.Parse(strings.Fields(tt.args)); err != nil {
			t.Fatal(err)
		}
		if err := o.check(); err != nil {
			t.Errorf("%s: %v", tt.args, err)
		}
		var p proxy.Proxy
		o.apply(&p)
		got := limits{p.Portable, p.Loops, p.MaxConnections, p.LoginTimeout, p.IdleTimeout, p.DrainTimeout, p.MaxLoginPacket, p.MaxStatement, p.Memory.Limit(), onFull[o.onFull]}
		want := standard
		tt.change(&want)
		if got != want {
			t.Errorf("%s: %+v, want %+v", tt.args, got, want)
		}
		settings, wanted := map[string]string{}, maps.Clone(told)
		maps.Copy(wanted, tt.told)
		if o.settings(settings); !maps.Equal(settings, wanted) {
			t.Errorf("%s: the header says %v, want %v", tt.args, settings, wanted)
		}
	}
}

// The account may fill up; beside it there is twice what relaying uses, and 64 MiB at least.
func TestHeapLimit(t *testing.T) {
	const mib = 1 << 20
	for _, tt := range []struct{ limit, taken, inUse, least, most int }{
		{256 * mib, 0, 5 * mib, 320 * mib, 320 * mib},
		{256 * mib, 250 * mib, 260 * mib, 320 * mib, 320 * mib},
		{256 * mib, 250 * mib, 200 * mib, 320 * mib, 320 * mib}, // taken since the last collection
		{256 * mib, 0, 400 * mib, 1056 * mib, 1072 * mib},
		{256 * mib, 100 * mib, 400 * mib, 856 * mib, 872 * mib},
		{1 * mib, 0, 0, 65 * mib, 65 * mib},
	} {
		if got := heapLimit(tt.limit, tt.taken, tt.inUse); got < int64(tt.least) || got > int64(tt.most) {
			t.Errorf("limit %d, taken %d, in use %d: %d, want %d to %d", tt.limit, tt.taken, tt.inUse, got, tt.least, tt.most)
		}
	}
}

func TestBoundHeap(t *testing.T) {
	before := debug.SetMemoryLimit(math.MaxInt64)
	defer debug.SetMemoryLimit(before)
	ended, end := context.WithCancel(t.Context())
	end()
	account := capture.NewMemory(256 << 20)
	t.Setenv("GOMEMLIMIT", "1GiB")
	if boundHeap(ended, account); debug.SetMemoryLimit(-1) != math.MaxInt64 {
		t.Errorf("GOMEMLIMIT is set, and the limit was made %d all the same", debug.SetMemoryLimit(-1))
	}
	t.Setenv("GOMEMLIMIT", "")
	if boundHeap(ended, account); debug.SetMemoryLimit(-1) < 320<<20 || debug.SetMemoryLimit(-1) > 2<<30 {
		t.Errorf("the limit is %d, want room for the account of 256 MiB and for relaying", debug.SetMemoryLimit(-1))
	}
	if used := memoryInUse(); used <= 0 || used > 2<<30 {
		t.Errorf("%d bytes in use, want what a small program takes", used)
	}
}
