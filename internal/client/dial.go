package client

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"time"
)

const defaultDialTimeout = 10 * time.Second

// Dial connects and logs in. ctx governs the connection for its whole life: when it ends, the socket is closed, whatever
// the connection is doing. A *wire.Error in the chain is the server's refusal.
func Dial(ctx context.Context, config Config) (*Conn, error) {
	config.Network = cmp.Or(config.Network, "tcp")
	if config.Now == nil {
		start := time.Now()
		config.Now = func() time.Duration { return time.Since(start) }
	}
	deadline := time.Now().Add(cmp.Or(config.DialTimeout, defaultDialTimeout))
	dialed := config.Now()
	dialer := net.Dialer{Deadline: deadline}
	socket, err := dialer.DialContext(ctx, config.Network, config.Address)
	if err != nil {
		return nil, fmt.Errorf("connect: %w", err)
	}
	c := &Conn{Login: NewLogin(&config), Dialed: dialed, conn: socket, ctx: ctx, now: config.Now, read: make([]byte, readSize)}
	c.release = context.AfterFunc(ctx, func() { socket.Close() })
	if err := c.logIn(&config, deadline); err != nil {
		c.release()
		socket.Close()
		return nil, fmt.Errorf("log in at %s as %q: %w", config.Address, config.User, cmp.Or(context.Cause(ctx), err))
	}
	return c, nil
}

func (c *Conn) logIn(config *Config, deadline time.Time) error {
	if err := c.conn.SetDeadline(deadline); err != nil {
		return err
	}
	for !c.Login.Done() {
		n, err := c.conn.Read(c.read)
		if n == 0 {
			return readError(err)
		}
		c.Ready = c.now()
		send, err := c.Login.Feed(c.read[:n])
		if err != nil {
			return err
		}
		if err := c.sendLogin(send); err != nil {
			return err
		}
		if c.Login.WantsTLS() {
			if err := c.encrypt(config); err != nil {
				return err
			}
		}
	}
	return c.conn.SetDeadline(time.Time{})
}

func (c *Conn) sendLogin(b []byte) error {
	if len(b) == 0 {
		return nil
	}
	_, err := c.conn.Write(b)
	return err
}

// encrypt puts TLS between us and the socket and sends the answer to the greeting over it.
func (c *Conn) encrypt(config *Config) error {
	secured := tls.Client(c.conn, tlsConfig(config))
	if err := secured.HandshakeContext(c.ctx); err != nil {
		return fmt.Errorf("TLS: %w", err)
	}
	c.conn = secured
	send, err := c.Login.TLSBegun()
	if err != nil {
		return err
	}
	return c.sendLogin(send)
}

// tlsConfig is the caller's configuration with what the mode decides.
func tlsConfig(config *Config) *tls.Config {
	t := &tls.Config{}
	if config.TLS != nil {
		t = config.TLS.Clone()
	}
	if t.ServerName == "" {
		t.ServerName, _, _ = net.SplitHostPort(config.Address)
	}
	if config.TLSMode == TLSVerifyIdentity {
		return t
	}
	t.InsecureSkipVerify = true
	if config.TLSMode == TLSVerifyCA {
		roots := t.RootCAs
		t.VerifyConnection = func(s tls.ConnectionState) error { return verifyChain(s.PeerCertificates, roots) }
	}
	return t
}

// verifyChain checks where a certificate comes from, and not whose name it carries.
func verifyChain(certificates []*x509.Certificate, roots *x509.CertPool) error {
	if len(certificates) == 0 {
		return errors.New("the server showed no certificate")
	}
	between := x509.NewCertPool()
	for _, c := range certificates[1:] {
		between.AddCert(c)
	}
	_, err := certificates[0].Verify(x509.VerifyOptions{Roots: roots, Intermediates: between})
	return err
}

func readError(err error) error {
	if errors.Is(err, io.EOF) {
		return errors.New("the server closed the connection")
	}
	return err
}
