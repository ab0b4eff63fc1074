package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os/signal"
	"runtime"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"redrive/capture"
	"redrive/proxy"
)

type proxyOptions struct {
	listen, backend string
	out             string
	control         string
	limit           time.Duration
	keepFiles       bool
	compression     string
	limits          proxyLimitOptions
	legs            proxyLegOptions
	probe           connectOptions
}

func newProxy(s streams) *cobra.Command {
	var o proxyOptions
	c := &cobra.Command{
		Use:   "proxy --listen ADDR --backend ADDR [--out FILE]",
		Short: "Relay MySQL connections; with --out, record every statement",
		Long: `Relay MySQL connections to a backend. With --out, every statement that passes is recorded, with its times and
its outcome, in a capture file for analyze and replay.

Clients log in as they do to the server itself; the proxy knows no password. TLS and compression are withheld from the
server's offer unless --tls and --compression say otherwise. TLS can be passed through, in which case nothing but bytes
is counted, or ended here with a certificate; --backend-ssl-mode has the connection to the backend encrypted, whatever
clients do. The server sees the proxy's host in place of the clients' unless --backend-proxy-protocol tells it. Mind that
the client libraries take "localhost" for the Unix socket, past the proxy: connect to 127.0.0.1.

Clients never wait for the recording (but with --on-full block). When the file is slower than what comes in, statements
wait in memory, up to --memory-limit; what finds no room then is left out, counted, and told in the file as a gap.

Ctrl-C or SIGTERM drains it: nobody is let in any more, idle connections are closed, open transactions get
--drain-timeout, the file is closed and a summary printed. A second one closes the connections that are left at once, the
file as properly as ever; a third one kills. SIGHUP goes on in another file (run.rdt, then run-000002.rdt and so on; or
under the same name if the file was moved away) and reads the certificates anew.`,
		Example: `  redrive proxy --listen 127.0.0.1:3307 --backend 127.0.0.1:3306 --out today.rdt`,
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return runProxy(c.Context(), &o, s)
		},
	}
	f := c.Flags()
	f.StringVar(&o.listen, "listen", "", "address to take clients at: host:port, or the path of a Unix socket")
	f.StringVar(&o.backend, "backend", "", "the server: host:port, or the path of its Unix socket")
	f.StringVarP(&o.out, "out", "o", "", "capture file to record into; - is standard output")
	f.StringVar(&o.control, "control", "", "path of a socket by which `redrive proxy record` steers the recording")
	f.DurationVar(&o.limit, "time", 0, "drain after this time, such as 60s; 0 is when a signal says so")
	f.BoolVar(&o.keepFiles, "record-infile", false, "record the files that clients send for LOAD DATA LOCAL INFILE, up to --max-statement bytes each")
	f.StringVar(&o.compression, "compression", "withhold", "withhold it from the server's offer, or follow it: leave it to client and server, and inflate a copy")
	o.limits.addFlags(f)
	o.legs.addFlags(f)
	o.probe.addProbeFlags(f)
	c.AddCommand(newProxyRecord(s))
	return c
}

func (o *proxyOptions) check() error {
	switch {
	case o.listen == "":
		return usagef("--listen is missing: want an address for clients to connect to, such as 127.0.0.1:3307")
	case o.backend == "":
		return usagef("--backend is missing: want the server's address, such as 127.0.0.1:3306")
	case o.compression != "withhold" && o.compression != "follow":
		return usagef("--compression %s: want withhold or follow", o.compression)
	case o.limit < 0:
		return usagef("--time %s: want a time above 0, or 0 for no limit", o.limit)
	}
	return o.limits.check()
}

func runProxy(ctx context.Context, o *proxyOptions, s streams) (err error) {
	if err := o.check(); err != nil {
		return err
	}
	backendNetwork, backendAddress, err := splitAddress("--backend", o.backend)
	if err != nil {
		return err
	}
	listener, err := listen(ctx, o.listen)
	if err != nil {
		return err
	}
	defer listener.Close()
	if err := refuseItself(ctx, o, listener.Addr(), backendNetwork, backendAddress); err != nil {
		return err
	}

	p := &proxy.Proxy{
		Backend: o.backend, KeepFiles: o.keepFiles, Clock: capture.NewClock(),
		FollowCompression: o.compression == "follow",
		Logger:            slog.New(slog.NewTextHandler(s.err, nil)),
		Dial: func(ctx context.Context) (net.Conn, error) {
			var d net.Dialer
			return d.DialContext(ctx, backendNetwork, backendAddress)
		},
	}
	o.limits.apply(p)
	if err := o.legs.apply(p, backendNetwork, backendAddress); err != nil {
		return err
	}
	control := &recordingControl{
		proxy: p, streams: s, onFull: onFull[o.limits.onFull], lanes: cmp.Or(o.limits.loops, runtime.GOMAXPROCS(0)),
		header: func(ctx context.Context) (capture.Header, error) {
			return proxyHeader(ctx, o, p.Clock, listener.Addr(), backendNetwork, backendAddress)
		},
	}
	draining, stop := endInSteps(ctx, o.limit, func() {
		control.release()
		p.Logger.Warn("told a second time to end: hanging up", "connections", p.Open())
		p.HangUp()
	})
	defer stop() // behind control.end: until the file is closed only a third signal kills
	if o.out != "" {
		if err := control.begin(draining, o.out); err != nil {
			return err
		}
	}
	defer func() { err = errors.Join(err, control.end()) }()
	context.AfterFunc(draining, func() { time.AfterFunc(o.limits.drain, control.release) })
	defer onHangups(func() {
		control.rotate(draining)
		o.legs.reload(p.Logger)
	})()
	if o.control != "" {
		controls, err := listenControl(draining, o.control)
		if err != nil {
			return err
		}
		defer controls.Close()
		go control.serve(draining, controls)
	}
	go boundHeap(draining, p.Memory)
	signal.Ignore(syscall.SIGPIPE) // a reader of ours that goes away must not take the clients along
	fmt.Fprintf(s.err, "redrive proxy: listening on %s, backend %s\n", listener.Addr(), o.backend)
	err = p.Serve(draining, listener)
	printTotals(p, s)
	return err
}
