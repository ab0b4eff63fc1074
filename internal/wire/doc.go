// Package wire knows MySQL packets: it takes byte streams out of compressed frames and cuts them into packets, reads and
// appends the packets of the login and of commands, and follows one reply from its first byte to its last. It has no
// sockets and no clocks: bytes in, values out. internal/session (the proxy's follower) and internal/client (our own
// client) both stand on it.
//
// Layouts follow the MySQL and MariaDB protocol manuals. Whatever a peer's length field says is bounded by the bytes
// at hand before anything is allocated, and of a compressed frame by 16 MiB.
package wire
