package proxy

import (
	"crypto/tls"
	"crypto/x509"
	"time"
)

// unverified is a client's configuration that looks at no certificate, for verify to do that when TLS has begun. A handshake
// that is broken off because of a certificate is one that servers count against our host: see bidFarewell.
func unverified(config *tls.Config) *tls.Config {
	config = config.Clone()
	config.InsecureSkipVerify, config.VerifyConnection, config.VerifyPeerCertificate = true, nil, nil
	return config
}

// verify does what crypto/tls does for a client within the handshake. Nothing may be sent before it has succeeded.
func verify(config *tls.Config, state tls.ConnectionState) error {
	certificates := state.PeerCertificates
	if !config.InsecureSkipVerify {
		options := x509.VerifyOptions{Roots: config.RootCAs, DNSName: config.ServerName, Intermediates: x509.NewCertPool()}
		if config.Time != nil {
			options.CurrentTime = config.Time()
		} else {
			options.CurrentTime = time.Now()
		}
		for _, c := range certificates[1:] {
			options.Intermediates.AddCert(c)
		}
		chains, err := certificates[0].Verify(options)
		if err != nil {
			return &tls.CertificateVerificationError{UnverifiedCertificates: certificates, Err: err}
		}
		state.VerifiedChains = chains
	}
	if config.VerifyPeerCertificate != nil {
		var raw [][]byte
		for _, c := range certificates {
			raw = append(raw, c.Raw)
		}
		if err := config.VerifyPeerCertificate(raw, state.VerifiedChains); err != nil {
			return err
		}
	}
	if config.VerifyConnection != nil {
		return config.VerifyConnection(state)
	}
	return nil
}
