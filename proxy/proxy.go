package proxy

import (
	"context"
	"crypto/rsa"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"redrive/capture"
)

// A Proxy relays the connections of one listener to one backend. Set the fields before Serve.
type Proxy struct {
	Dial         func(ctx context.Context) (net.Conn, error) // opens a connection to the backend
	Backend      string                                      // the backend's name in messages
	Recorder     *capture.Recorder                           // what to record into from the start; nil: relay only. See Record
	Clock        capture.Clock                               // the one the times count on; zero: one of our own
	MaxStatement int                                         // bytes of a command that are kept; 0 means 64 MiB
	KeepFiles    bool                                        // record what clients send for LOCAL INFILE
	DialTimeout  time.Duration                               // of connecting, and of each TLS handshake; 0 means 10 s
	DrainTimeout time.Duration                               // what open transactions get when Serve ends; 0 means 10 s
	Logger       *slog.Logger                                // nil: silent

	Loops          int           // event loops that relay; 0 means one per CPU
	Pin            bool          // bind each loop to a CPU of its own, where Linux lets us
	Portable       bool          // relay by goroutines, as where there are no event loops
	MaxConnections int           // more are refused with error 1040; 0 means as many as file descriptors allow
	LoginTimeout   time.Duration // until a login must be over; 0 means a minute
	IdleTimeout    time.Duration // a session that does nothing for so long, outside a transaction, is closed; 0 means never
	MaxLoginPacket int           // bytes of a packet of the client's before the login is over; 0 means 1 MiB

	Memory *capture.Memory // what followers keep of commands in flight is taken from it; nil: no limit

	ClientTLS          *tls.Config // certificate to show to clients; nil: they are offered no TLS
	BackendTLS         *tls.Config // how to verify the backend; nil: plain
	BackendTLSOptional bool        // plain if the backend offers no TLS
	PassThrough        bool        // TLS is left to client and backend, unseen; ClientTLS and BackendTLS do not apply

	ProxyProtocolFrom    []netip.Prefix // from here every connection must begin with a PROXY header; from elsewhere none
	HeaderTimeout        time.Duration  // until that header must be there; 0 means 5 s
	BackendProxyProtocol int            // version of the PROXY header to tell the backend the client's address by; 0: none

	key func() (*rsa.PrivateKey, error) // for passwords of clients without TLS

	FollowCompression bool // let clients and backend compress; otherwise compression is withheld from the backend's offer

	mu       sync.Mutex
	recorder *capture.Recorder // of the recording that goes on; nil: none
	conns    map[*conn]struct{}
	loops    loops // none where the portable relay carries all
	lastID   uint64
	closed   Totals // of connections that have ended
	wg       sync.WaitGroup
	draining atomic.Bool
	hungUp   atomic.Bool
	crowd    throttle      // of the log's lines about clients turned away
	leaving  chan struct{} // has an element for each client turned away that is being heard out
	logins   loginLines    // of the log
}

// Totals count what passed through a proxy.
type Totals struct {
	Connections uint64 // accepted
	Open        uint64 // of them: open at the moment
	Refused     uint64 // of them: the backend could not be reached
	Limited     uint64 // of them: one too many
	Rejected    uint64 // of them: the login was refused, by the server or by us
	TimedOut    uint64 // of them: the login took too long
	Opaque      uint64 // of them: relayed without being understood, from some point on
	Commands    uint64 // all commands
	Truncated   uint64 // of them: too long to be kept whole
	Statements  uint64 // of them: those that ran SQL
	Errors      uint64 // statements answered by an error
	BytesIn     uint64 // from clients
	BytesOut    uint64 // to clients
}

func (t *Totals) add(o *Totals) {
	t.Connections += o.Connections
	t.Refused += o.Refused
	t.Limited += o.Limited
	t.Rejected += o.Rejected
	t.TimedOut += o.TimedOut
	t.Opaque += o.Opaque
	t.Commands += o.Commands
	t.Truncated += o.Truncated
	t.Statements += o.Statements
	t.Errors += o.Errors
	t.BytesIn += o.BytesIn
	t.BytesOut += o.BytesOut
}

// Serve accepts connections until ctx is done, then drains: idle connections are closed, those within a transaction
// or a command get DrainTimeout. It closes the listener, and every connection has ended when it returns.
func (p *Proxy) Serve(ctx context.Context, listener net.Listener) error {
	p.mu.Lock()
	p.conns = map[*conn]struct{}{}
	if p.recorder == nil { // else Record was called before
		p.recorder = p.Recorder
	}
	p.mu.Unlock()
	if p.Clock == (capture.Clock{}) {
		p.Clock = capture.NewClock()
	}
	if p.Logger == nil {
		p.Logger = slog.New(slog.DiscardHandler)
	}
	p.key = sync.OnceValues(newKey)
	p.leaving = make(chan struct{}, maxLeaving)
	p.ClientTLS, p.BackendTLS = forBulk(p.ClientTLS), forBulk(p.BackendTLS)
	defer listener.Close()
	stop := context.AfterFunc(ctx, func() { listener.Close() })
	defer stop()
	if err := p.startLoops(); err != nil {
		return err
	}
	watched := make(chan struct{})
	watching, stopWatching := context.WithCancel(context.Background())
	go func() {
		defer close(watched)
		p.watch(watching)
	}()
	err := p.accept(ctx, listener)
	p.drain()
	p.wg.Wait()
	stopWatching()
	<-watched
	p.loops.stop()
	return err
}

// forBulk has TLS write full records from the beginning.
func forBulk(config *tls.Config) *tls.Config {
	if config == nil {
		return nil
	}
	config = config.Clone()
	config.DynamicRecordSizingDisabled = true
	return config
}

func (p *Proxy) dialTimeout() time.Duration {
	if p.DialTimeout == 0 {
		return 10 * time.Second
	}
	return p.DialTimeout
}

// accept takes connections until the listener is closed.
func (p *Proxy) accept(ctx context.Context, listener net.Listener) error {
	var pause time.Duration
	limit := p.maxConnections()
	if limit <= 0 {
		return fmt.Errorf("%d file descriptors are too few: want %d and two for each connection; raise ulimit -n", descriptors(), spareDescriptors)
	}
	for {
		client, err := listener.Accept()
		switch {
		case ctx.Err() != nil:
			if err == nil {
				client.Close()
			}
			return nil
		case temporary(err):
			pause = min(max(5*time.Millisecond, 2*pause), 100*time.Millisecond)
			p.Logger.Warn("cannot accept connections for now", "error", err)
			time.Sleep(pause)
		case err != nil:
			return fmt.Errorf("accept on %s: %w", listener.Addr(), err)
		case p.crowded(limit):
			pause = 0
			p.turnAway(client, limit)
		default:
			pause = 0
			p.start(client)
		}
	}
}

// temporary reports whether accepting may work again later: descriptors or memory ran out, or the client was gone.
func temporary(err error) bool {
	for _, e := range []error{syscall.EMFILE, syscall.ENFILE, syscall.ENOBUFS, syscall.ENOMEM, syscall.ECONNABORTED} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

// start takes a client, in a goroutine of its own until it has logged in.
func (p *Proxy) start(client net.Conn) {
	p.mu.Lock()
	p.lastID++
	c := &conn{proxy: p, id: p.lastID, lane: p.loops.reserve(), client: client, accepted: p.Clock.Now(), next: p.recorder, recorder: p.recorder}
	c.totals.Connections = 1
	p.conns[c] = struct{}{}
	p.mu.Unlock()
	p.wg.Add(1)
	go c.run()
}

// forget is called when a connection has ended.
func (p *Proxy) forget(c *conn) {
	p.loops.release(c.lane)
	p.mu.Lock()
	delete(p.conns, c)
	p.closed.add(&c.totals)
	p.mu.Unlock()
	p.wg.Done()
}

// open appends the connections that are open at the moment.
func (p *Proxy) open(conns []*conn) []*conn {
	p.mu.Lock()
	defer p.mu.Unlock()
	conns = slices.Grow(conns, len(p.conns))
	for c := range p.conns {
		conns = append(conns, c)
	}
	return conns
}

// each calls f for every connection that is open at the moment.
func (p *Proxy) each(f func(*conn)) (open int) {
	conns := p.open(nil)
	for _, c := range conns {
		f(c)
	}
	return len(conns)
}

// Totals are the counts so far. It may be called at any time.
func (p *Proxy) Totals() Totals {
	p.mu.Lock() // held throughout, so that a connection that ends meanwhile is counted on one side or the other
	defer p.mu.Unlock()
	total := p.closed
	total.Open = uint64(len(p.conns))
	for c := range p.conns {
		c.mu.Lock()
		total.add(&c.totals)
		c.mu.Unlock()
	}
	return total
}

// Open is how many connections there are at the moment. Unlike Totals it waits for none of them, which may be made to wait
// for the recording.
func (p *Proxy) Open() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.conns)
}

// HangUp ends a drain at once, also one that is yet to begin: connections that are left are closed as if DrainTimeout
// was over. It may be called at any time.
func (p *Proxy) HangUp() { p.hungUp.Store(true) }

// drain closes the connections as they fall idle, and all that are left after DrainTimeout.
func (p *Proxy) drain() {
	limit := p.DrainTimeout
	if limit == 0 {
		limit = 10 * time.Second
	}
	deadline := time.Now().Add(limit)
	p.draining.Store(true)
	for round := 0; ; round++ {
		late := p.hungUp.Load() || time.Now().After(deadline)
		open := p.each(func(c *conn) { c.drain(late) })
		if open == 0 {
			return
		}
		if round == 1 {
			p.Logger.Info("waiting for connections with open work", "connections", open, "at_most", limit)
		}
		time.Sleep(20 * time.Millisecond)
	}
}
