package main

import (
	"os"
	"time"

	"redrive/capture"
)

// newHeader begins a capture's header with what every producer has to say.
func newHeader(producer string, clock capture.Clock) capture.Header {
	host, _ := os.Hostname() // an unknown host is no reason to refuse a capture
	zone, _ := time.Now().Zone()
	return capture.Header{
		Producer: producer, Product: "redrive " + version, Host: host,
		Start: clock.Start(), Zone: zone, Clock: "monotonic",
	}
}
