package client

import (
	"cmp"
	"errors"
	"fmt"

	"redrive/internal/wire"
)

const (
	utf8mb4GeneralCI = 45
	maxPacket        = 1 << 30 // announced to the server; no limit of ours
	maxLoginPacket   = 1 << 20 // longest packet taken from a server before it has let us in
)

// always are the capabilities a login asks for: those of a present-day client that change no result.
const always = wire.LongPassword | wire.Protocol41 | wire.Transactions | wire.SecureConnection | wire.MultiResults |
	wire.PSMultiResults | wire.PluginAuth | wire.LenencAuthData | wire.SessionTrack | wire.DeprecateEOF | wire.CacheMetadata

// needed are those without which nothing here can be read.
const needed = wire.Protocol41 | wire.SecureConnection

type loginState uint8

const (
	loginGreeting loginState = iota
	loginTLS                 // TLS is to begin
	loginAuth
	loginDone
)

// A Login takes a connection from its first byte to the server's OK. It is fed what the server sends and gives what is
// to be sent; with WantsTLS it asks for the channel to be encrypted in between. It has no I/O and no clock.
type Login struct {
	Greeting     wire.Greeting     // once it came
	Capabilities wire.Capabilities // negotiated
	Status       uint16            // flags of the OK
	Collation    byte              // the one asked for

	config  *Config
	local   bool // a Unix socket
	tls     bool
	state   loginState
	auth    authenticator
	answer  wire.HandshakeResponse
	split   wire.Splitter
	payload []byte // of the packet at hand
	seq     byte   // of the next packet to send
}

// NewLogin prepares a login as config says; config must not change before it is over.
func NewLogin(config *Config) *Login {
	return &Login{config: config, local: config.Network == "unix"}
}

// Done reports whether the server has let us in.
func (l *Login) Done() bool { return l.state == loginDone }

// WantsTLS reports that, once what Feed gave is sent, TLS must begin; TLSBegun goes on from there.
func (l *Login) WantsTLS() bool { return l.state == loginTLS }

// Feed takes bytes from the server and gives those to send, if any. A *wire.Error is the server's refusal.
func (l *Login) Feed(b []byte) (send []byte, err error) {
	for !l.Done() {
		p, rest, ok := l.split.Next(b)
		if !ok {
			return send, nil
		}
		b = rest
		if len(l.payload)+len(p.Data) > maxLoginPacket {
			return nil, fmt.Errorf("login: a packet of more than %d bytes", maxLoginPacket)
		}
		l.payload = append(l.payload, p.Data...)
		if !p.Tail {
			continue
		}
		l.seq = p.Seq + 1
		answer, err := l.packet(l.payload)
		if err != nil {
			return nil, err
		}
		send = append(send, answer...)
		l.payload = l.payload[:0]
	}
	return send, nil
}

// packet acts on one packet and gives the packet to send, header included; nil for none.
func (l *Login) packet(payload []byte) ([]byte, error) {
	if len(payload) == 0 {
		return nil, errors.New("login: an empty packet from the server")
	}
	if payload[0] == 0xFF {
		return nil, wire.ParseError(payload)
	}
	switch l.state {
	case loginGreeting:
		return l.greeting(payload)
	case loginTLS:
		return nil, errors.New("login: the server spoke before TLS began")
	}
	switch payload[0] {
	case 0x00:
		ok, err := wire.ParseOK(payload, l.Capabilities)
		if err != nil {
			return nil, fmt.Errorf("login: %w", err)
		}
		l.Status, l.state = ok.Status, loginDone
		return nil, nil
	case wire.AuthMoreData:
		answer, err := l.auth.more(payload[1:])
		if err != nil || answer == nil {
			return nil, err
		}
		return l.frame(answer), nil
	case wire.AuthSwitch:
		return l.switchPlugin(payload)
	}
	return nil, fmt.Errorf("login: a packet beginning with %02X where an answer was due", payload[0])
}

func (l *Login) greeting(payload []byte) ([]byte, error) {
	g, err := wire.ParseGreeting(payload)
	if err != nil {
		return nil, err
	}
	if !g.Capabilities.Has(needed) {
		return nil, fmt.Errorf("server version %q is too old: it lacks protocol 4.1", g.ServerVersion)
	}
	l.Greeting = g
	if l.tls, err = l.wantTLS(); err != nil {
		return nil, err
	}
	l.answer = l.response()
	l.Capabilities = wire.Negotiate(g.Capabilities, l.answer.Capabilities)
	if l.tls {
		l.state = loginTLS
		return l.frame(l.answer.AppendSSLRequest(nil)), nil
	}
	return l.authenticate()
}

func (l *Login) wantTLS() (bool, error) {
	offered := l.Greeting.Capabilities.Has(wire.SSL)
	switch l.config.TLSMode {
	case TLSDisabled:
		return false, nil
	case TLSPreferred:
		return offered && !l.local, nil
	}
	if !offered {
		return false, fmt.Errorf("TLS is %s, but the server does not offer it", l.config.TLSMode)
	}
	return true, nil
}

// response is our answer to the greeting, but for the authentication data.
func (l *Login) response() wire.HandshakeResponse {
	c := l.config
	want := always | c.Capabilities
	if !l.Greeting.Capabilities.Has(wire.LongPassword) {
		want &^= wire.LongPassword // to set it would forgo what MariaDB has of its own
	}
	if c.Schema != "" {
		want |= wire.ConnectWithDB
	}
	if len(c.Attributes) > 0 {
		want |= wire.ConnectAttrs
	}
	if l.tls {
		want |= wire.SSL
	}
	l.Collation = cmp.Or(c.Collation, utf8mb4GeneralCI)
	return wire.HandshakeResponse{
		Capabilities: wire.Negotiate(l.Greeting.Capabilities, want&^(wire.Compress|wire.Zstd)),
		MaxPacket:    maxPacket,
		Collation:    l.Collation,
		User:         c.User,
		Schema:       c.Schema,
		Attributes:   c.Attributes,
	}
}

// TLSBegun goes on after the channel has been encrypted, and gives what is to be sent over it.
func (l *Login) TLSBegun() ([]byte, error) {
	l.seq++ // the SSLRequest used one up
	return l.authenticate()
}

// authenticate answers the greeting in full. A plugin that the greeting names but we do not know is not yet a reason to
// give up: the account may use another one, and the server will then ask for it.
func (l *Login) authenticate() ([]byte, error) {
	l.state = loginAuth
	plugin := l.Greeting.Plugin
	switch plugin {
	case wire.PluginCachingSHA2, wire.PluginSHA256:
	default:
		plugin = wire.PluginNative
	}
	l.auth = authenticator{
		plugin: plugin, password: l.config.Password, nonce: l.Greeting.Nonce, tls: l.tls, private: l.tls || l.local,
	}
	var err error
	l.answer.Plugin = plugin
	if l.answer.AuthData, err = l.auth.begin(); err != nil {
		return nil, err
	}
	if len(l.answer.AuthData) > 250 && !l.Capabilities.Has(wire.LenencAuthData) {
		return nil, errors.New("the server takes no authentication data of more than 250 bytes")
	}
	return l.frame(l.answer.Append(nil)), nil
}

// switchPlugin answers an AuthSwitchRequest: FE, plugin, nonce. FE alone asks for the scramble of before 4.1.
func (l *Login) switchPlugin(payload []byte) ([]byte, error) {
	if len(payload) == 1 {
		return nil, errors.New(`the server asks for authentication by "mysql_old_password", which is not supported`)
	}
	c := wire.NewCursor(payload)
	c.Skip(1)
	l.auth.plugin = string(c.NulBytes())
	l.auth.nonce = append([]byte(nil), c.Rest()...)
	answer, err := l.auth.begin()
	if err != nil {
		return nil, err
	}
	return l.frame(answer), nil
}

func (l *Login) frame(payload []byte) []byte {
	packet, _ := wire.AppendPacket(nil, l.seq, payload)
	return packet
}
