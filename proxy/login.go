package proxy

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"redrive/capture"
	"redrive/internal/login"
	"redrive/internal/proxyproto"
	"redrive/internal/wire"
)

// errStopped says that the login is over and nothing left to relay.
var errStopped = errors.New("login ended by us")

// A loginShell does for an Exchange what it cannot do itself: it reads, writes and encrypts, in one goroutine. After
// the login the relay's two goroutines take over.
type loginShell struct {
	*conn
	exchange           login.Exchange
	clientIn, serverIn packetReader
}

// logIn carries the login over. It reports false if nothing is left to be relayed.
func (c *conn) logIn() bool {
	l := &loginShell{
		conn: c, exchange: login.Exchange{Terms: c.terms()},
		clientIn: packetReader{conn: c.client, clock: c.proxy.Clock}, serverIn: packetReader{conn: c.server, clock: c.proxy.Clock},
	}
	c.server.SetReadDeadline(time.Now().Add(c.proxy.dialTimeout())) // for the greeting
	for l.exchange.Going() {
		if err := l.step(); err != nil {
			return !errors.Is(err, errStopped) && l.letGo()
		}
	}
	return l.letGo()
}

// step waits for the next packet and does what follows from it. A connection that ends is left for the relay to find
// out: it knows what to do then.
func (l *loginShell) step() error {
	l.serverIn.start()
	if l.exchange.ClientTurn() {
		l.clientIn.start()
	}
	select {
	case a := <-l.serverIn.in:
		l.serverIn.reading = false
		return l.fromServer(a)
	case a := <-l.clientIn.in:
		l.clientIn.reading = false
		return l.fromClient(a)
	}
}

func (l *loginShell) fromServer(a arrival) error {
	if errors.Is(a.err, errLong) {
		return l.tooLong(a, false)
	}
	l.server.SetReadDeadline(time.Time{})
	if l.exchange.State() == login.Greeting && errors.Is(a.err, os.ErrDeadlineExceeded) {
		l.refuse(fmt.Errorf("connected, but it sent no greeting within %s", l.proxy.dialTimeout()))
		return errStopped
	}
	if a.err != nil {
		if l.exchange.State() == login.Greeting && errors.Is(a.err, io.EOF) {
			a.err = errors.New("the server closed the connection without a greeting")
		}
		l.note(readError(a.err), capture.EndServer)
		return l.cut(a, false)
	}
	return l.run(l.exchange.FromServer(a.data))
}

func (l *loginShell) fromClient(a arrival) error {
	if errors.Is(a.err, errLong) {
		if proxyproto.Looks(a.data) {
			return l.run(l.exchange.Refuse("a PROXY header from an address that is not in --proxy-protocol-from"))
		}
		return l.tooLong(a, true)
	}
	if a.err != nil {
		l.note(readError(a.err), capture.EndClient)
		return l.cut(a, true)
	}
	steps := l.exchange.FromClient(a.data)
	if l.proxy.PassThrough || !wire.IsSSLRequest(a.data[wire.HeaderLen:]) {
		l.show(a.data, true, a.at)
	}
	return l.run(steps)
}

// readError is nil for an end: many a client ends TLS without a word.
func readError(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return nil
	}
	return fmt.Errorf("%w: %w", errRead, err)
}

// tooLong gives up following the login because of a packet of which only the header was read.
func (l *loginShell) tooLong(a arrival, fromClient bool) error {
	if err := l.run(l.exchange.GiveUp(errLong.Error())); err != nil {
		return err
	}
	return l.passRest(a.data, fromClient)
}

// cut passes on what came of a packet before its connection ended, if the other side can make something of it.
func (l *loginShell) cut(a arrival, fromClient bool) error {
	if l.exchange.Going() && l.exchange.GiveUp("") == nil {
		l.passRest(a.data, fromClient)
	}
	return io.EOF
}

// passRest passes on bytes that are no whole packet.
func (l *loginShell) passRest(data []byte, fromClient bool) error {
	to := l.client
	if fromClient {
		to = l.server
	}
	if len(data) == 0 {
		return nil
	}
	return l.pass(to, data, fromClient)
}

// letGo takes what the readers have got by now and stops them, so that the relay can go on behind it. It reports
// whether there is something to relay.
func (l *loginShell) letGo() bool {
	fromClient, fromServer := l.clientIn.stop(), l.serverIn.stop()
	if l.exchange.State() == login.Refused {
		return false
	}
	l.passRest(fromClient.data, true)
	l.passRest(fromServer.data, false)
	return true
}

// run does what the exchange asks for.
func (l *loginShell) run(steps []login.Step) error {
	for _, s := range steps {
		if err := l.do(s); err != nil {
			return err
		}
	}
	if l.exchange.State() == login.Refused {
		return errStopped
	}
	return nil
}

func (l *loginShell) do(s login.Step) error {
	switch s.Do {
	case login.ToClient:
		return l.toClient(s.Packet)
	case login.ToServer:
		return l.toServer(s.Packet)
	case login.EncryptClient:
		return l.encryptClient()
	}
	return l.encryptServer()
}

func (l *loginShell) toClient(packet []byte) error {
	if l.exchange.State() == login.Refused {
		l.refused(packet)
	}
	_, err := l.client.Write(packet)
	l.show(packet, false, l.proxy.Clock.Now())
	if err != nil { // the client is gone: the server need not work on for nobody
		l.note(err, capture.EndClient)
		return errStopped
	}
	return nil
}

// refused tells of a login that we refuse.
func (l *loginShell) refused(packet []byte) {
	cause := errors.New(wire.ParseError(packet[wire.HeaderLen:]).Message)
	l.proxy.Logger.Warn("login refused", "session", l.id, "client", l.origin, "error", cause)
	l.note(cause, capture.EndBroken)
	l.client.SetWriteDeadline(time.Now().Add(lastWords))
}

func (l *loginShell) toServer(packet []byte) error {
	_, err := l.server.Write(packet)
	if err != nil { // what it said before it went is for the client
		l.note(err, capture.EndServer)
		return l.cut(arrival{}, true)
	}
	return nil
}

// show counts what passed on the client's side, TLS taken off, and shows it to the follower.
func (l *loginShell) show(data []byte, fromClient bool, at time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if fromClient {
		l.totals.BytesIn += uint64(len(data))
		l.join(at)
		l.follower.FromClient(data, at, l.proxy.Clock.Now())
		return
	}
	l.totals.BytesOut += uint64(len(data))
	l.follower.FromServer(data, at)
	l.leave()
}

// encryptClient takes the client's ClientHello, which may have come in one piece with its wish for TLS.
func (l *loginShell) encryptClient() error {
	secured := tls.Server(l.client, l.proxy.ClientTLS)
	if err := l.shakeHands(secured); err != nil {
		err = fmt.Errorf("TLS with the client: %w", err)
		l.proxy.Logger.Warn("login failed", "session", l.id, "client", l.origin, "error", err)
		l.note(err, capture.EndClient)
		return errStopped
	}
	l.mu.Lock()
	l.client = secured
	l.mu.Unlock()
	l.clientIn.conn = secured
	return nil
}

// encryptServer begins TLS on the server's connection. Should the server have spoken meanwhile, that is for the client.
func (l *loginShell) encryptServer() error {
	switch a := l.serverIn.stop(); {
	case a.err == nil && len(a.data) > 0:
		if err := l.run(l.exchange.FromServer(a.data)); err != nil {
			return err
		}
		return l.cut(arrival{}, false)
	case a.err != nil && !errors.Is(a.err, os.ErrDeadlineExceeded):
		l.note(readError(a.err), capture.EndServer)
		return l.cut(arrival{}, false)
	}
	secured := tls.Client(l.server, l.proxy.BackendTLS)
	if err := l.shakeHands(secured); err != nil {
		return l.run(l.exchange.Refuse(fmt.Sprintf("TLS with the server %s: %v", l.proxy.Backend, err)))
	}
	l.mu.Lock()
	l.server = secured
	l.mu.Unlock()
	l.serverIn.conn = secured
	return nil
}

func (l *loginShell) shakeHands(secured *tls.Conn) error {
	ctx, cancel := context.WithTimeout(context.Background(), l.proxy.dialTimeout())
	defer cancel()
	return secured.HandshakeContext(ctx)
}
