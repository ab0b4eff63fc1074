// Package proxy relays MySQL connections and looks on. In come client connections; out go the same bytes to the
// backend, and statements to a capture. The relay comes first: bytes are passed on before they are looked at, nothing
// waits for the recording, and a connection that is not understood is still relayed.
//
// Two things are changed on the way: of the server's offer TLS and compression are withheld, unless the Proxy is told to
// let them pass or to end TLS itself. Everything else passes as it is.
package proxy
