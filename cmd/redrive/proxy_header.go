package main

import (
	"context"
	"fmt"
	"net"
	"strings"

	"redrive/capture"
)

// proxyHeader says where a recording comes from.
func proxyHeader(ctx context.Context, o *proxyOptions, clock capture.Clock, listening net.Addr, network, address string) (capture.Header, error) {
	h := newHeader("proxy", clock)
	h.Backend = o.backend
	h.Resolved = resolve(ctx, network, address)
	h.Settings = map[string]string{"listen": listening.String(), "compression": o.compression, "withheld": withheld(o)}
	o.limits.settings(h.Settings)
	o.legs.settings(h.Settings)
	if !o.probe.wanted() {
		return h, nil
	}
	server, err := o.probe.probe(ctx, network, address)
	if err != nil {
		return h, fmt.Errorf("--probe-user: %w", err)
	}
	h.Server = &server
	return h, nil
}

// withheld names what is taken out of the server's offer.
func withheld(o *proxyOptions) string {
	var names []string
	if o.legs.mode() == "withhold" {
		names = append(names, "TLS")
	}
	if o.compression == "withhold" {
		names = append(names, "compression")
	}
	return strings.Join(names, ", ")
}
