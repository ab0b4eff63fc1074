//go:build !linux

package proxy

// loops are the event loops of Linux; elsewhere there are none.
type loops []struct{}

func (p *Proxy) startLoops() error { return nil }

func (ls loops) relay(c *conn) relay { return portable{c} }

func (ls loops) stop() {}
