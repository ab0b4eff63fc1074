// Package proxy relays MySQL connections and looks on. In come client connections; out go the same bytes to the
// backend, and statements to a capture. The relay comes first: bytes are passed on before they are looked at, nothing
// waits for the recording unless it was made to (capture.Block), and a connection that is not understood is still relayed.
//
// A login is carried over packet by packet (internal/login): either side may have TLS. Of the server's offer only TLS and
// compression are changed, to what can be kept; everything else passes as it is, and no password is known here. After
// the login a relay carries the connection: an event loop on Linux (loop, pair), else, and where there is TLS, two
// goroutines (portable).
package proxy
