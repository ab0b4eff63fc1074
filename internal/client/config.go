package client

import (
	"crypto/tls"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"redrive/internal/wire"
)

// A Config says how to reach a server and who to be there. Formatting it with any verb leaves the password out.
type Config struct {
	Network string // "tcp" or "unix"; empty means tcp
	Address string // host:port, or a socket's path

	User, Password, Schema string
	Collation              byte              // 0 means utf8mb4_general_ci
	Capabilities           wire.Capabilities // asked for beyond what Login always asks for, such as wire.FoundRows
	Attributes             []wire.Attribute  // connection attributes

	TLSMode TLSMode
	TLS     *tls.Config // certificates; nil means the system's. Names and verification are set from TLSMode

	DialTimeout time.Duration        // for connecting and logging in together; 0 means 10s
	Now         func() time.Duration // clock of all times; nil means the time since Dial
}

// String names the account and the address.
func (c Config) String() string { return fmt.Sprintf("%s@%s", c.User, c.Address) }

// GoString is String, so that %#v does not show the password either.
func (c Config) GoString() string { return c.String() }

// Format writes String for every verb: by default, verbs for numbers would print the fields one by one.
func (c Config) Format(f fmt.State, _ rune) { fmt.Fprint(f, c.String()) }

// LogValue is String, for slog.
func (c Config) LogValue() slog.Value { return slog.StringValue(c.String()) }

// MarshalText is String, for JSON and the like.
func (c Config) MarshalText() ([]byte, error) { return []byte(c.String()), nil }

// A TLSMode says whether to encrypt and what to verify, in the mysql client's words.
type TLSMode byte

const (
	TLSDisabled       TLSMode = iota // plain
	TLSPreferred                     // TLS over TCP if the server offers it, nothing verified
	TLSRequired                      // TLS or nothing, nothing verified
	TLSVerifyCA                      // the certificate must come from a known authority
	TLSVerifyIdentity                // and carry the host's name
)

var tlsModes = []string{"disabled", "preferred", "required", "verify-ca", "verify-identity"}

// ParseTLSMode reads a mode in either spelling: verify-ca or VERIFY_CA.
func ParseTLSMode(s string) (TLSMode, error) {
	plain := strings.ReplaceAll(strings.ToLower(s), "_", "-")
	for i, name := range tlsModes {
		if plain == name {
			return TLSMode(i), nil
		}
	}
	return 0, fmt.Errorf("TLS mode %q: want one of %s", s, strings.Join(tlsModes, ", "))
}

// String is the mode's name.
func (m TLSMode) String() string {
	if int(m) < len(tlsModes) {
		return tlsModes[m]
	}
	return fmt.Sprintf("TLSMode(%d)", byte(m))
}
