package main

import (
	"crypto/tls"
	"log/slog"
	"sync/atomic"
)

// A keyPair is a certificate with its key, read from two files, which can be read anew while it is in use. It is safe for
// concurrent use.
type keyPair struct {
	certFile, keyFile string
	current           atomic.Pointer[tls.Certificate]
}

func newKeyPair(certFile, keyFile string) (*keyPair, error) {
	p := &keyPair{certFile: certFile, keyFile: keyFile}
	return p, p.load()
}

// load reads the files. If they are no good what was read before stays.
func (p *keyPair) load() error {
	pair, err := tls.LoadX509KeyPair(p.certFile, p.keyFile)
	if err != nil {
		return err
	}
	p.current.Store(&pair)
	return nil
}

// reload is load for a proxy that runs: the log says what came of it.
func (p *keyPair) reload(log *slog.Logger) {
	if err := p.load(); err != nil {
		log.Error("the certificate is kept as it was: its files are no good", "cert", p.certFile, "key", p.keyFile, "error", err)
		return
	}
	log.Info("certificate read", "cert", p.certFile, "subject", p.current.Load().Leaf.Subject, "good_until", p.current.Load().Leaf.NotAfter)
}

// forClient is a server's side of crypto/tls: what to show.
func (p *keyPair) forClient(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	return p.current.Load(), nil
}

// forServer is a client's side: what to show to a server that asks, nothing if it would not take ours.
func (p *keyPair) forServer(asked *tls.CertificateRequestInfo) (*tls.Certificate, error) {
	if pair := p.current.Load(); asked.SupportsCertificate(pair) == nil {
		return pair, nil
	}
	return new(tls.Certificate), nil
}
