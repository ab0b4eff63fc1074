package login

import (
	"crypto/rsa"
	"fmt"

	"redrive/internal/wire"
)

// A Wish says whether TLS is wanted towards the server.
type Wish byte

const (
	Never     Wish = iota // plain
	IfOffered             // TLS if the server offers it
	Always                // TLS, or no login
)

// Terms are what the two connections are, and may become.
type Terms struct {
	OfferTLS    bool              // to the client: there is a certificate for it
	PassThrough bool              // TLS is left to client and server; OfferTLS and ServerTLS do not apply
	ServerTLS   Wish              // towards the server
	ClientLocal bool              // the client came over a Unix socket
	ServerLocal bool              // the server is reached over one
	Withhold    wire.Capabilities // what the server offers and the client is not told of, TLS aside

	// Key is the one a client without TLS encrypts its password with, for a server that is reached over TLS.
	Key func() (*rsa.PrivateKey, error)
}

// An Action is something to do for a login to go on.
type Action byte

const (
	ToClient      Action = 1 + iota // send Packet to the client
	ToServer                        // send Packet to the server
	EncryptClient                   // TLS begins on the client's connection; its ClientHello is the next to come
	EncryptServer                   // TLS begins on the server's connection, with a ClientHello of ours
)

// A Step is one action.
type Step struct {
	Do     Action
	Packet []byte // header included; valid until the next packet is handed in
}

// State is how far a login has come.
type State byte

const (
	Greeting   State = iota // the server's greeting is due
	Response                // the client's answer to it
	Auth                    // rounds of a plugin
	Over                    // the server has said OK or ERR: all that follows is relayed as it is
	Unfollowed              // not understood, or encrypted end to end: relayed as it is
	Refused                 // by us: both connections are to be closed
	Abandoned               // the client is gone, the server has not refused it yet: see Abandon
	Dismissed               // now it has
)

// An Exchange is one login under way. Set Terms before the first packet. It is not safe for concurrent use.
type Exchange struct {
	Terms Terms

	state    State
	client   leg
	server   leg
	renumber bool // the sides have exchanged different numbers of packets
	answers  bool // the client has the word
	greeted  bool // the server's greeting is known
	answered bool // the server has been sent an answer to it
	rounds   int  // packets of the server's since the login was abandoned

	wished     wire.Capabilities // those that the wish for TLS to the server announced
	distrusted bool              // the server, behind TLS that has begun

	greeting  wire.Greeting
	withheld  wire.Capabilities // of the server's offer, TLS aside
	caps      wire.Capabilities // negotiated
	plugin    string            // in force
	nonce     []byte            // the plugin's
	secretDue bool              // the client's next packet hands over the password, one way or the other
	keyGiven  bool              // the client was given our key and encrypts with it
	response  []byte            // the client's, held back until its password is there
	password  []byte            // to be encrypted when the server's key is there
}

// A leg is one of the two connections.
type leg struct {
	seq   byte // of the latest packet, whoever sent it
	used  bool // there was one
	tls   bool // encrypted, or about to be
	local bool
}

func (l *leg) next() byte {
	if !l.used {
		return 0
	}
	return l.seq + 1
}

func (l *leg) note(packet []byte) { l.seq, l.used = packet[wire.HeaderLen-1], true }

// State is how far the login has come.
func (x *Exchange) State() State { return x.state }

// Going reports whether more packets are to be handed in.
func (x *Exchange) Going() bool { return x.state < Over }

// ClientTurn reports whether the client may speak. What it sends at other times belongs behind the login.
func (x *Exchange) ClientTurn() bool { return x.state == Response || x.state == Auth && x.answers }

// Interactive reports whether a person may have to answer, not the client by itself.
func (x *Exchange) Interactive() bool {
	if x.state != Auth {
		return false
	}
	switch x.plugin {
	case wire.PluginNative, wire.PluginCachingSHA2, wire.PluginSHA256, wire.PluginEd25519, wire.PluginClear:
		return false
	}
	return true
}

// FromServer takes a packet of the server's, header included, which it may change.
func (x *Exchange) FromServer(packet []byte) []Step {
	x.server.note(packet)
	switch x.state {
	case Greeting:
		return x.greet(packet)
	case Abandoned, Dismissed:
		return x.dismiss(packet[wire.HeaderLen:])
	}
	payload := packet[wire.HeaderLen:]
	x.answers = true
	if len(payload) == 0 {
		return x.toClient(packet)
	}
	switch payload[0] {
	case 0xFF:
		x.state = Over
		x.forget()
		return x.toClient(x.hint(packet))
	case 0x00:
		if _, accepted := wire.AcceptedLogin(payload, x.caps); accepted {
			x.state = Over
			x.forget()
		}
	case wire.AuthSwitch:
		return x.switchPlugin(packet)
	case wire.AuthNextFactor:
		if x.caps.Has(wire.MultiFactor) {
			return x.switchPlugin(packet)
		}
	case wire.AuthMoreData:
		return x.moreData(packet)
	}
	return x.toClient(packet)
}

// FromClient takes a packet of the client's, header included, which it may change.
func (x *Exchange) FromClient(packet []byte) []Step {
	if packet[wire.HeaderLen-1] != x.client.next() {
		return x.refuse(outOfOrder)
	}
	x.client.note(packet)
	if x.state == Response {
		return x.respond(packet)
	}
	if x.secretDue {
		return x.secret(packet[wire.HeaderLen:], packet)
	}
	if !fits(x.plugin, packet[wire.HeaderLen:]) {
		return x.own(ToServer, &x.server, wrongAnswer(x.plugin))
	}
	return x.toServer(packet)
}

// GiveUp ends the following of a login that is not understood. Where both sides see the same bytes it is relayed as it
// is; otherwise it cannot go on.
func (x *Exchange) GiveUp(reason string) []Step {
	if x.renumber || x.client.tls || x.server.tls || x.Terms.ServerTLS == Always && !x.Terms.PassThrough {
		return x.Refuse(reason)
	}
	x.state = Unfollowed
	return nil
}

// Refuse ends the login with an error for the client.
func (x *Exchange) Refuse(message string) []Step {
	return x.refuse(wire.Error{Errno: 1105, SQLState: "HY000", Message: message})
}

// Distrust refuses a login after EncryptServer, because it led to a server that is not to be trusted. What was to be done
// next must not be.
func (x *Exchange) Distrust(message string) []Step {
	x.answered, x.distrusted = false, true
	x.server.seq-- // of the answer that was not sent
	return x.Refuse(message)
}

// RefuseLong refuses a packet of the client's of which only the header was read, as it is longer than limit.
func (x *Exchange) RefuseLong(header []byte, limit int) []Step {
	if header[wire.HeaderLen-1] != x.client.next() { // rather no packet at all
		return x.refuse(outOfOrder)
	}
	x.client.note(header[:wire.HeaderLen])
	return x.refuse(wire.Error{
		Errno: 1153, SQLState: "08S01",
		Message: fmt.Sprintf("got a packet bigger than a login may have: --max-login-packet allows %d bytes", limit),
	})
}

// What servers say to clients that talk something else.
var (
	outOfOrder   = wire.Error{Errno: 1156, SQLState: "08S01", Message: "got packets out of order"}
	badHandshake = wire.Error{Errno: 1043, SQLState: "08S01", Message: "bad handshake"}
)

func (x *Exchange) refuse(e wire.Error) []Step {
	e.Message = "redrive proxy: " + e.Message
	if !x.client.used {
		e.SQLState = "" // in place of a greeting: the client's capabilities are not known yet
	}
	x.state = Refused
	x.forget()
	return x.own(ToClient, &x.client, wire.AppendError(nil, &e))
}

// forget drops what is secret.
func (x *Exchange) forget() {
	clear(x.password)
	clear(x.response)
	x.password, x.response = nil, nil
	x.secretDue, x.keyGiven = false, false
}

func (x *Exchange) toClient(packet []byte) []Step { return x.pass(ToClient, &x.client, packet) }
func (x *Exchange) toServer(packet []byte) []Step { return x.pass(ToServer, &x.server, packet) }

// pass sends a packet on, as it is unless the sides have come to count differently.
func (x *Exchange) pass(do Action, to *leg, packet []byte) []Step {
	if x.renumber {
		packet[wire.HeaderLen-1] = to.next()
	}
	return x.send(do, to, packet)
}

// own sends a packet of our own making, which the other side does not see.
func (x *Exchange) own(do Action, to *leg, payload []byte) []Step {
	packet, _ := wire.AppendPacket(nil, to.next(), payload)
	x.renumber = true
	return x.send(do, to, packet)
}

func (x *Exchange) send(do Action, to *leg, packet []byte) []Step {
	to.note(packet)
	if do == ToServer {
		x.answers = false
	}
	return []Step{{do, packet}}
}

// hint adds to the server's refusal what would have helped.
func (x *Exchange) hint(packet []byte) []byte {
	const insecureTransport = 3159
	if x.server.tls || x.Terms.PassThrough || wire.ParseError(packet[wire.HeaderLen:]).Errno != insecureTransport {
		return packet
	}
	payload := fmt.Appendf(packet[wire.HeaderLen:], " (redrive proxy: %s encrypts its connection to the server)", needTLS)
	changed, _ := wire.AppendPacket(nil, packet[wire.HeaderLen-1], payload)
	return changed
}
