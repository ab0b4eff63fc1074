// Package login carries a login between a client and a server whose connections need not be of the same kind: either may
// be encrypted, or be a Unix socket. In go packets of both sides, out come packets for either, and the word that TLS is
// to begin. It has no I/O and no clock, and knows no password beforehand; those that pass are forgotten at once.
//
// A login is relayed as it is as far as it can be. Changed are the capability bits that cannot be kept, sequence ids
// where one side has a packet more than the other, and the steps of caching_sha2_password and sha256_password that
// hand over the password itself: a client does that in clear over TLS, and encrypted otherwise, so where only one side
// has TLS the other way is taken here. What cannot be done is refused, with an error that says what would help.
package login
