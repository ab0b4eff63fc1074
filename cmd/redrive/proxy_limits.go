package main

import (
	"fmt"
	"runtime"
	"time"

	"github.com/spf13/pflag"

	"redrive/capture"
	"redrive/internal/units"
	"redrive/proxy"
)

// leastMemory is a block of a capture file on its way: with less hardly anything could be recorded.
const leastMemory = 1 << 20

// onFull are the words of --on-full.
var onFull = map[string]capture.OnFull{
	"shed": capture.ShedStatements, "shed-transactions": capture.ShedTransactions, "block": capture.Block, "stop": capture.StopRecording,
}

// proxyLimitOptions are the flags that bound what clients and the recording may take, and how bytes are relayed.
type proxyLimitOptions struct {
	relay          string
	loops          int
	pin            bool
	maxConnections int
	login, idle    time.Duration
	drain          time.Duration
	maxLoginPacket units.Size
	maxStatement   units.Size
	memory         units.Size
	onFull         string
}

func (o *proxyLimitOptions) addFlags(f *pflag.FlagSet) {
	o.maxLoginPacket, o.maxStatement, o.memory = 1<<20, 64<<20, 256<<20
	f.DurationVar(&o.drain, "drain-timeout", 10*time.Second, "what open transactions and commands get at the end")
	f.Var(&o.maxStatement, "max-statement", "how much of one statement is recorded; of longer ones the beginning")
	f.Var(&o.memory, "memory-limit", "what statements on their way to the file may take in memory, all in all")
	f.StringVar(&o.onFull, "on-full", "shed", "when the file is slower than what comes in, and memory is used up: shed statements, shed-transactions,\nblock: let clients wait, or stop recording")
	f.IntVar(&o.maxConnections, "max-connections", 0, "clients at a time, more get error 1040; 0 is what open files (ulimit -n) allow")
	f.DurationVar(&o.login, "login-timeout", time.Minute, "until a login must be over")
	f.DurationVar(&o.idle, "idle-timeout", 0, "close sessions that do nothing for so long outside a transaction; 0 leaves it to the server")
	f.Var(&o.maxLoginPacket, "max-login-packet", "longest packet of a client before its login is over")
	f.StringVar(&o.relay, "relay", "auto", "relay by event loops, or by goroutines as everywhere but on Linux; auto takes loops where there are some")
	f.IntVar(&o.loops, "loops", 0, "event loops; 0 is one per CPU")
	f.BoolVar(&o.pin, "pin", true, "bind each event loop to a CPU of its own; =false lets the system move them about")
}

func (o *proxyLimitOptions) check() error {
	_, known := onFull[o.onFull]
	switch {
	case o.drain <= 0:
		return usagef("--drain-timeout %s: want a time above 0", o.drain)
	case o.memory < leastMemory:
		return usagef("--memory-limit %s: want at least %s", o.memory, units.Size(leastMemory))
	case !known:
		return usagef("--on-full %s: want shed, shed-transactions, block or stop", o.onFull)
	case o.maxConnections < 0:
		return usagef("--max-connections %d: want a number above 0, or 0 for what open files allow", o.maxConnections)
	case o.login <= 0:
		return usagef("--login-timeout %s: want a time above 0", o.login)
	case o.idle < 0:
		return usagef("--idle-timeout %s: want a time above 0, or 0 for the server's own", o.idle)
	case o.relay != "auto" && o.relay != "loops" && o.relay != "goroutines":
		return usagef("--relay %s: want auto, loops or goroutines", o.relay)
	case o.relay == "loops" && runtime.GOOS != "linux":
		return usagef("--relay loops: there are event loops on Linux only; want auto or goroutines")
	case o.loops < 0:
		return usagef("--loops %d: want a number above 0, or 0 for one per CPU", o.loops)
	case o.loops > 0 && o.relay == "goroutines":
		return usagef("--relay goroutines has no event loops: --loops cannot apply")
	}
	return nil
}

func (o *proxyLimitOptions) apply(p *proxy.Proxy) {
	p.DrainTimeout, p.LoginTimeout, p.IdleTimeout = o.drain, o.login, o.idle
	p.MaxConnections, p.MaxLoginPacket, p.MaxStatement = o.maxConnections, int(o.maxLoginPacket), int(o.maxStatement)
	p.Portable, p.Loops, p.Pin = o.relay == "goroutines", o.loops, o.pin
	p.Memory = capture.NewMemory(int(o.memory))
}

// settings are the flags as a recording's header tells of them.
func (o *proxyLimitOptions) settings(settings map[string]string) {
	settings["drain-timeout"] = o.drain.String()
	settings["max-statement"] = o.maxStatement.String()
	settings["memory-limit"] = o.memory.String()
	settings["on-full"] = o.onFull
	settings["max-connections"] = fmt.Sprint(o.maxConnections)
	settings["login-timeout"] = o.login.String()
	settings["idle-timeout"] = o.idle.String()
	settings["max-login-packet"] = o.maxLoginPacket.String()
	settings["relay"] = o.relay
	settings["loops"], settings["pin"] = fmt.Sprint(o.loops), fmt.Sprint(o.pin)
}
