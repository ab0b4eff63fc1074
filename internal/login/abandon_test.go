package login_test

import (
	"strings"
	"testing"

	"redrive/internal/login"
	"redrive/internal/wire"
)

// abandon gives the payload that the server is sent for a login that is broken off, under that sequence id.
func (t *talk) abandon(seq byte) []byte {
	t.Helper()
	steps := t.x.Abandon()
	if len(steps) != 1 || steps[0].Do != login.ToServer || steps[0].Packet[3] != seq {
		t.Fatalf("abandoned by %s, want one packet for the server with sequence id %d", describe(steps), seq)
	}
	t.state(login.Abandoned)
	return steps[0].Packet[wire.HeaderLen:]
}

// refuse has the server refuse the login, after which there is nothing more to do.
func (t *talk) refuse(seq byte) {
	t.Helper()
	t.server(seq, "\xff\x15\x04#28000no", "")
	t.state(login.Dismissed)
	t.server(seq+1, "\xfemysql_native_password\x00"+nonce+"\x00", "")
}

// Each time another name and scramble, so that nobody can have an account that fits.
func TestAbandonInFrontOfTheAnswer(t *testing.T) {
	seen := map[string]bool{}
	for range 100 {
		b := &talk{T: t}
		b.server(0, string(greeting(base|wire.SSL)), "[client 0 "+quote(greeting(base))+"]")
		h, err := wire.ParseHandshakeResponse(b.abandon(1), base)
		if err != nil || !strings.HasPrefix(h.User, "redrive-abandoned-") || len(h.User) > 32 || h.Capabilities.Has(wire.SSL) {
			t.Fatalf("the server is sent %+v, %v", h, err)
		}
		if h.Plugin != wire.PluginCachingSHA2 || len(h.AuthData) != 32 {
			t.Errorf("%d bytes for %s, want the 32 of the plugin in the greeting", len(h.AuthData), h.Plugin)
		}
		if seen[h.User] || seen[string(h.AuthData)] {
			t.Errorf("%s with %s comes again", h.User, h.AuthData)
		}
		seen[h.User], seen[string(h.AuthData)] = true, true
		b.refuse(2)
	}
}

func quote(b []byte) string {
	return strings.TrimSuffix(strings.TrimPrefix(describe([]login.Step{{Do: login.ToClient, Packet: packet(0, b)}}), "[client 0 "), "]")
}

// What a server asks for is given in the form that its plugin takes for an answer.
func TestAbandonWithinThePlugins(t *testing.T) {
	for plugin, want := range map[string]int{
		wire.PluginNative: 20, wire.PluginCachingSHA2: 32, wire.PluginEd25519: 64, "mysql_old_password": 9, wire.PluginClear: 33, wire.PluginDialog: 33,
	} {
		asked := "\xfe" + plugin + "\x00" + nonce + "\x00"
		b := legs(t, false, false, base, wire.PluginNative, scramble1)
		b.server(2, asked, "[client 2 "+quote([]byte(asked))+"]")
		if got := b.abandon(3); len(got) != want {
			t.Errorf("%s: answered by %q, want %d bytes", plugin, got, want)
		}
		steps := b.x.FromServer(packet(4, []byte("\x01\x04")))
		if len(steps) != 1 || steps[0].Packet[3] != 5 || len(steps[0].Packet) < wire.HeaderLen+20 {
			t.Errorf("%s: asked for the password it is answered by %s", plugin, describe(steps))
		}
		b.refuse(6)
	}
}

// While the server has the word it is waited for; what it asks for then is answered.
func TestAbandonInTheServersTurn(t *testing.T) {
	b := legs(t, true, false, base, wire.PluginNative, scramble1)
	if steps := b.x.Abandon(); len(steps) != 0 {
		t.Errorf("abandoned by %s, want nothing yet", describe(steps))
	}
	b.state(login.Abandoned)
	steps := b.x.FromServer(packet(2, []byte(shaSwitch)))
	if len(steps) != 1 || steps[0].Packet[3] != 3 || len(steps[0].Packet) != wire.HeaderLen+32 {
		t.Errorf("answered by %s, want 32 bytes with sequence id 3", describe(steps))
	}
	b.refuse(4)
}

// A refusal of ours leaves the server waiting, too.
func TestAbandonAfterARefusal(t *testing.T) {
	b := legs(t, false, true, base, wire.PluginNative, scramble1)
	b.server(3, shaSwitch, "[client 2 "+quote([]byte(shaSwitch))+"]")
	b.client(3, scramble, "[server 4 "+quote([]byte(scramble))+"]")
	b.server(5, "\x01\x04", "[client 4 "+quote([]byte("\x01\x04"))+"]")
	b.x.FromClient(packet(5, []byte(strings.Repeat("sealed by another's key ", 10))))
	b.state(login.Refused)
	b.abandon(6)
	b.refuse(7)
}

// A server that is not trusted is sent none of the client's answer, but a wrong one in its place.
func TestDistrust(t *testing.T) {
	b := &talk{T: t}
	b.x.Terms.ServerTLS = login.Always
	b.x.FromServer(packet(0, greeting(base|wire.SSL)))
	b.x.FromClient(packet(1, response(base, wire.PluginNative, scramble1)))
	if got := describe(b.x.Distrust("who is that")); !strings.Contains(got, "who is that") || !strings.HasPrefix(got, "[client 2 ") {
		t.Errorf("the client is told %s, want why", got)
	}
	h, err := wire.ParseHandshakeResponse(b.abandon(2), base|wire.SSL)
	if err != nil || !h.Capabilities.Has(wire.SSL) || !strings.HasPrefix(h.User, "redrive-abandoned-") {
		t.Errorf("the server is sent %+v, %v", h, err)
	}
	b.refuse(3)
}

// Where nothing is owed nothing is said: before the greeting, over a Unix socket, behind the login.
func TestNothingToAbandon(t *testing.T) {
	var x login.Exchange
	if steps := x.Abandon(); len(steps) != 0 || x.State() != login.Greeting {
		t.Errorf("before the greeting: %s", describe(steps))
	}
	x.Terms.ServerLocal = true
	x.FromServer(packet(0, greeting(base)))
	if steps := x.Abandon(); len(steps) != 0 || x.State() != login.Response {
		t.Errorf("over a Unix socket: %s", describe(steps))
	}
	b := legs(t, false, false, base, wire.PluginNative, scramble1)
	b.server(2, ok, "[client 2 "+quote([]byte(ok))+"]")
	if steps := b.x.Abandon(); len(steps) != 0 {
		t.Errorf("behind the login: %s", describe(steps))
	}
	b.state(login.Over)
}
