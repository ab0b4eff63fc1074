package main

import (
	"fmt"

	"redrive/proxy"
)

// printTotals says what passed, and what limits kept out.
func printTotals(p *proxy.Proxy, s streams) {
	t := p.Totals()
	fmt.Fprintf(s.err, "relayed %d connections (%d without a backend, %d logins refused, %d not followed to the end), "+
		"%d commands, of them %d statements, %d errors; %d bytes from clients, %d to them\n",
		t.Connections, t.Refused, t.Rejected, t.Opaque, t.Commands, t.Statements, t.Errors, t.BytesIn, t.BytesOut)
	fmt.Fprintf(s.err, "limits: %d connections refused by --max-connections, %d logins ended by --login-timeout, "+
		"%d commands too long to be kept whole\n", t.Limited, t.TimedOut, t.Truncated)
}
