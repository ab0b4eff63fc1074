package wire

import (
	"bytes"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"

	"github.com/go-mysql-org/go-mysql/mysql"
)

// Authentication plugins, by the client's names for them.
const (
	PluginNative      = mysql.AUTH_NATIVE_PASSWORD
	PluginCachingSHA2 = mysql.AUTH_CACHING_SHA2_PASSWORD
	PluginSHA256      = mysql.AUTH_SHA256_PASSWORD
	PluginEd25519     = mysql.AUTH_MARIADB_ED25519
	PluginClear       = mysql.AUTH_CLEAR_PASSWORD // the password itself: PAM, LDAP, cloud tokens
	PluginDialog      = "dialog"                  // MariaDB's PAM: answers to questions, passwords among them
	PluginOpenID      = "authentication_openid_connect_client"
)

// First bytes of the server's packets during authentication.
const (
	AuthMoreData   byte = 1
	AuthNextFactor byte = 2 // only if MultiFactor was negotiated
	AuthSwitch     byte = 0xFE
)

// What follows AuthMoreData in caching_sha2_password, and what a client sends to be given a public key.
const (
	SHA2FastOK       byte = 3
	SHA2Full         byte = 4
	RequestSHA2Key   byte = 2
	RequestSHA256Key byte = 1
)

// IsSSLRequest reports whether the payload of a client's first packet asks for TLS to begin.
func IsSSLRequest(payload []byte) bool {
	c := NewCursor(payload)
	return len(payload) == SSLRequestLen && Capabilities(c.Uint32()).Has(SSL|Protocol41)
}

// ReplaceAuthData is the payload of a HandshakeResponse with other authentication data. It reports false when the
// payload has no place for that.
func ReplaceAuthData(payload, data []byte) ([]byte, bool) {
	c := NewCursor(payload)
	caps := Capabilities(c.Uint32())
	c.Skip(SSLRequestLen - 4)
	c.NulBytes()
	head := payload[:len(payload)-c.Len()]
	changed := append([]byte(nil), head...)
	switch {
	case caps.Has(LenencAuthData):
		c.LenencBytes()
		changed = AppendLenencBytes(changed, data)
	case caps.Has(SecureConnection):
		c.Bytes(int(c.Byte()))
		if len(data) > 255 {
			return nil, false
		}
		changed = append(append(changed, byte(len(data))), data...)
	default:
		c.NulBytes()
		if bytes.IndexByte(data, 0) >= 0 {
			return nil, false
		}
		changed = append(append(changed, data...), 0)
	}
	if !c.OK() {
		return nil, false
	}
	return append(changed, c.Rest()...), true
}

// AcceptedLogin reads the OK that ends a login. Plugin data may begin with 00 as well: what has not the shape of an
// OK is that.
func AcceptedLogin(payload []byte, caps Capabilities) (OK, bool) {
	if len(payload) < 7 || payload[0] != 0 {
		return OK{}, false
	}
	ok, err := ParseOK(payload, caps)
	return ok, err == nil && ok.Affected == 0
}

// EncryptPassword encrypts a password for the owner of a public key (PEM), the way sha256_password and
// caching_sha2_password do without TLS. nonce is the server's, 20 bytes.
func EncryptPassword(key []byte, password string, nonce []byte) ([]byte, error) {
	block, _ := pem.Decode(key)
	if block == nil {
		return nil, errors.New("the server's public key is not PEM")
	}
	parsed, err := x509.ParsePKIXPublicKey(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("the server's public key: %w", err)
	}
	public, ok := parsed.(*rsa.PublicKey)
	if !ok {
		return nil, fmt.Errorf("the server's public key is a %T, want RSA", parsed)
	}
	return mysql.EncryptPassword(password, nonce, public)
}

// IsPublicKey reports whether AuthMoreData's content is a public key.
func IsPublicKey(data []byte) bool { return bytes.HasPrefix(data, []byte("-----BEGIN")) }
