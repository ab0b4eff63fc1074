package proxy

import (
	"fmt"
	"io"
	"net"
	"net/netip"
	"time"

	"redrive/capture"
	"redrive/internal/proxyproto"
)

// findOrigin learns whose connection this is: from the PROXY header where one must come, else from the socket.
func (c *conn) findOrigin() error {
	c.origin = c.client.RemoteAddr().String()
	c.ends = proxyproto.Header{Source: addrPort(c.client.RemoteAddr()), Destination: addrPort(c.client.LocalAddr())}
	if !c.proxy.wantsHeader(c.ends.Source.Addr()) {
		return nil
	}
	c.client.SetReadDeadline(time.Now().Add(c.proxy.headerTimeout()))
	header, err := proxyproto.Read(c.client)
	if err != nil {
		return err
	}
	if header.Source.IsValid() {
		c.ends, c.origin = header, header.Source.String()
	}
	return c.client.SetReadDeadline(time.Time{})
}

// addrPort is the zero value for what has no IP address.
func addrPort(addr net.Addr) netip.AddrPort {
	if tcp, ok := addr.(*net.TCPAddr); ok {
		ends := tcp.AddrPort()
		return netip.AddrPortFrom(ends.Addr().Unmap().WithZone(""), ends.Port())
	}
	return netip.AddrPort{}
}

func (p *Proxy) wantsHeader(from netip.Addr) bool {
	for _, network := range p.ProxyProtocolFrom {
		if network.Contains(from) {
			return true
		}
	}
	return false
}

func (p *Proxy) headerTimeout() time.Duration {
	if p.HeaderTimeout == 0 {
		return 5 * time.Second
	}
	return p.HeaderTimeout
}

// reject ends a connection without a PROXY header that makes sense. Who comes and goes without a word checks our health.
func (c *conn) reject(cause error) {
	reason := capture.EndClient
	if cause != io.EOF {
		reason = capture.EndRejected
		c.warn(&c.proxy.logins.headless, "connection rejected: "+cause.Error(), "from", c.origin)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if reason == capture.EndRejected {
		c.totals.Rejected++
	}
	c.record(&capture.SessionEnd{Reason: reason, Detail: fmt.Sprintf("PROXY header: %v", cause)})
}

// proxyHeader is what the backend is told of the client.
func (c *conn) proxyHeader() []byte {
	if c.proxy.BackendProxyProtocol == 1 {
		return c.ends.AppendV1(nil)
	}
	return c.ends.AppendV2(nil)
}
