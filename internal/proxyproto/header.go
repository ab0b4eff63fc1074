// Package proxyproto reads and writes headers of the PROXY protocol, versions 1 and 2: what a load balancer puts in
// front of a connection's bytes to tell whose it is.
package proxyproto

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"strconv"
	"strings"
)

// A Header tells the two ends of the connection that is passed on. Both are zero where the header says to take the
// socket's own: LOCAL, UNKNOWN, or a family other than IP.
type Header struct{ Source, Destination netip.AddrPort }

// signature begins a header of version 2; the text of version 1 has nothing in common with it.
const signature = "\r\n\r\n\x00\r\nQUIT\n"

const maxV1 = 107 // bytes, line end included

// Looks reports whether bytes that should be something else look like a header's beginning. Four will do.
func Looks(b []byte) bool {
	return len(b) >= 4 && (string(b[:4]) == "PROX" || string(b[:4]) == signature[:4])
}

// Read reads one header of either version and no byte more. A clean end before its first byte is io.EOF; all other
// errors name the malformation.
func Read(r io.Reader) (Header, error) {
	head := make([]byte, len(signature))
	if n, err := io.ReadFull(r, head); err != nil {
		if n == 0 {
			return Header{}, err
		}
		return Header{}, fmt.Errorf("PROXY header cut after %d bytes: %w", n, err)
	}
	switch {
	case string(head) == signature:
		return readV2(r)
	case strings.HasPrefix(string(head), "PROXY "):
		return readV1(r, head)
	}
	return Header{}, errors.New("no PROXY header at the connection's beginning")
}

// readV1 reads on to the end of the line, byte by byte: what comes behind it is not ours.
func readV1(r io.Reader, line []byte) (Header, error) {
	one := make([]byte, 1)
	for !strings.HasSuffix(string(line), "\r\n") {
		if len(line) == maxV1 {
			return Header{}, fmt.Errorf("PROXY header without a line end within %d bytes", maxV1)
		}
		if _, err := io.ReadFull(r, one); err != nil {
			return Header{}, fmt.Errorf("PROXY header cut after %d bytes: %w", len(line), err)
		}
		line = append(line, one[0])
	}
	return parseV1(string(line[:len(line)-2]))
}

func parseV1(line string) (Header, error) {
	fields := strings.Split(line, " ")
	if fields[1] == "UNKNOWN" {
		return Header{}, nil
	}
	if len(fields) != 6 || fields[1] != "TCP4" && fields[1] != "TCP6" {
		return Header{}, fmt.Errorf("PROXY header %q: want TCP4 or TCP6, two addresses and two ports", line)
	}
	source, err := parseEnd(fields[2], fields[4], fields[1] == "TCP4")
	if err != nil {
		return Header{}, fmt.Errorf("PROXY header %q: %w", line, err)
	}
	destination, err := parseEnd(fields[3], fields[5], fields[1] == "TCP4")
	if err != nil {
		return Header{}, fmt.Errorf("PROXY header %q: %w", line, err)
	}
	return Header{source, destination}, nil
}

func parseEnd(address, port string, v4 bool) (netip.AddrPort, error) {
	ip, err := netip.ParseAddr(address)
	if err != nil {
		return netip.AddrPort{}, err
	}
	if ip.Is4() != v4 || ip.Zone() != "" {
		return netip.AddrPort{}, fmt.Errorf("address %s is of another family", address)
	}
	n, err := strconv.ParseUint(port, 10, 16)
	if err != nil {
		return netip.AddrPort{}, fmt.Errorf("port %q: want a number up to 65535", port)
	}
	return netip.AddrPortFrom(ip.Unmap(), uint16(n)), nil
}

// Commands and families of version 2.
const (
	versionLocal = 0x20
	versionProxy = 0x21
	familyTCP4   = 0x11
	familyTCP6   = 0x21
)

func readV2(r io.Reader) (Header, error) {
	var fixed [4]byte // version and command, family, length
	if _, err := io.ReadFull(r, fixed[:]); err != nil {
		return Header{}, fmt.Errorf("PROXY header cut in its fixed part: %w", err)
	}
	body := make([]byte, binary.BigEndian.Uint16(fixed[2:]))
	if n, err := io.ReadFull(r, body); err != nil {
		return Header{}, fmt.Errorf("PROXY header cut after %d of %d bytes: %w", n, len(body), err)
	}
	switch {
	case fixed[0] == versionLocal:
		return Header{}, nil
	case fixed[0] != versionProxy:
		return Header{}, fmt.Errorf("PROXY header with version and command %02X: want 20 or 21", fixed[0])
	}
	switch fixed[1] {
	case familyTCP4:
		return parseV2(body, 4)
	case familyTCP6:
		return parseV2(body, 16)
	}
	return Header{}, nil
}

// parseV2 reads two addresses of that many bytes and two ports; what comes behind them are further facts, not ours.
func parseV2(body []byte, size int) (Header, error) {
	if len(body) < 2*size+4 {
		return Header{}, fmt.Errorf("PROXY header with %d bytes of addresses: want %d", len(body), 2*size+4)
	}
	source, _ := netip.AddrFromSlice(body[:size])
	destination, _ := netip.AddrFromSlice(body[size : 2*size])
	ports := body[2*size:]
	return Header{
		netip.AddrPortFrom(source.Unmap(), binary.BigEndian.Uint16(ports)),
		netip.AddrPortFrom(destination.Unmap(), binary.BigEndian.Uint16(ports[2:])),
	}, nil
}

// known reports whether both ends are.
func (h Header) known() bool { return h.Source.IsValid() && h.Destination.IsValid() }

// both4 reports whether both ends have IPv4 addresses; where only one has, it is written as an IPv6 one.
func (h Header) both4() bool {
	return h.Source.Addr().Unmap().Is4() && h.Destination.Addr().Unmap().Is4()
}

// AppendV1 appends the header in version 1, UNKNOWN where the ends are.
func (h Header) AppendV1(dst []byte) []byte {
	if !h.known() {
		return append(dst, "PROXY UNKNOWN\r\n"...)
	}
	family, source, destination := "TCP4", h.Source.Addr().Unmap(), h.Destination.Addr().Unmap()
	if !h.both4() {
		family, source, destination = "TCP6", netip.AddrFrom16(source.As16()), netip.AddrFrom16(destination.As16())
	}
	return fmt.Appendf(dst, "PROXY %s %s %s %d %d\r\n", family, source, destination, h.Source.Port(), h.Destination.Port())
}

// AppendV2 appends the header in version 2, LOCAL where the ends are unknown.
func (h Header) AppendV2(dst []byte) []byte {
	dst = append(dst, signature...)
	if !h.known() {
		return append(dst, versionLocal, 0, 0, 0)
	}
	source, destination := h.Source.Addr().Unmap(), h.Destination.Addr().Unmap()
	if h.both4() {
		dst = append(dst, versionProxy, familyTCP4, 0, 2*4+4)
		dst = append(append(dst, source.AsSlice()...), destination.AsSlice()...)
	} else {
		dst = append(dst, versionProxy, familyTCP6, 0, 2*16+4)
		from, to := source.As16(), destination.As16()
		dst = append(append(dst, from[:]...), to[:]...)
	}
	dst = binary.BigEndian.AppendUint16(dst, h.Source.Port())
	return binary.BigEndian.AppendUint16(dst, h.Destination.Port())
}
