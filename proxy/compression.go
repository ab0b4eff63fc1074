package proxy

import "redrive/internal/wire"

// withheldCompression are the bits to take out of a server's offer so that a connection is not compressed.
func (p *Proxy) withheldCompression() wire.Capabilities {
	if p.FollowCompression {
		return 0
	}
	return wire.Compress | wire.Zstd
}
