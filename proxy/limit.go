package proxy

import (
	"fmt"
	"net"
	"time"

	"redrive/internal/wire"
)

// spareDescriptors are left for what is no connection: listener, files, event loops, and clients being turned away.
const spareDescriptors = 100

// manyLoops is how many event loops, with two descriptors each, are among what is spared.
const manyLoops = 16

// maxLeaving bounds the clients that are turned away at a time and heard out.
const maxLeaving = 32

// maxConnections is how many connections there may be, each of which takes two descriptors.
func (p *Proxy) maxConnections() int {
	able := (descriptors() - spareDescriptors - 2*max(0, len(p.loops)-manyLoops)) / 2
	switch {
	case p.MaxConnections == 0:
		return able
	case p.MaxConnections > able:
		p.Logger.Warn("file descriptors do not allow for as many connections as wished for", "connections", able, "wished", p.MaxConnections)
		return able
	}
	return p.MaxConnections
}

func (p *Proxy) crowded(limit int) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.conns) >= limit
}

// turnAway tells a client that there are too many, as servers do: nobody knows its capabilities yet, hence no SQLSTATE.
func (p *Proxy) turnAway(client net.Conn, limit int) {
	p.mu.Lock()
	p.closed.Connections++
	p.closed.Limited++
	p.mu.Unlock()
	message := fmt.Sprintf("Too many connections: redrive proxy takes %d at a time", limit)
	if more, ok := p.crowd.allow(); ok {
		p.Logger.Warn("client turned away", "client", client.RemoteAddr(), "connections", limit, "more_of_late", more)
	}
	packet, _ := wire.AppendPacket(nil, 0, wire.AppendError(nil, &wire.Error{Errno: 1040, Message: message}))
	client.SetWriteDeadline(time.Now().Add(lastWords))
	client.Write(packet)
	select {
	case p.leaving <- struct{}{}:
		p.wg.Go(func() {
			hearOut(client)
			<-p.leaving
		})
	default: // a flood of them
		client.Close()
	}
}
