package client

import (
	"bytes"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"

	"github.com/go-mysql-org/go-mysql/mysql"
)

// Authentication plugins that go-mysql does not name.
const (
	pluginClear   = "mysql_clear_password"
	pluginEd25519 = "client_ed25519"
)

const (
	nonceLen        = 20
	ed25519NonceLen = 32
)

// Second bytes of caching_sha2_password's AuthMoreData packets, and the requests for a public key.
const (
	sha2FastOK             = 3
	sha2Full               = 4
	requestCachingKey      = 2
	requestSHA256Key       = 1
	authMoreData      byte = 1
)

// An authenticator answers one plugin's questions.
type authenticator struct {
	plugin   string
	password string
	nonce    []byte
	tls      bool // the channel is encrypted
	private  bool // the channel is encrypted or local: a password may pass
}

// begin is the plugin's first answer.
func (a *authenticator) begin() ([]byte, error) {
	if err := a.checkNonce(); err != nil {
		return nil, err
	}
	switch a.plugin {
	case mysql.AUTH_NATIVE_PASSWORD:
		return mysql.CalcPassword(a.nonce, []byte(a.password)), nil
	case mysql.AUTH_CACHING_SHA2_PASSWORD:
		return mysql.CalcCachingSha2Password(a.nonce, a.password), nil
	case mysql.AUTH_SHA256_PASSWORD:
		switch {
		case a.password == "":
			return []byte{0}, nil
		case a.private:
			return a.clear(), nil
		}
		return []byte{requestSHA256Key}, nil
	case pluginEd25519:
		return mysql.CalcEd25519Password(a.nonce, a.password)
	case pluginClear:
		if !a.tls {
			return nil, errors.New("the server asks for the password in clear (mysql_clear_password): only done over TLS")
		}
		return a.clear(), nil
	}
	return nil, fmt.Errorf("the server asks for authentication by %q, which is not supported", a.plugin)
}

// checkNonce cuts the nonce to the plugin's length: servers put a 0 behind it.
func (a *authenticator) checkNonce() error {
	want := nonceLen
	switch a.plugin {
	case pluginClear:
		return nil
	case pluginEd25519:
		want = ed25519NonceLen
	}
	if len(a.nonce) < want {
		return fmt.Errorf("%s: %d bytes of nonce from the server, want %d", a.plugin, len(a.nonce), want)
	}
	a.nonce = a.nonce[:want]
	return nil
}

// more answers an AuthMoreData packet's content; a nil answer means that there is nothing to send.
func (a *authenticator) more(data []byte) ([]byte, error) {
	caching := a.plugin == mysql.AUTH_CACHING_SHA2_PASSWORD
	switch {
	case caching && len(data) == 1 && data[0] == sha2FastOK:
		return nil, nil
	case caching && len(data) == 1 && data[0] == sha2Full && a.private:
		return a.clear(), nil
	case caching && len(data) == 1 && data[0] == sha2Full:
		return []byte{requestCachingKey}, nil
	case (caching || a.plugin == mysql.AUTH_SHA256_PASSWORD) && bytes.HasPrefix(data, []byte("-----BEGIN")):
		return a.encrypt(data)
	}
	return nil, fmt.Errorf("%s: %d bytes from the server that were not understood", a.plugin, len(data))
}

func (a *authenticator) clear() []byte { return append([]byte(a.password), 0) }

func (a *authenticator) encrypt(key []byte) ([]byte, error) {
	block, _ := pem.Decode(key)
	if block == nil {
		return nil, fmt.Errorf("%s: the server's public key is not PEM", a.plugin)
	}
	parsed, err := x509.ParsePKIXPublicKey(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("%s: the server's public key: %w", a.plugin, err)
	}
	public, ok := parsed.(*rsa.PublicKey)
	if !ok {
		return nil, fmt.Errorf("%s: the server's public key is a %T, want RSA", a.plugin, parsed)
	}
	return mysql.EncryptPassword(a.password, a.nonce, public)
}
