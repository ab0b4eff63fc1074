package wire

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// A Greeting is the server's first packet, protocol version 10.
type Greeting struct {
	ServerVersion string
	ConnectionID  uint32
	Nonce         []byte // 20 bytes, or 8 from servers without SecureConnection
	Capabilities  Capabilities
	Collation     byte
	Status        uint16
	Plugin        string
}

var errShort = errors.New("packet ends too early")

// ParseGreeting reads a greeting's payload. A payload that begins with FF is an ERR instead: see ParseError.
func ParseGreeting(payload []byte) (Greeting, error) {
	var g Greeting
	c := NewCursor(payload)
	if version := c.Byte(); version != 10 {
		return g, fmt.Errorf("greeting of protocol version %d, want 10", version)
	}
	g.ServerVersion = string(c.NulBytes())
	g.ConnectionID = c.Uint32()
	g.Nonce = append(g.Nonce, c.Bytes(8)...)
	c.Skip(1)
	g.Capabilities = Capabilities(c.Uint16())
	if !c.OK() {
		return g, fmt.Errorf("greeting: %w", errShort)
	}
	if c.Len() == 0 {
		return g, nil // servers of the last century stop here
	}
	g.Collation = c.Byte()
	g.Status = c.Uint16()
	g.Capabilities |= Capabilities(c.Uint16()) << 16
	nonceLen := int(c.Byte())
	c.Skip(6)
	extended := c.Uint32()
	if g.Capabilities&LongPassword == 0 {
		g.Capabilities |= Capabilities(extended) << 32
	}
	if g.Capabilities.Has(SecureConnection) {
		part := c.Bytes(min(max(13, nonceLen-8), c.Len()))
		g.Nonce = append(g.Nonce, part[:min(len(part), 12)]...) // the 13th byte is a 0 and not part of it
	}
	if g.Capabilities.Has(PluginAuth) {
		g.Plugin = string(c.NulBytes())
	}
	if !c.OK() {
		return g, fmt.Errorf("greeting: %w", errShort)
	}
	return g, nil
}

// ChangeGreetingCapabilities clears some of the low 32 capability bits of a greeting's payload in place, and sets others.
// It reports false when the payload is no greeting whose capability fields could be found.
func ChangeGreetingCapabilities(payload []byte, clear, set Capabilities) bool {
	c := NewCursor(payload)
	if c.Byte() != 10 {
		return false
	}
	c.NulBytes()
	c.Skip(4 + 8 + 1)
	low := c.Bytes(2)
	if !c.OK() {
		return false
	}
	change := func(field []byte, clear, set uint16) {
		binary.LittleEndian.PutUint16(field, binary.LittleEndian.Uint16(field)&^clear|set)
	}
	change(low, uint16(clear), uint16(set))
	c.Skip(1 + 2)
	if high := c.Bytes(2); c.OK() {
		change(high, uint16(clear>>16), uint16(set>>16))
	}
	return true
}

// An Attribute is a name and a value that a client tells about itself at login, such as program_name.
type Attribute struct{ Name, Value string }

// A HandshakeResponse is the client's answer to the greeting (HandshakeResponse41).
type HandshakeResponse struct {
	Capabilities Capabilities
	MaxPacket    uint32
	Collation    byte
	User         string
	AuthData     []byte // a secret: never to be stored
	Schema       string
	Plugin       string
	Attributes   []Attribute
}

// SSLRequestLen is the payload length of the packet that asks for TLS: the head of a HandshakeResponse.
const SSLRequestLen = 32

// ParseHandshakeResponse reads a client's answer to a greeting that offered the server's capabilities. What a client
// left out at the end is absent, as real clients truncate. It fails on the 3.2x layout, which lacks Protocol41.
func ParseHandshakeResponse(payload []byte, server Capabilities) (HandshakeResponse, error) {
	var h HandshakeResponse
	c := NewCursor(payload)
	h.Capabilities = Capabilities(c.Uint32())
	if !h.Capabilities.Has(Protocol41) {
		return h, errors.New("handshake response without protocol 4.1")
	}
	h.MaxPacket = c.Uint32()
	h.Collation = c.Byte()
	c.Skip(19)
	extended := c.Uint32()
	if !c.OK() {
		return h, fmt.Errorf("handshake response: %w", errShort)
	}
	if (h.Capabilities|server)&LongPassword == 0 {
		h.Capabilities |= Capabilities(extended) << 32
	}
	if c.Len() == 0 {
		return h, nil // an SSLRequest
	}
	h.User = string(c.NulBytes())
	switch {
	case h.Capabilities.Has(LenencAuthData):
		h.AuthData = c.LenencBytes()
	case h.Capabilities.Has(SecureConnection):
		h.AuthData = c.Bytes(int(c.Byte()))
	default:
		h.AuthData = c.NulBytes()
	}
	if h.Capabilities.Has(ConnectWithDB) {
		h.Schema = string(c.NulBytes())
	}
	if h.Capabilities.Has(PluginAuth) {
		h.Plugin = string(c.NulBytes())
	}
	if h.Capabilities.Has(ConnectAttrs) && c.OK() && c.Len() > 0 {
		h.Attributes = parseAttributes(c.LenencBytes())
	}
	return h, nil
}

func parseAttributes(block []byte) []Attribute {
	var attrs []Attribute
	c := NewCursor(block)
	for c.Len() > 0 {
		name, value := c.LenencBytes(), c.LenencBytes()
		if !c.OK() {
			return attrs
		}
		attrs = append(attrs, Attribute{string(name), string(value)})
	}
	return attrs
}

// AppendSSLRequest appends the payload that asks for TLS in front of the response.
func (h *HandshakeResponse) AppendSSLRequest(dst []byte) []byte {
	dst = binary.LittleEndian.AppendUint32(dst, uint32(h.Capabilities))
	dst = binary.LittleEndian.AppendUint32(dst, h.MaxPacket)
	dst = append(dst, h.Collation)
	dst = append(dst, make([]byte, 19)...)
	return binary.LittleEndian.AppendUint32(dst, uint32(h.Capabilities>>32))
}

// Append appends the response's payload in the layout its own capabilities announce.
func (h *HandshakeResponse) Append(dst []byte) []byte {
	dst = h.AppendSSLRequest(dst)
	dst = append(append(dst, h.User...), 0)
	switch {
	case h.Capabilities.Has(LenencAuthData):
		dst = AppendLenencBytes(dst, h.AuthData)
	case h.Capabilities.Has(SecureConnection):
		dst = append(append(dst, byte(len(h.AuthData))), h.AuthData...)
	default:
		dst = append(append(dst, h.AuthData...), 0)
	}
	if h.Capabilities.Has(ConnectWithDB) {
		dst = append(append(dst, h.Schema...), 0)
	}
	if h.Capabilities.Has(PluginAuth) {
		dst = append(append(dst, h.Plugin...), 0)
	}
	if h.Capabilities.Has(ConnectAttrs) {
		var block []byte
		for _, a := range h.Attributes {
			block = AppendLenencBytes(AppendLenencBytes(block, []byte(a.Name)), []byte(a.Value))
		}
		dst = AppendLenencBytes(dst, block)
	}
	return dst
}

// A ChangeUser is a COM_CHANGE_USER command's content as far as a follower may keep it.
type ChangeUser struct {
	User, Schema string
	Collation    uint16
}

// ParseChangeUser reads a COM_CHANGE_USER payload, command byte included.
func ParseChangeUser(payload []byte) ChangeUser {
	var u ChangeUser
	c := NewCursor(payload)
	c.Skip(1)
	u.User = string(c.NulBytes())
	c.Skip(int(c.Byte()))
	u.Schema = string(c.NulBytes())
	if c.OK() && c.Len() >= 2 {
		u.Collation = c.Uint16()
	}
	return u
}
