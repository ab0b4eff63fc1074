package login_test

import (
	"bytes"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha1"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"strings"
	"sync"
	"testing"

	"redrive/internal/login"
	"redrive/internal/wire"
)

const (
	base     = wire.Protocol41 | wire.SecureConnection | wire.PluginAuth | wire.LenencAuthData | wire.LongPassword
	nonce    = "abcdefghijklmnopqrst"
	password = "open sesame"
)

var testKey = sync.OnceValues(func() (*rsa.PrivateKey, error) { return rsa.GenerateKey(rand.Reader, 2048) })

func key(t testing.TB) *rsa.PrivateKey {
	k, err := testKey()
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// greeting is what a server of MySQL 8 says first.
func greeting(caps wire.Capabilities) []byte {
	p := append([]byte{10}, "8.0.36\x00"...)
	p = append(p, 7, 0, 0, 0)
	p = append(append(p, nonce[:8]...), 0)
	p = append(p, byte(caps), byte(caps>>8), 45, 2, 0, byte(caps>>16), byte(caps>>24), 21)
	p = append(p, make([]byte, 10)...)
	p = append(append(p, nonce[8:]...), 0)
	return append(p, "caching_sha2_password\x00"...)
}

// response is a client's answer to it.
func response(caps wire.Capabilities, plugin, auth string) []byte {
	h := wire.HandshakeResponse{Capabilities: caps, Collation: 45, User: "user@tenant#cluster", AuthData: []byte(auth), Plugin: plugin}
	return h.Append(nil)
}

func sslRequest(caps wire.Capabilities) []byte {
	return (&wire.HandshakeResponse{Capabilities: caps | wire.SSL, Collation: 45}).AppendSSLRequest(nil)
}

func packet(seq byte, payload []byte) []byte {
	p, _ := wire.AppendPacket(nil, seq, payload)
	return p
}

// describe writes steps down: who gets what under which sequence id.
func describe(steps []login.Step) string {
	var b strings.Builder
	for _, s := range steps {
		switch s.Do {
		case login.EncryptClient:
			b.WriteString("[TLS with client]")
		case login.EncryptServer:
			b.WriteString("[TLS with server]")
		case login.ToClient:
			fmt.Fprintf(&b, "[client %d %q]", s.Packet[3], s.Packet[wire.HeaderLen:])
		case login.ToServer:
			fmt.Fprintf(&b, "[server %d %q]", s.Packet[3], s.Packet[wire.HeaderLen:])
		}
	}
	return b.String()
}

// A talk is a login under test.
type talk struct {
	*testing.T
	x login.Exchange
}

// server has the server say something, which must lead to the steps wanted.
func (t *talk) server(seq byte, payload, want string) {
	t.Helper()
	if got := describe(t.x.FromServer(packet(seq, []byte(payload)))); got != want {
		t.Errorf("the server says %q\n got %s\nwant %s", payload, got, want)
	}
}

func (t *talk) client(seq byte, payload, want string) {
	t.Helper()
	if !t.x.ClientTurn() {
		t.Errorf("it is not the client's turn to say %q", payload)
	}
	if got := describe(t.x.FromClient(packet(seq, []byte(payload)))); got != want {
		t.Errorf("the client says %q\n got %s\nwant %s", payload, got, want)
	}
}

func (t *talk) state(want login.State) {
	t.Helper()
	if got := t.x.State(); got != want {
		t.Errorf("state %d, want %d", got, want)
	}
}

const (
	ok        = "\x00\x00\x00\x02\x00\x00\x00"
	shaSwitch = "\xfecaching_sha2_password\x00" + nonce + "\x00"
	scramble  = "32 bytes of a scramble, or so..."
	scramble1 = "20 bytes of scramble" // mysql_native_password's
)

// legs begins a login with the client's connection and the server's encrypted or not, up to the client's answer.
func legs(t *testing.T, clientTLS, serverTLS bool, caps wire.Capabilities, plugin, auth string) *talk {
	t.Helper()
	b := &talk{T: t}
	b.x.Terms = login.Terms{OfferTLS: clientTLS, Withhold: wire.Compress | wire.Zstd, Key: func() (*rsa.PrivateKey, error) { return key(t), nil }}
	offer, told, answer := caps, caps, caps
	if serverTLS {
		b.x.Terms.ServerTLS = login.Always
		offer |= wire.SSL
	}
	if clientTLS {
		told |= wire.SSL
	}
	b.server(0, string(greeting(offer|wire.Compress)), fmt.Sprintf("[client 0 %q]", greeting(told)))
	seq := byte(1)
	if clientTLS {
		b.client(1, string(sslRequest(caps)), "[TLS with client]")
		answer |= wire.SSL
		seq = 2
	}
	want := fmt.Sprintf("[server 1 %q]", response(caps, plugin, auth))
	if serverTLS {
		want = fmt.Sprintf("[server 1 %q][TLS with server][server 2 %q]", sslRequest(caps), response(caps|wire.SSL, plugin, auth))
	}
	b.client(seq, string(response(answer|wire.Compress, plugin, auth)), want)
	return b
}

// Bits are told per connection, and packets numbered per connection, whatever the plugin says and however often.
func TestSequenceIDs(t *testing.T) {
	for _, tt := range []struct{ client, server bool }{{false, false}, {true, false}, {false, true}, {true, true}} {
		b := legs(t, tt.client, tt.server, base, wire.PluginNative, scramble1)
		server, client := byte(1), byte(1)
		if tt.server {
			server++
		}
		if tt.client {
			client++
		}
		turn := func(payload string) {
			server, client = server+1, client+1
			b.server(server, payload, fmt.Sprintf("[client %d %q]", client, payload))
		}
		turn("\xfesome_plugin\x00nonce")
		for round := range 300 { // ids wrap
			server, client = server+1, client+1
			answer := fmt.Sprint("answer ", round)
			if round%3 == 0 {
				answer = "" // is legal
			}
			b.client(client, answer, fmt.Sprintf("[server %d %q]", server, answer))
			turn([]string{"\x04Password: ", "\x02One-time password: ", "\x00is no OK", "\x01\x03", ""}[round%5])
		}
		turn(ok)
		b.state(login.Over)
	}
}

func TestFastPathIsNotTheClientsTurn(t *testing.T) {
	b := legs(t, true, false, base, wire.PluginCachingSHA2, scramble)
	b.server(2, "\x01\x03", `[client 3 "\x01\x03"]`)
	if b.x.ClientTurn() {
		t.Error("it is the client's turn after 01 03")
	}
	b.server(3, ok, fmt.Sprintf("[client 4 %q]", ok))
	b.state(login.Over)
}

// The client trusts TLS with its password; the server, reached without, is given it encrypted with its own key.
func TestFullAuthenticationOntoPlain(t *testing.T) {
	for _, plugin := range []string{wire.PluginCachingSHA2, wire.PluginSHA256} {
		b := legs(t, true, false, base, "mysql_native_password", scramble1)
		b.server(2, "\xfe"+plugin+"\x00"+nonce+"\x00", fmt.Sprintf("[client 3 %q]", "\xfe"+plugin+"\x00"+nonce+"\x00"))
		server, client, request := byte(3), byte(4), "\x01"
		if plugin == wire.PluginCachingSHA2 {
			b.client(4, scramble, fmt.Sprintf("[server 3 %q]", scramble))
			b.server(4, "\x01\x04", `[client 5 "\x01\x04"]`)
			server, client, request = 5, 6, "\x02"
		}
		b.client(client, password+"\x00", fmt.Sprintf("[server %d %q]", server, request))
		steps := b.x.FromServer(packet(server+1, append([]byte{1}, publicPEM(t)...)))
		if len(steps) != 1 || steps[0].Do != login.ToServer || steps[0].Packet[3] != server+2 {
			t.Fatalf("%s: the server's key leads to %s", plugin, describe(steps))
		}
		if got := unseal(t, steps[0].Packet[wire.HeaderLen:]); got != password+"\x00" {
			t.Errorf("%s: the server is sent %q, want the password", plugin, got)
		}
		b.server(server+3, ok, fmt.Sprintf("[client %d %q]", client+1, ok))
		b.state(login.Over)
	}
}

func publicPEM(t *testing.T) []byte {
	der, err := x509.MarshalPKIXPublicKey(&key(t).PublicKey)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})
}

// unseal decrypts as a server does.
func unseal(t *testing.T, sealed []byte) string {
	t.Helper()
	plain, err := rsa.DecryptOAEP(sha1.New(), nil, key(t), sealed, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := range plain {
		plain[i] ^= nonce[i%len(nonce)]
	}
	return string(plain)
}

// The client encrypts its password with our key, as it would with the server's; the server is sent it over TLS.
func TestFullAuthenticationOntoTLS(t *testing.T) {
	b := legs(t, false, true, base, wire.PluginCachingSHA2, scramble)
	b.server(3, "\x01\x04", `[client 2 "\x01\x04"]`)
	b.client(3, "\x02", fmt.Sprintf("[client 4 %q]", "\x01"+string(publicPEM(t))))
	sealed, err := wire.EncryptPassword(publicPEM(t), password, []byte(nonce))
	if err != nil {
		t.Fatal(err)
	}
	b.client(5, string(sealed), fmt.Sprintf("[server 4 %q]", password+"\x00"))
	b.server(5, ok, fmt.Sprintf("[client 6 %q]", ok))
	b.state(login.Over)
}

// A password that the client encrypted with a key it had from elsewhere, or that is no such thing, is refused.
func TestSealedWithAnotherKey(t *testing.T) {
	b := legs(t, false, true, base, wire.PluginCachingSHA2, scramble)
	b.server(3, "\x01\x04", `[client 2 "\x01\x04"]`)
	if got := describe(b.x.FromClient(packet(3, bytes.Repeat([]byte{7}, 256)))); !strings.HasPrefix(got, "[client 4 ") || !strings.Contains(got, "--tls-cert") {
		t.Errorf("got %s, want an error for the client that names --tls-cert", got)
	}
	b.state(login.Refused)

	b = legs(t, false, true, base, wire.PluginCachingSHA2, scramble)
	b.server(3, "\x01\x04", `[client 2 "\x01\x04"]`)
	b.client(3, "\x02", fmt.Sprintf("[client 4 %q]", "\x01"+string(publicPEM(t))))
	if got := describe(b.x.FromClient(packet(5, bytes.Repeat([]byte{7}, 256)))); !strings.Contains(got, "could not be decrypted") {
		t.Errorf("got %s, want an error for the client", got)
	}
	b.state(login.Refused)
}

// A server reached over a Unix socket takes caching_sha2_password's password as it is, a client without TLS does not know.
func TestServerOnUnixSocket(t *testing.T) {
	b := &talk{T: t}
	b.x.Terms = login.Terms{ServerLocal: true, Key: func() (*rsa.PrivateKey, error) { return key(t), nil }}
	b.server(0, string(greeting(base)), fmt.Sprintf("[client 0 %q]", greeting(base)))
	answer := response(base, wire.PluginCachingSHA2, scramble)
	b.client(1, string(answer), fmt.Sprintf("[server 1 %q]", answer))
	b.server(2, "\x01\x04", `[client 2 "\x01\x04"]`)
	b.client(3, "\x02", fmt.Sprintf("[client 4 %q]", "\x01"+string(publicPEM(t))))
	sealed, err := wire.EncryptPassword(publicPEM(t), password, []byte(nonce))
	if err != nil {
		t.Fatal(err)
	}
	b.client(5, string(sealed), fmt.Sprintf("[server 3 %q]", password+"\x00"))
}

// Clients before 8.0.26 may name caching_sha2_password without a scramble and expect to be sent to it again.
func TestSwitchToTheSamePlugin(t *testing.T) {
	b := legs(t, true, false, base, wire.PluginCachingSHA2, "")
	b.server(2, shaSwitch, fmt.Sprintf("[client 3 %q]", shaSwitch))
	b.client(4, scramble, fmt.Sprintf("[server 3 %q]", scramble))
}

// A further factor is authenticated like the first. MariaDB 10.11 has no such thing: this is MySQL 8.0.27's.
func TestFactors(t *testing.T) {
	caps := base | wire.MultiFactor
	next := "\x02mysql_clear_password\x00"
	b := legs(t, true, true, caps, wire.PluginCachingSHA2, scramble)
	b.server(3, next, fmt.Sprintf("[client 3 %q]", next))
	b.client(4, password+"\x00", fmt.Sprintf("[server 4 %q]", password+"\x00"))
	b.server(5, "\x02some_fido\x00challenge", `[client 5 "\x02some_fido\x00challenge"]`)
	b.client(6, "signed", `[server 6 "signed"]`)
	b.server(7, ok, fmt.Sprintf("[client 7 %q]", ok))
	b.state(login.Over)

	b = legs(t, true, false, caps, wire.PluginCachingSHA2, scramble)
	if got := describe(b.x.FromServer(packet(2, []byte(next)))); !strings.HasPrefix(got, "[client 3 ") || !strings.Contains(got, "--backend-ssl-mode required") {
		t.Errorf("got %s, want an error for the client that names --backend-ssl-mode", got)
	}
	b.state(login.Refused)

	b = legs(t, true, false, base, wire.PluginCachingSHA2, scramble) // not negotiated: 02 is a plugin's own
	b.server(2, next, fmt.Sprintf("[client 3 %q]", next))
}

// A client that opens with its password, trusting TLS, is refused before that goes on in clear.
func TestPasswordInTheResponse(t *testing.T) {
	for _, plugin := range []string{wire.PluginClear, wire.PluginDialog, wire.PluginOpenID} {
		x := login.Exchange{Terms: login.Terms{OfferTLS: true}}
		x.FromServer(packet(0, greeting(base)))
		x.FromClient(packet(1, sslRequest(base)))
		steps := x.FromClient(packet(2, response(base|wire.SSL, plugin, password)))
		if got := describe(steps); !strings.HasPrefix(got, "[client 3 ") || strings.Contains(got, password) || x.State() != login.Refused {
			t.Errorf("%s: got %s, want an error for the client", plugin, got)
		}
	}
}

// Who is not understood is relayed as it is where both sides see the same bytes, and refused otherwise.
func TestNotUnderstood(t *testing.T) {
	old := "\x85\x24\x00\x00\x00root\x00scramble" // the layout before 4.1
	for _, tt := range []struct {
		name  string
		terms login.Terms
		want  string
		state login.State
	}{
		{"plain", login.Terms{}, fmt.Sprintf("[server 1 %q]", old), login.Unfollowed},
		{"passed through", login.Terms{PassThrough: true}, fmt.Sprintf("[server 1 %q]", old), login.Unfollowed},
		{"towards TLS", login.Terms{ServerTLS: login.IfOffered}, "not understood", login.Refused},
	} {
		x := login.Exchange{Terms: tt.terms}
		x.FromServer(packet(0, greeting(base|wire.SSL)))
		if got := describe(x.FromClient(packet(1, []byte(old)))); !strings.Contains(got, tt.want) || x.State() != tt.state {
			t.Errorf("%s: got %s, state %d, want %s, state %d", tt.name, got, x.State(), tt.want, tt.state)
		}
	}
	x := login.Exchange{Terms: login.Terms{ServerTLS: login.Always}}
	if got := describe(x.FromServer(packet(0, []byte("\x09old")))); !strings.HasPrefix(got, "[client 0 \"\\xff") || x.State() != login.Refused {
		t.Errorf("a greeting of protocol 9: got %s, state %d, want an error", got, x.State())
	}
}

// TLS that is passed through is out of sight with the client's wish for it.
func TestPassThrough(t *testing.T) {
	b := &talk{T: t}
	b.x.Terms = login.Terms{PassThrough: true}
	b.server(0, string(greeting(base|wire.SSL)), fmt.Sprintf("[client 0 %q]", greeting(base|wire.SSL)))
	b.client(1, string(sslRequest(base)), fmt.Sprintf("[server 1 %q]", sslRequest(base)))
	b.state(login.Unfollowed)
}

// Whatever two peers say: no panic, only whole packets go out, and none to the server when the login is refused.
func FuzzExchange(f *testing.F) {
	f.Add(byte(0), greeting(base|wire.SSL), response(base, wire.PluginNative, scramble1), []byte(shaSwitch), []byte(scramble), []byte("\x01\x04"), []byte("\x02"))
	f.Add(byte(1), greeting(base), sslRequest(base), response(base|wire.SSL, wire.PluginSHA256, password+"\x00"), []byte(ok), []byte("\x01\x04"), []byte(""))
	f.Add(byte(2), greeting(base|wire.SSL), response(base, wire.PluginSHA256, "\x01"), []byte("x"), []byte(ok), []byte("\xff\x10\x04no"), []byte("\x01"))
	f.Add(byte(3), greeting(base|wire.SSL), sslRequest(base), response(base, wire.PluginClear, password), []byte("\xfedialog\x00"), []byte("\x02dialog\x00"), []byte("y"))
	f.Fuzz(func(t *testing.T, terms byte, g, a, b, c, d, e []byte) {
		x := login.Exchange{Terms: login.Terms{
			OfferTLS: terms&1 != 0, ServerTLS: login.Wish(terms >> 1 & 3 % 3), PassThrough: terms&8 != 0,
			ClientLocal: terms&16 != 0, ServerLocal: terms&32 != 0, Withhold: wire.Compress,
			Key: func() (*rsa.PrivateKey, error) { return key(t), nil },
		}}
		due := byte(0) // the client's next sequence id
		check := func(t *testing.T, x *login.Exchange, steps []login.Step) {
			t.Helper()
			check(t, x, steps)
			for _, s := range steps {
				if s.Do == login.ToClient {
					due = s.Packet[3] + 1
				}
			}
		}
		check(t, &x, x.FromServer(packet(0, g)))
		for i, payload := range [][]byte{a, b, c, d, e, a, b, c, d, e} {
			if !x.Going() {
				break
			}
			if x.ClientTurn() && i%3 != 2 {
				due++
				check(t, &x, x.FromClient(packet(due-1, payload)))
			} else {
				check(t, &x, x.FromServer(packet(byte(i), payload)))
			}
		}
		if x.Going() && terms&64 != 0 {
			check(t, &x, x.Refuse("enough"))
		}
		check(t, &x, x.Abandon())
		for _, payload := range [][]byte{a, b, c, d, e} {
			check(t, &x, x.FromServer(packet(0, payload)))
		}
	})
}

func check(t *testing.T, x *login.Exchange, steps []login.Step) {
	t.Helper()
	for _, s := range steps {
		if s.Do != login.ToClient && s.Do != login.ToServer {
			continue
		}
		if s.Do == login.ToServer && x.State() == login.Refused {
			t.Errorf("refused, and yet to the server: % X", s.Packet)
		}
		var split wire.Splitter
		p, rest, whole := split.Next(s.Packet)
		if !whole || !p.Head || !p.Tail || len(rest) != 0 {
			t.Errorf("%d bytes go out that are no packet: % X", len(s.Packet), s.Packet)
		}
	}
}
