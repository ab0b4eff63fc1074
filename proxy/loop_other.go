//go:build !linux

package proxy

// loops are the event loops of Linux; elsewhere there are none.
type loops []struct{}

func (p *Proxy) startLoops() error { return nil }

func (ls loops) reserve() int { return 0 }

func (ls loops) release(int) {}

func (ls loops) relay(c *conn) relay { return portable{c} }

func (ls loops) stop() {}
