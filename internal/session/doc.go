// Package session follows one MySQL connection from its greeting to its end: bytes of both directions go in, in the
// order they were read, statements with their outcomes come out. It does no I/O and reads no clock, so that a proxy,
// an event loop and a packet capture can share it. It never changes or delays a byte: it looks on. When it loses track
// it says so once and looks away; the bytes flow on.
package session
