package client

import "crypto/tls"

// ClientTLS is how TLSMode and TLS are put to crypto/tls; nil where nothing is encrypted. Others who connect to the same
// server by other means (administrative SQL) verify it by the same rules.
func (c *Config) ClientTLS() *tls.Config {
	if c.TLSMode == TLSDisabled || c.Network == "unix" && c.TLSMode == TLSPreferred {
		return nil
	}
	return tlsConfig(c)
}
