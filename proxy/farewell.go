package proxy

import (
	"time"

	"redrive/internal/login"
)

const (
	// farewellTime bounds how long a server is heard out after its client has gone.
	farewellTime = 3 * time.Second
	// closingTime is what it gets to close the connection once it has refused the login: who closes first keeps a port busy for
	// a minute, and ours are the scarcer ones.
	closingTime = 100 * time.Millisecond
)

// bidFarewell ends a login that is broken off at the server. Servers count handshakes that do not come to an end against
// the host they come from, which is ours for all clients: max_connect_errors of them in a row, and the host is blocked.
// A login that they refuse is not counted, so that is what they get.
func (l *loginShell) bidFarewell() {
	if l.noFarewell {
		return
	}
	steps := l.exchange.Abandon()
	if l.exchange.State() != login.Abandoned {
		return
	}
	closeWrite(l.client) // it need not wait for that
	l.server.SetDeadline(time.Now().Add(farewellTime))
	for {
		for _, s := range steps {
			if _, err := l.server.Write(s.Packet); err != nil {
				return
			}
		}
		if l.exchange.State() != login.Abandoned {
			break
		}
		packet, err := l.serverIn.packet()
		if err != nil {
			return
		}
		steps = l.exchange.FromServer(packet)
	}
	l.server.SetReadDeadline(time.Now().Add(closingTime))
	l.serverIn.drop()
	l.serverIn.await()
}
