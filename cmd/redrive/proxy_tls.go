package main

import (
	"cmp"
	"crypto/tls"
	"log/slog"
	"net/netip"
	"strings"

	"github.com/spf13/pflag"

	"redrive/internal/client"
	"redrive/proxy"
)

// proxyLegOptions are the flags that say what the proxy's connections to clients and to the backend are like: TLS, and
// whose address is told by the PROXY protocol.
type proxyLegOptions struct {
	tls, cert, key string
	legacy         bool
	backend        connectOptions
	from           []string
	announce       string

	reloaded []*keyPair // what reload reads anew
}

func (o *proxyLegOptions) addFlags(f *pflag.FlagSet) {
	f.StringVar(&o.tls, "tls", "", "withhold TLS from the server's offer, passthrough: leave it to client and server, unseen, or terminate it here\n(default withhold; terminate with --tls-cert)")
	f.StringVar(&o.cert, "tls-cert", "", "file of the certificate to show to clients, chain included")
	f.StringVar(&o.key, "tls-key", "", "file of its key")
	o.backend.prefix = "backend-"
	o.backend.addTLSFlags(f)
	f.Lookup("backend-ssl-mode").Usage = "TLS to the backend: disabled, preferred, required, verify-ca or verify-identity\n(default disabled; preferred with --tls terminate)"
	f.BoolVar(&o.legacy, "backend-ssl-legacy", false, "towards a backend of old: TLS 1.0 and 1.1 and RSA key exchange too")
	f.StringSliceVar(&o.from, "proxy-protocol-from", nil, "networks whose connections must begin with a PROXY header, such as 10.0.0.0/8; no others may")
	f.StringVar(&o.announce, "backend-proxy-protocol", "", "tell the backend clients' addresses by a PROXY header: v1 or v2")
}

// mode is what becomes of TLS towards clients.
func (o *proxyLegOptions) mode() string {
	if o.tls == "" && o.cert != "" {
		return "terminate"
	}
	return cmp.Or(o.tls, "withhold")
}

// backendMode is what becomes of TLS towards the backend; empty if that is up to client and server.
func (o *proxyLegOptions) backendMode() string {
	switch {
	case o.backend.given("ssl-mode") != "":
		return o.backend.given("ssl-mode")
	case o.backend.given("ssl-ca") != "":
		return client.TLSVerifyCA.String()
	case o.mode() == "passthrough":
		return ""
	case o.mode() == "terminate", o.backend.given("ssl-cert") != "", o.legacy:
		return client.TLSPreferred.String()
	}
	return client.TLSDisabled.String()
}

// apply sets up a proxy whose backend is at the address. It fails before anything is opened but files.
func (o *proxyLegOptions) apply(p *proxy.Proxy, network, address string) error {
	switch mode := o.mode(); {
	case mode != "withhold" && mode != "passthrough" && mode != "terminate":
		return usagef("--tls %s: want withhold, passthrough or terminate", o.tls)
	case mode == "passthrough" && (o.backendMode() != "" || o.backend.given("ssl-cert") != "" || o.legacy):
		return usagef("--tls passthrough leaves TLS to client and server: --backend-ssl-… cannot apply")
	case mode != "terminate" && (o.cert != "" || o.key != ""):
		return usagef("--tls %s shows no certificate: --tls-cert and --tls-key cannot apply", mode)
	case mode == "terminate" && (o.cert == "" || o.key == ""):
		return usagef("--tls terminate needs both --tls-cert and --tls-key")
	}
	p.PassThrough = o.mode() == "passthrough"
	if o.cert != "" {
		pair, err := newKeyPair(o.cert, o.key)
		if err != nil {
			return usagef("--tls-cert and --tls-key: %w", err)
		}
		o.reloaded = append(o.reloaded, pair)
		p.ClientTLS = &tls.Config{GetCertificate: pair.forClient}
	}
	if err := o.applyBackend(p, network, address); err != nil {
		return err
	}
	return o.applyProxyProtocol(p)
}

func (o *proxyLegOptions) applyBackend(p *proxy.Proxy, network, address string) error {
	if mode := o.backendMode(); mode == "" || mode == client.TLSDisabled.String() {
		return nil
	}
	c := client.Config{Network: network, Address: address}
	if err := o.backend.encrypt(&c, nil); err != nil {
		return err
	}
	p.BackendTLS, p.BackendTLSOptional = c.ClientTLS(), c.TLSMode == client.TLSPreferred
	if p.BackendTLS == nil {
		return nil
	}
	if o.legacy {
		allowLegacy(p.BackendTLS)
	}
	if cert := o.backend.given("ssl-cert"); cert != "" {
		pair, err := newKeyPair(cert, o.backend.given("ssl-key"))
		if err != nil {
			return usagef("--backend-ssl-cert and --backend-ssl-key: %w", err)
		}
		o.reloaded = append(o.reloaded, pair)
		p.BackendTLS.GetClientCertificate = pair.forServer // goes before what encrypt put in
	}
	return nil
}

// reload reads certificates and keys anew, for connections to come. Authorities (--backend-ssl-ca) stay.
func (o *proxyLegOptions) reload(log *slog.Logger) {
	for _, pair := range o.reloaded {
		pair.reload(log)
	}
}

// allowLegacy lets a connection use what Go leaves out by default: MySQL before 5.7.28 has nothing else.
func allowLegacy(config *tls.Config) {
	config.MinVersion = tls.VersionTLS10
	for _, suite := range append(tls.CipherSuites(), tls.InsecureCipherSuites()...) {
		config.CipherSuites = append(config.CipherSuites, suite.ID)
	}
}

func (o *proxyLegOptions) applyProxyProtocol(p *proxy.Proxy) error {
	for _, text := range o.from {
		network, err := parseNetwork(strings.TrimSpace(text))
		if err != nil {
			return usagef("--proxy-protocol-from %s: want networks such as 10.0.0.0/8, or addresses", text)
		}
		p.ProxyProtocolFrom = append(p.ProxyProtocolFrom, network)
	}
	switch o.announce {
	case "":
	case "v1":
		p.BackendProxyProtocol = 1
	case "v2":
		p.BackendProxyProtocol = 2
	default:
		return usagef("--backend-proxy-protocol %s: want v1 or v2", o.announce)
	}
	return nil
}

// parseNetwork takes a single address for a network of one.
func parseNetwork(text string) (netip.Prefix, error) {
	if address, err := netip.ParseAddr(text); err == nil {
		address = address.Unmap()
		return netip.PrefixFrom(address, address.BitLen()), nil
	}
	network, err := netip.ParsePrefix(text)
	return network.Masked(), err
}

// settings are the flags as a recording's header tells of them.
func (o *proxyLegOptions) settings(settings map[string]string) {
	settings["tls"] = o.mode()
	if mode := o.backendMode(); mode != "" {
		settings["backend-ssl-mode"] = mode
	}
	if len(o.from) > 0 {
		settings["proxy-protocol-from"] = strings.Join(o.from, ",")
	}
	if o.announce != "" {
		settings["backend-proxy-protocol"] = o.announce
	}
}
