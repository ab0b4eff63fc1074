package replay

import (
	"cmp"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"

	"redrive/capture"
)

// An endpoint is an address taken apart.
type endpoint struct {
	text string
	path string // a Unix socket's; else host and port
	host string
	ip   netip.Addr // host, if it is a number
	port string
}

func parseEndpoint(text string) endpoint {
	e := endpoint{text: text}
	host, port, err := net.SplitHostPort(text)
	if strings.Contains(text, "/") || err != nil {
		e.path = text
		return e
	}
	e.host, e.port = host, port
	if ip, err := netip.ParseAddr(host); err == nil {
		e.ip = ip.Unmap().WithZone("")
	}
	return e
}

// loopback reports whether the address means the machine it is used on: a socket, loopback, or every address.
func (e endpoint) loopback() bool {
	return e.path != "" || e.host == "" || e.host == "localhost" || e.ip.IsLoopback() || e.ip.IsUnspecified()
}

// sameAddress says why the target's address is one that the capture was taken at: the server's, or our own proxy's in
// front of it. It is "" if it is none. Where a doubt remains it is decided for the same.
func sameAddress(h *capture.Header, t *Target) string {
	var targets []endpoint
	for _, text := range append([]string{t.Address}, t.Resolved...) {
		targets = append(targets, parseEndpoint(text))
	}
	captured := append([]string{h.Backend}, h.Resolved...)
	for _, text := range append(captured, h.Settings["listen"]) {
		if text == "" {
			continue
		}
		c := parseEndpoint(text)
		for _, e := range targets {
			if t.matches(c, e, h.Host) {
				return fmt.Sprintf("its address %s is the captured one, %s", e.text, text)
			}
		}
	}
	return ""
}

// matches reports whether a captured address, as seen from the machine named captureHost, may be the target's.
func (t *Target) matches(captured, target endpoint, captureHost string) bool {
	if captured.text == target.text {
		return true
	}
	if captured.ip.IsValid() && captured.ip == target.ip && captured.port == target.port {
		return true
	}
	here := captureHost == "" || t.Host == "" || captureHost == t.Host
	if captured.loopback() && !here {
		return t.isMachine(captureHost, target) && (captured.port != "" && captured.port == t.Server.Port || t.samePlace(captured, target))
	}
	return t.isLocal(captured) && t.isLocal(target) && t.samePlace(captured, target)
}

// isMachine reports whether the target runs on the machine of this name, as far as its own word and address tell.
func (t *Target) isMachine(name string, target endpoint) bool {
	return name == t.Server.Hostname || name == target.host
}

// isLocal reports whether an address leads to this machine.
func (t *Target) isLocal(e endpoint) bool {
	return e.loopback() || e.host == t.Host || e.ip.IsValid() && slices.Contains(t.Local, e.ip)
}

// samePlace compares the ports or sockets of two addresses of one machine. Between a port and a socket the server's
// own word decides, and without it they are taken for the same.
func (t *Target) samePlace(captured, target endpoint) bool {
	switch {
	case captured.path != "" && target.path != "":
		return captured.path == target.path
	case captured.path != "":
		return t.Server.Socket == "" || captured.path == t.Server.Socket
	}
	port := cmp.Or(target.port, t.Server.Port)
	return port == "" || captured.port == port
}
