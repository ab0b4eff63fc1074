package login

import (
	"bytes"
	"crypto/rand"
	"encoding/hex"

	"redrive/internal/wire"
)

const (
	// abandonedUser begins the name of a user that there is not, for logs and audits to tell what it was. With what follows
	// it has 30 characters; MySQL allows 32.
	abandonedUser = "redrive-abandoned-"
	// maxDismissals bounds the packets of a server that does not come to an end.
	maxDismissals = 8
)

// Abandon ends a login at the server that the client or we have broken off. Servers count handshakes that do not come to
// an end against the host that they come from, and block it after some; those that they refuse they do not count. So
// what the server still waits for it is given, in the right form and with wrong contents. The state is Abandoned then,
// and the server's packets are to be handed in, until it is Dismissed; else nothing is to be done.
//
// Such a login cannot succeed: the user's name has a random part, so has the answer to the plugin.
func (x *Exchange) Abandon() []Step {
	if !x.greeted || x.server.local || x.state != Response && x.state != Auth && x.state != Refused {
		return nil
	}
	x.forget()
	x.state = Abandoned
	switch {
	case !x.answered:
		return x.own(ToServer, &x.server, x.wrongResponse())
	case x.answers:
		return x.own(ToServer, &x.server, wrongAnswer(x.plugin))
	}
	return nil // the server has the word
}

// wrongResponse answers the greeting as nobody. It needs no TLS: there is no secret in it, and a server that insists on TLS
// refuses it without counting it.
func (x *Exchange) wrongResponse() []byte {
	offered := x.greeting.Capabilities
	x.caps = offered & (wire.LongPassword | wire.Protocol41 | wire.SecureConnection | wire.PluginAuth)
	if x.distrusted {
		x.caps = x.wished // said once they are to be kept: MariaDB reads them only there
	}
	x.plugin = wire.PluginNative
	if x.caps.Has(wire.PluginAuth) {
		x.plugin = x.greeting.Plugin
	}
	h := wire.HandshakeResponse{
		Capabilities: x.caps, MaxPacket: 1 << 24, Collation: x.greeting.Collation,
		User: abandonedUser + randomText(12), AuthData: wrongAnswer(x.plugin), Plugin: x.plugin,
	}
	return h.Append(nil)
}

// dismiss acts on what a server says to a login that was abandoned.
func (x *Exchange) dismiss(payload []byte) []Step {
	x.rounds++
	if x.state == Dismissed || x.rounds > maxDismissals {
		x.state = Dismissed
		return nil
	}
	answer := wrongText()
	switch {
	case len(payload) == 0:
	case payload[0] == 0xFF:
		x.state = Dismissed
		return nil
	case payload[0] == 0 && isOK(payload, x.caps): // somebody let nobody in
		x.state = Dismissed
		packet, _ := wire.AppendPacket(nil, 0, []byte{wire.ComQuit})
		return []Step{{ToServer, packet}}
	case payload[0] == wire.AuthSwitch:
		c := wire.NewCursor(payload[1:])
		x.plugin = string(c.NulBytes())
		answer = wrongAnswer(x.plugin)
	case payload[0] == wire.AuthMoreData && len(payload) == 2 && payload[1] == wire.SHA2FastOK:
		return nil // an OK follows
	}
	return x.own(ToServer, &x.server, answer)
}

func isOK(payload []byte, caps wire.Capabilities) bool {
	_, ok := wire.AcceptedLogin(payload, caps)
	return ok
}

// pluginOld scrambled passwords before MySQL 4.1.
const pluginOld = "mysql_old_password"

// answerLen is the length of the only answers that a plugin takes for one; others it takes for a handshake broken off. 0 means
// that any will do.
func answerLen(plugin string) int {
	switch plugin {
	case wire.PluginNative:
		return 20
	case wire.PluginCachingSHA2:
		return 32
	case wire.PluginEd25519:
		return 64
	}
	return 0
}

// wrongAnswer is an answer to a plugin that has the right form.
func wrongAnswer(plugin string) []byte {
	if plugin == pluginOld {
		return append([]byte(randomText(8)), 0)
	}
	if n := answerLen(plugin); n > 0 {
		return []byte(randomText(n))
	}
	return wrongText()
}

// wrongText is a password with a NUL behind it.
func wrongText() []byte { return append([]byte(randomText(32)), 0) }

// fits reports whether a client's answer to a plugin has the right form. What has not, no server accepts, and it would be
// counted as a handshake broken off.
func fits(plugin string, answer []byte) bool {
	switch plugin {
	case wire.PluginNative: // without a password it is empty
		return len(answer) == 0 || len(answer) == answerLen(plugin)
	case wire.PluginEd25519:
		return len(answer) == answerLen(plugin)
	}
	return true
}

// plausible reports whether a payload may be a client's answer to the greeting, of protocol 4.1 or the one before.
func plausible(payload []byte) bool {
	c := wire.NewCursor(payload)
	low := wire.Capabilities(c.Uint16())
	if !low.Has(wire.Protocol41) {
		return plausibleOld(payload)
	}
	high := wire.Capabilities(c.Uint16()) << 16
	c.Skip(wire.SSLRequestLen - 4)
	if !c.OK() || c.Len() == 0 {
		return false
	}
	if bytes.IndexByte(payload[wire.SSLRequestLen:], 0) < 0 {
		return false
	}
	c.NulBytes()
	switch {
	case (low | high).Has(wire.LenencAuthData):
		c.LenencBytes()
	case low.Has(wire.SecureConnection):
		c.Bytes(int(c.Byte()))
	}
	return c.OK()
}

// plausibleOld is the layout of the protocol before: two bytes of capabilities, three of the largest packet, a name.
func plausibleOld(payload []byte) bool {
	const head = 5
	if len(payload) <= head {
		return false
	}
	c := wire.NewCursor(payload[head:])
	name := c.NulBytes()
	for _, b := range name {
		if b < ' ' {
			return false
		}
	}
	return c.OK() && len(name) <= 32
}

// randomText is n characters that nobody can foresee.
func randomText(n int) string {
	b := make([]byte, (n+1)/2)
	rand.Read(b)
	return hex.EncodeToString(b)[:n]
}
