package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"strings"
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
	drain           time.Duration
	maxStatement    int
	keepFiles       bool
	compression     string
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

Ctrl-C or SIGTERM ends it: idle connections are closed, transactions get --drain-timeout, the file is closed and a
summary printed. A second one ends it at once.`,
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
	f.DurationVar(&o.limit, "time", 0, "stop after this time, such as 60s; 0 is until stopped")
	f.DurationVar(&o.drain, "drain-timeout", 10*time.Second, "what open transactions get at the end")
	f.IntVar(&o.maxStatement, "max-statement", 64<<20, "bytes of one statement that are recorded; of longer ones the beginning")
	f.BoolVar(&o.keepFiles, "record-infile", false, "record the files that clients send for LOAD DATA LOCAL INFILE, up to --max-statement bytes each")
	f.StringVar(&o.compression, "compression", "withhold", "withhold it from the server's offer, or follow it: leave it to client and server, and inflate a copy")
	o.legs.addFlags(f)
	o.probe.addProbeFlags(f)
	c.AddCommand(newProxyRecord(s))
	return c
}

func runProxy(ctx context.Context, o *proxyOptions, s streams) (err error) {
	switch {
	case o.listen == "":
		return usagef("--listen is missing: want an address for clients to connect to, such as 127.0.0.1:3307")
	case o.backend == "":
		return usagef("--backend is missing: want the server's address, such as 127.0.0.1:3306")
	case o.maxStatement <= 0:
		return usagef("--max-statement %d: want a number of bytes above 0", o.maxStatement)
	case o.compression != "withhold" && o.compression != "follow":
		return usagef("--compression %s: want withhold or follow", o.compression)
	case o.drain <= 0:
		return usagef("--drain-timeout %s: want a time above 0", o.drain)
	case o.limit < 0:
		return usagef("--time %s: want a time above 0, or 0 for no limit", o.limit)
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
		Backend: o.backend, MaxStatement: o.maxStatement, KeepFiles: o.keepFiles, DrainTimeout: o.drain, Clock: capture.NewClock(),
		FollowCompression: o.compression == "follow",
		Logger:            slog.New(slog.NewTextHandler(s.err, nil)),
		Dial: func(ctx context.Context) (net.Conn, error) {
			var d net.Dialer
			return d.DialContext(ctx, backendNetwork, backendAddress)
		},
	}
	if err := o.legs.apply(p, backendNetwork, backendAddress); err != nil {
		return err
	}
	recording := &recordingControl{proxy: p, streams: s, header: func(ctx context.Context) (capture.Header, error) {
		return proxyHeader(ctx, o, p.Clock, listener.Addr(), backendNetwork, backendAddress)
	}}
	if o.out != "" {
		if err := recording.begin(ctx, o.out); err != nil {
			return err
		}
	}
	defer func() { err = errors.Join(err, recording.end()) }()
	if o.control != "" {
		controls, err := listenControl(ctx, o.control)
		if err != nil {
			return err
		}
		defer controls.Close()
		go recording.serve(ctx, controls)
	}
	signal.Ignore(syscall.SIGPIPE) // a reader of ours that goes away must not take the clients along
	fmt.Fprintf(s.err, "redrive proxy: listening on %s, backend %s\n", listener.Addr(), o.backend)
	if o.limit > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, o.limit)
		defer cancel()
	}
	err = p.Serve(ctx, listener)
	printTotals(p, s)
	return err
}

// refuseItself refuses a backend that is the proxy's own listener: each connection would open the next.
func refuseItself(ctx context.Context, o *proxyOptions, listening net.Addr, network, address string) error {
	own, isTCP := listening.(*net.TCPAddr)
	if !isTCP {
		if network == "unix" && address == listening.String() {
			return usagef("--backend %s is the proxy's own --listen address", o.backend)
		}
		return nil
	}
	for _, resolved := range resolve(ctx, network, address) {
		addr, err := net.ResolveTCPAddr("tcp", resolved)
		if err != nil || network != "tcp" || addr.Port != own.Port {
			continue
		}
		if addr.IP.Equal(own.IP) || own.IP.IsUnspecified() && addr.IP.IsLoopback() {
			return usagef("--backend %s is the proxy's own --listen address", o.backend)
		}
	}
	return nil
}

// splitAddress tells a Unix socket's path from host:port. flag names it in messages.
func splitAddress(flag, address string) (network, addr string, err error) {
	if strings.HasPrefix(address, "/") || strings.HasPrefix(address, "./") {
		return "unix", address, nil
	}
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		return "", "", usagef("%s %s: want host:port, or the path of a Unix socket", flag, address)
	}
	if _, err := net.LookupPort("tcp", port); err != nil {
		return "", "", usagef("%s %s: %s is no port", flag, address, port)
	}
	return "tcp", address, nil
}

func listen(ctx context.Context, address string) (net.Listener, error) {
	network, addr, err := splitAddress("--listen", address)
	if err != nil {
		return nil, err
	}
	if network == "unix" {
		if err := removeStaleSocket("--listen", addr); err != nil {
			return nil, err
		}
	}
	var config net.ListenConfig
	listener, err := config.Listen(ctx, network, addr)
	if err != nil {
		return nil, fmt.Errorf("--listen %s: %w; is another program using it?", address, err)
	}
	return listener, nil
}

// removeStaleSocket removes a socket that nobody listens on any more.
func removeStaleSocket(flag, path string) error {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) || err == nil && info.Mode()&fs.ModeSocket == 0 {
		return nil // what stands there else is for Listen to complain of
	}
	if conn, err := net.Dial("unix", path); err == nil {
		conn.Close()
		return fmt.Errorf("%s %s: another program listens there", flag, path)
	}
	return os.Remove(path)
}

// proxyHeader says where a recording comes from.
func proxyHeader(ctx context.Context, o *proxyOptions, clock capture.Clock, listening net.Addr, network, address string) (capture.Header, error) {
	h := newHeader("proxy", clock)
	h.Backend = o.backend
	h.Resolved = resolve(ctx, network, address)
	h.Settings = map[string]string{
		"listen": listening.String(), "max-statement": fmt.Sprint(o.maxStatement),
		"compression": o.compression, "withheld": withheld(o),
	}
	o.legs.settings(h.Settings)
	if !o.probe.wanted() {
		return h, nil
	}
	server, err := o.probe.probe(ctx, network, address)
	if err != nil {
		return h, fmt.Errorf("--probe-user: %w", err)
	}
	h.Server = &server
	return h, nil
}

// withheld names what is taken out of the server's offer.
func withheld(o *proxyOptions) string {
	var names []string
	if o.legs.mode() == "withhold" {
		names = append(names, "TLS")
	}
	if o.compression == "withhold" {
		names = append(names, "compression")
	}
	return strings.Join(names, ", ")
}

// resolve lists the addresses that a backend's name stands for at the moment; a name that cannot be resolved now may
// be later, so that is no error.
func resolve(ctx context.Context, network, address string) []string {
	if network == "unix" {
		return []string{address}
	}
	host, port, _ := net.SplitHostPort(address)
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	hosts, err := net.DefaultResolver.LookupHost(ctx, host)
	if err != nil {
		return nil
	}
	for i, h := range hosts {
		hosts[i] = net.JoinHostPort(h, port)
	}
	return hosts
}

// closeRecording closes a capture and says what is in it.
func closeRecording(r *capture.Recorder, unfinished uint64, name string, file *output, s streams) (capture.Ledger, error) {
	ledger, err := r.Close(unfinished)
	err = errors.Join(err, file.Close())
	fmt.Fprintf(s.err, "recorded in %s: %d commands forwarded = %d stored + %d shed + %d unfinished\n",
		name, ledger.Forwarded, ledger.Stored, ledger.Shed, ledger.Unfinished)
	switch {
	case err != nil:
		return ledger, fmt.Errorf("recording: %w", err)
	case ledger.Shed > 0:
		return ledger, fmt.Errorf("%d commands were not recorded; trace info %s lists the gaps", ledger.Shed, name)
	}
	return ledger, nil
}

func printTotals(p *proxy.Proxy, s streams) {
	t := p.Totals()
	fmt.Fprintf(s.err, "relayed %d connections (%d without a backend, %d logins refused, %d not followed to the end), "+
		"%d commands, of them %d statements, %d errors; %d bytes from clients, %d to them\n",
		t.Connections, t.Refused, t.Rejected, t.Opaque, t.Commands, t.Statements, t.Errors, t.BytesIn, t.BytesOut)
}
