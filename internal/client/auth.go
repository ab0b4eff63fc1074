package client

import (
	"errors"
	"fmt"

	"github.com/go-mysql-org/go-mysql/mysql"

	"redrive/internal/wire"
)

const (
	nonceLen        = 20
	ed25519NonceLen = 32
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
	case wire.PluginNative:
		return mysql.CalcPassword(a.nonce, []byte(a.password)), nil
	case wire.PluginCachingSHA2:
		return mysql.CalcCachingSha2Password(a.nonce, a.password), nil
	case wire.PluginSHA256:
		switch {
		case a.password == "":
			return []byte{0}, nil
		case a.private:
			return a.clear(), nil
		}
		return []byte{wire.RequestSHA256Key}, nil
	case wire.PluginEd25519:
		return mysql.CalcEd25519Password(a.nonce, a.password)
	case wire.PluginClear:
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
	case wire.PluginClear:
		return nil
	case wire.PluginEd25519:
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
	caching := a.plugin == wire.PluginCachingSHA2
	switch {
	case caching && len(data) == 1 && data[0] == wire.SHA2FastOK:
		return nil, nil
	case caching && len(data) == 1 && data[0] == wire.SHA2Full && a.private:
		return a.clear(), nil
	case caching && len(data) == 1 && data[0] == wire.SHA2Full:
		return []byte{wire.RequestSHA2Key}, nil
	case (caching || a.plugin == wire.PluginSHA256) && wire.IsPublicKey(data):
		return a.encrypt(data)
	}
	return nil, fmt.Errorf("%s: %d bytes from the server that were not understood", a.plugin, len(data))
}

func (a *authenticator) clear() []byte { return append([]byte(a.password), 0) }

func (a *authenticator) encrypt(key []byte) ([]byte, error) {
	sealed, err := wire.EncryptPassword(key, a.password, a.nonce)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", a.plugin, err)
	}
	return sealed, nil
}
