package proxy

import (
	"crypto/rand"
	"crypto/rsa"
	"fmt"
	"net"

	"redrive/internal/login"
)

// terms are what a login is carried over on.
func (c *conn) terms() login.Terms {
	return login.Terms{
		OfferTLS:    c.proxy.ClientTLS != nil,
		PassThrough: c.proxy.PassThrough,
		ServerTLS:   c.proxy.wish(),
		ClientLocal: isLocal(c.client),
		ServerLocal: isLocal(c.server),
		Withhold:    c.proxy.withheldCompression(),
		Key:         c.proxy.key,
	}
}

func (p *Proxy) wish() login.Wish {
	switch {
	case p.BackendTLS == nil || p.PassThrough:
		return login.Never
	case p.BackendTLSOptional:
		return login.IfOffered
	}
	return login.Always
}

func isLocal(conn net.Conn) bool { return conn.RemoteAddr().Network() == "unix" }

// newKey makes the key that clients without TLS encrypt their passwords with, where the server is reached over TLS.
func newKey() (*rsa.PrivateKey, error) {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		return nil, fmt.Errorf("make a key for passwords: %w", err)
	}
	return key, nil
}
