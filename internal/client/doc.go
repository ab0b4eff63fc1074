// Package client speaks MySQL's protocol from the client's side, one command at a time, and measures it. Login and
// Command are state machines: bytes in, bytes to send out, no sockets and no clocks. Conn drives them over a net.Conn
// from one goroutine. Replies are skimmed to their last byte at full speed and never kept.
package client
