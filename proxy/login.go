package proxy

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"time"

	"redrive/capture"
	"redrive/internal/login"
	"redrive/internal/proxyproto"
	"redrive/internal/wire"
)

// errStopped says that the login is over and nothing left to relay.
var errStopped = errors.New("login ended by us")

// A loginShell does for an Exchange what it cannot do itself: it reads, writes and encrypts, in one goroutine. A login is
// a talk in turns, so that it reads from the side whose turn it is; loginturn.go has what else may happen.
type loginShell struct {
	*conn
	exchange           login.Exchange
	clientIn, serverIn packetReader
	noFarewell         bool // the server would not understand one

	limit   *time.Timer // the time for the whole login
	over    bool        // the login, or we gave it up: the limit does not apply any more. Guarded by mu
	late    bool        // it applied: all reads and writes fail. Guarded by mu
	expired bool        // the timer's function runs, ran, or is about to. Guarded by mu
}

// loginShells are kept for their buffers.
var loginShells = sync.Pool{New: func() any { return new(loginShell) }}

// logIn carries the login over. It reports false if nothing is left to be relayed.
func (c *conn) logIn() bool {
	l := loginShells.Get().(*loginShell)
	l.begin(c)
	err := l.run()
	return l.end(!errors.Is(err, errStopped))
}

func (l *loginShell) begin(c *conn) {
	l.conn, l.exchange = c, login.Exchange{Terms: c.terms()}
	l.noFarewell, l.over, l.late, l.expired = false, false, false, false
	l.clientIn.begin(c.client, c.proxy.maxLoginPacket())
	l.serverIn.begin(c.server, maxServerPacket)
	l.limit = time.AfterFunc(c.loginTime(), func() { l.expire(c) })
}

// run takes packets until the login is over or one of the sides.
func (l *loginShell) run() error {
	l.readDeadline(l.server, time.Now().Add(l.proxy.dialTimeout())) // for the greeting
	for l.exchange.Going() {
		if err := l.step(); err != nil {
			return err
		}
	}
	return nil
}

// end passes on what was read behind the login. It reports whether there is something to relay.
func (l *loginShell) end(relay bool) bool {
	l.stopLimit()
	if relay = relay && l.exchange.State() != login.Refused; relay {
		l.passRest(&l.clientIn, l.server, true)
		l.passRest(&l.serverIn, l.client, false)
	} else {
		l.bidFarewell()
	}
	l.clientIn.forget()
	l.serverIn.forget()
	l.conn, l.exchange, l.limit = nil, login.Exchange{}, nil
	if !l.expired { // else the timer may still hold it
		loginShells.Put(l)
	}
	return relay
}

// step waits for the next packet and does what follows from it. A connection that ends is left for the relay to find
// out: it knows what to do then.
func (l *loginShell) step() error {
	if l.exchange.ClientTurn() && len(l.serverIn.rest()) == 0 {
		packet, err := l.readClient()
		if err != errServerSpeaks {
			return l.fromClient(packet, err)
		}
	}
	packet, err := l.serverIn.packet()
	return l.fromServer(packet, err)
}

func (l *loginShell) fromServer(packet []byte, err error) error {
	at := l.proxy.Clock.Now()
	greeting := l.exchange.State() == login.Greeting
	switch {
	case err == nil:
		if greeting {
			l.readDeadline(l.server, time.Time{})
		}
		return l.perform(l.exchange.FromServer(packet), at)
	case errors.Is(err, errLong):
		l.readDeadline(l.server, time.Time{})
		return l.perform(l.exchange.GiveUp(errLong.Error()), at)
	case errors.Is(err, os.ErrDeadlineExceeded) && l.isLate():
		return l.tooLate()
	case errors.Is(err, os.ErrDeadlineExceeded):
		l.refuse(fmt.Errorf("connected, but it sent no greeting within %s", l.proxy.dialTimeout()))
		return errStopped
	case greeting && errors.Is(err, io.EOF) && len(l.serverIn.rest()) == 0:
		err = errors.New("the server closed the connection without a greeting")
	}
	l.noFarewell = true
	l.note(readError(err), capture.EndServer)
	if l.exchange.GiveUp("") != nil {
		l.serverIn.drop() // the client can make nothing of a part
	}
	return io.EOF
}

func (l *loginShell) fromClient(packet []byte, err error) error {
	at := l.proxy.Clock.Now()
	switch {
	case err == nil:
	case errors.Is(err, errLong):
		return l.perform(l.refuseLong(l.clientIn.rest()), at)
	case errors.Is(err, os.ErrDeadlineExceeded):
		return l.silent()
	default:
		l.note(readError(err), capture.EndClient)
		return errStopped
	}
	steps := l.exchange.FromClient(packet)
	if l.exchange.State() != login.Refused && (l.proxy.PassThrough || !wire.IsSSLRequest(packet[wire.HeaderLen:])) {
		l.show(packet, true, at)
	}
	return l.perform(steps, at)
}

func (l *loginShell) refuseLong(header []byte) []login.Step {
	if proxyproto.Looks(header) {
		return l.exchange.Refuse("a PROXY header from an address that is not in --proxy-protocol-from")
	}
	return l.exchange.RefuseLong(header, l.proxy.maxLoginPacket())
}

// readError is nil for an end: many a client ends TLS without a word.
func readError(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return nil
	}
	return fmt.Errorf("%w: %w", errRead, err)
}

// passRest passes on what was read behind the login, or of a packet that is not followed.
func (l *loginShell) passRest(from *packetReader, to net.Conn, fromClient bool) {
	data := from.rest()
	if len(data) == 0 {
		return
	}
	at := l.proxy.Clock.Now()
	to.Write(data) // what fails here fails for the relay, too
	l.show(data, fromClient, at)
}

// perform does what the exchange asks for.
func (l *loginShell) perform(steps []login.Step, at time.Duration) error {
	for _, s := range steps {
		if err := l.do(s, at); err != nil {
			return err
		}
	}
	if l.exchange.State() == login.Refused {
		return errStopped
	}
	return nil
}

func (l *loginShell) do(s login.Step, at time.Duration) error {
	switch s.Do {
	case login.ToClient:
		return l.toClient(s.Packet, at)
	case login.ToServer:
		return l.toServer(s.Packet)
	case login.EncryptClient:
		return l.encryptClient()
	}
	return l.encryptServer()
}

func (l *loginShell) toClient(packet []byte, at time.Duration) error {
	if l.exchange.State() == login.Refused {
		l.refused(packet)
	}
	_, err := l.client.Write(packet)
	l.show(packet, false, at)
	switch {
	case err == nil:
		return nil
	case l.isLate() && l.exchange.State() != login.Refused:
		return l.rejectLogin(l.overdue())
	}
	l.note(err, capture.EndClient) // it is gone: the server need not work on for nobody
	return errStopped
}

// refused tells of a login that we refuse.
func (l *loginShell) refused(packet []byte) {
	cause := errors.New(wire.ParseError(packet[wire.HeaderLen:]).Message)
	l.warn(&l.proxy.logins.refused, "login refused", "client", l.origin, "error", cause)
	l.note(cause, capture.EndBroken)
	l.stopLimit()
	l.client.SetWriteDeadline(time.Now().Add(lastWords))
}

func (l *loginShell) toServer(packet []byte) error {
	_, err := l.server.Write(packet)
	switch {
	case err == nil:
		return nil
	case l.isLate():
		return l.tooLate()
	}
	l.note(err, capture.EndServer) // what it said before it went is for the client
	if l.exchange.GiveUp("") != nil {
		l.serverIn.drop()
	}
	return io.EOF
}

// show shows what passed on the client's side, TLS taken off, to the follower.
func (l *loginShell) show(data []byte, fromClient bool, at time.Duration) {
	sent := l.proxy.Clock.Now()
	l.mu.Lock()
	defer l.mu.Unlock()
	if fromClient {
		l.showClient(data, at, sent)
		return
	}
	l.showServer(data, at)
}

// encryptClient takes the client's ClientHello, which may have come in one piece with its wish for TLS.
func (l *loginShell) encryptClient() error {
	under := l.client
	if rest := l.clientIn.rest(); len(rest) > 0 {
		under = &readAhead{Conn: l.client, data: append([]byte(nil), rest...)}
		l.clientIn.drop()
	}
	secured := tls.Server(under, l.proxy.ClientTLS)
	l.deadline(l.client, time.Now().Add(l.proxy.answerTime()))
	if err := secured.Handshake(); err != nil {
		if errors.Is(err, os.ErrDeadlineExceeded) {
			return l.silent()
		}
		err = fmt.Errorf("TLS with the client: %w", err)
		l.warn(&l.proxy.logins.failed, "login failed", "client", l.origin, "error", err)
		l.note(err, capture.EndClient)
		return errStopped
	}
	l.deadline(l.client, time.Time{})
	l.mu.Lock()
	l.client = secured
	l.mu.Unlock()
	l.clientIn.conn = secured
	return nil
}

// encryptServer begins TLS on the server's connection. Should the server have spoken meanwhile, that is for the client.
func (l *loginShell) encryptServer() error {
	if len(l.serverIn.rest()) > 0 {
		packet, err := l.serverIn.packet()
		if err != nil {
			return l.fromServer(packet, err)
		}
		if err := l.perform(l.exchange.FromServer(packet), l.proxy.Clock.Now()); err != nil {
			return err
		}
		return io.EOF
	}
	secured := tls.Client(l.server, unverified(l.proxy.BackendTLS))
	l.deadline(l.server, time.Now().Add(l.proxy.dialTimeout()))
	err := secured.Handshake()
	l.deadline(l.server, time.Time{})
	if err != nil {
		l.noFarewell = true
		return l.perform(l.exchange.Refuse(l.noTLS(err)), l.proxy.Clock.Now())
	}
	l.mu.Lock()
	l.server = secured
	l.mu.Unlock()
	l.serverIn.conn = secured
	if err := verify(l.proxy.BackendTLS, secured.ConnectionState()); err != nil {
		return l.perform(l.exchange.Distrust(l.noTLS(err)), l.proxy.Clock.Now())
	}
	return nil
}

func (l *loginShell) noTLS(cause error) string {
	return fmt.Sprintf("TLS with the server %s: %v", l.proxy.Backend, cause)
}

// A readAhead gives what was read before, and then what its connection does.
type readAhead struct {
	net.Conn
	data []byte
}

func (r *readAhead) Read(b []byte) (int, error) {
	if len(r.data) == 0 {
		return r.Conn.Read(b)
	}
	n := copy(b, r.data)
	r.data = r.data[n:]
	return n, nil
}
