package login

import (
	"fmt"

	"redrive/internal/wire"
)

// Flags of the proxy, for messages.
const (
	needTLS         = "--backend-ssl-mode required"
	needCertificate = "--tls-cert and --tls-key"
)

// greet acts on the server's first packet: the offer that the client is told of is the one that can be kept.
func (x *Exchange) greet(packet []byte) []Step {
	payload := packet[wire.HeaderLen:]
	x.client.local, x.server.local = x.Terms.ClientLocal, x.Terms.ServerLocal
	if len(payload) > 0 && payload[0] == 0xFF {
		x.state = Over
		return x.toClient(packet)
	}
	greeting, err := wire.ParseGreeting(payload)
	if err != nil {
		if refused := x.GiveUp(err.Error()); refused != nil {
			return refused
		}
		return x.toClient(packet)
	}
	x.greeting, x.greeted = greeting, true
	withhold, offer := x.Terms.Withhold, wire.Capabilities(0)
	if !x.Terms.PassThrough {
		offered := greeting.Capabilities.Has(wire.SSL)
		if !offered && x.Terms.ServerTLS == Always {
			return x.Refuse("the server does not offer TLS, which --backend-ssl-mode asks for: give the server a certificate, or --backend-ssl-mode disabled")
		}
		x.server.tls = offered && x.Terms.ServerTLS != Never
		withhold |= wire.SSL
		if x.Terms.OfferTLS {
			offer = wire.SSL
		}
		if x.Terms.OfferTLS && !x.server.tls && !x.server.local {
			withhold |= wire.Compress | wire.Zstd // what must not go on in clear has to be seen
		}
	}
	wire.ChangeGreetingCapabilities(payload, withhold, offer)
	greeting.Capabilities &^= withhold &^ wire.SSL
	x.greeting, x.withheld = greeting, withhold&^wire.SSL
	x.state = Response
	return x.toClient(packet)
}

// respond acts on the client's first packet: the wish for TLS, or its answer to the greeting.
func (x *Exchange) respond(packet []byte) []Step {
	payload := packet[wire.HeaderLen:]
	if wire.IsSSLRequest(payload) && !x.client.tls {
		return x.requestTLS(packet)
	}
	if !plausible(payload) {
		return x.refuse(badHandshake)
	}
	h, err := wire.ParseHandshakeResponse(payload, x.greeting.Capabilities)
	if err != nil {
		if refused := x.GiveUp("the client's answer to the greeting is not understood: " + err.Error()); refused != nil {
			return refused
		}
		return x.toServer(packet)
	}
	x.caps = wire.Negotiate(x.greeting.Capabilities, h.Capabilities)
	x.plugin, x.nonce = wire.PluginNative, x.greeting.Nonce
	if h.Capabilities.Has(wire.PluginAuth) {
		x.plugin = h.Plugin
	}
	x.state = Auth
	x.renumber = x.renumber || x.client.tls != x.server.tls
	if len(h.AuthData) > 0 && x.leaks(x.plugin) {
		return x.refuseClear()
	}
	if x.plugin == wire.PluginSHA256 && len(h.AuthData) > 0 {
		x.response = append([]byte(nil), payload...)
		return x.secret(h.AuthData, packet)
	}
	if !fits(x.plugin, h.AuthData) {
		if changed, ok := wire.ReplaceAuthData(payload, wrongAnswer(x.plugin)); ok {
			return x.sendResponse(changed, nil)
		}
	}
	return x.sendResponse(payload, packet)
}

func (x *Exchange) requestTLS(packet []byte) []Step {
	switch {
	case x.Terms.PassThrough:
		x.state = Unfollowed
		return x.toServer(packet)
	case !x.Terms.OfferTLS:
		return x.Refuse("TLS was not offered: the proxy needs " + needCertificate + " for that")
	}
	x.client.tls = true
	return []Step{{Do: EncryptClient}}
}

// sendResponse sends the client's answer on, behind a wish for TLS of our own where the server's side is to have it.
// packet is the one the payload came in, if it is still the same.
func (x *Exchange) sendResponse(payload, packet []byte) []Step {
	x.answered = true
	c := wire.NewCursor(payload)
	client := wire.Capabilities(c.Uint32())
	caps := client &^ x.withheld // some clients announce what they were not offered
	if !x.Terms.PassThrough {
		caps &^= wire.SSL // some repeat the bit, some do not: what the connection is decides
	}
	if x.server.tls {
		caps |= wire.SSL
	}
	payload[0], payload[1], payload[2], payload[3] = byte(caps), byte(caps>>8), byte(caps>>16), byte(caps>>24)
	var steps []Step
	if x.server.tls {
		x.wished = caps
		request, _ := wire.AppendPacket(nil, x.server.next(), payload[:wire.SSLRequestLen])
		x.server.note(request)
		steps = append(steps, Step{ToServer, request}, Step{Do: EncryptServer})
	}
	if packet == nil {
		packet, _ = wire.AppendPacket(nil, x.client.seq, payload)
	}
	return append(steps, x.toServer(packet)...)
}

// switchPlugin acts on a packet that names a plugin to go on with: an AuthSwitch or an AuthNextFactor.
func (x *Exchange) switchPlugin(packet []byte) []Step {
	c := wire.NewCursor(packet[wire.HeaderLen:])
	c.Skip(1)
	x.forget()
	x.plugin = string(c.NulBytes())
	x.nonce = append([]byte(nil), c.Bytes(min(c.Len(), nonceLen))...)
	if x.leaks(x.plugin) {
		return x.refuseClear()
	}
	x.secretDue = x.plugin == wire.PluginSHA256
	return x.toClient(packet)
}

// leaks reports whether a plugin has the client entrust a password to TLS that would go on in clear.
func (x *Exchange) leaks(plugin string) bool {
	switch plugin {
	case wire.PluginClear, wire.PluginDialog, wire.PluginOpenID:
		return x.client.tls && !x.server.tls && !x.server.local
	}
	return false
}

func (x *Exchange) refuseClear() []Step {
	return x.Refuse(fmt.Sprintf("%s would send the password in clear to the server: %s encrypts that connection", x.plugin, needTLS))
}
