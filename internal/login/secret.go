package login

import (
	"crypto/rsa"
	"crypto/sha1"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"

	"redrive/internal/wire"
)

// nonceLen is the nonce's length in the plugins that use RSA.
const nonceLen = 20

// moreData acts on a packet that a plugin of the server's sends.
func (x *Exchange) moreData(packet []byte) []Step {
	data := packet[wire.HeaderLen+1:]
	if x.password != nil && wire.IsPublicKey(data) {
		return x.seal(data)
	}
	if x.plugin == wire.PluginCachingSHA2 && len(data) == 1 {
		x.secretDue = data[0] == wire.SHA2Full
		x.answers = data[0] != wire.SHA2FastOK // an OK follows
	}
	return x.toClient(packet)
}

// secret acts on what a client hands its password over with: the password in clear, the wish for a key to encrypt it
// with, or the password encrypted. It is sent on in the way that the server expects of its own connection. packet is
// the one it came in.
func (x *Exchange) secret(data, packet []byte) []Step {
	x.secretDue = false
	request := wire.RequestSHA2Key
	if x.plugin == wire.PluginSHA256 {
		request = wire.RequestSHA256Key
	}
	switch {
	case x.keyGiven:
		password, err := x.open(data)
		if err != nil {
			return x.Refuse(err.Error())
		}
		return x.deliver(password)
	case !x.client.tls && len(data) == 1 && data[0] == request:
		if !x.serverTakesClear() {
			return x.relay(packet)
		}
		return x.giveKey()
	case x.client.tls || x.client.local:
		if x.serverTakesClear() || isEmpty(data) {
			return x.relay(packet)
		}
		x.password = append([]byte(nil), trimNul(data)...)
		return x.deliver([]byte{request})
	case x.serverTakesClear() && !isEmpty(data):
		return x.Refuse(fmt.Sprintf("the client encrypts its password with a key that is not the proxy's: connect it by TLS (%s), or without a server's public key of its own", needCertificate))
	}
	return x.relay(packet)
}

// serverTakesClear reports whether the server expects the password itself.
func (x *Exchange) serverTakesClear() bool {
	return x.server.tls || x.server.local && x.plugin == wire.PluginCachingSHA2
}

func isEmpty(secret []byte) bool { return len(trimNul(secret)) == 0 }

func trimNul(b []byte) []byte {
	if n := len(b); n > 0 && b[n-1] == 0 {
		return b[:n-1]
	}
	return b
}

// relay sends the client's packet on as it is.
func (x *Exchange) relay(packet []byte) []Step {
	if x.response != nil {
		payload := x.response
		x.response = nil
		return x.sendResponse(payload, packet)
	}
	return x.toServer(packet)
}

// deliver sends the server what it expects in place of the client's packet.
func (x *Exchange) deliver(data []byte) []Step {
	if x.response == nil {
		return x.own(ToServer, &x.server, data)
	}
	payload, ok := wire.ReplaceAuthData(x.response, data)
	if !ok {
		return x.Refuse("the client's answer to the greeting has no room for its password")
	}
	x.response = nil
	return x.sendResponse(payload, nil)
}

// giveKey answers the client's wish for a key with ours.
func (x *Exchange) giveKey() []Step {
	key, err := x.Terms.Key()
	if err != nil {
		return x.Refuse(err.Error())
	}
	public, err := x509.MarshalPKIXPublicKey(&key.PublicKey)
	if err != nil {
		return x.Refuse(err.Error())
	}
	x.keyGiven, x.secretDue, x.answers = true, true, true
	text := pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: public})
	return x.own(ToClient, &x.client, append([]byte{wire.AuthMoreData}, text...))
}

// open decrypts a password that was encrypted with our key, and gives it with the NUL behind it.
func (x *Exchange) open(sealed []byte) ([]byte, error) {
	key, err := x.Terms.Key()
	if err != nil {
		return nil, err
	}
	plain, err := rsa.DecryptOAEP(sha1.New(), nil, key, sealed, nil)
	if err != nil || len(x.nonce) < nonceLen {
		return nil, errors.New("the client's password could not be decrypted")
	}
	for i := range plain {
		plain[i] ^= x.nonce[i%nonceLen]
	}
	x.keyGiven = false
	return plain, nil
}

// seal answers the server's public key with the password encrypted, which the client sent in clear over TLS.
func (x *Exchange) seal(key []byte) []Step {
	if len(x.nonce) < nonceLen {
		return x.Refuse("the server sent a nonce that is too short")
	}
	sealed, err := wire.EncryptPassword(key, string(x.password), x.nonce[:nonceLen])
	x.forget()
	if err != nil {
		return x.Refuse(x.plugin + ": " + err.Error())
	}
	return x.own(ToServer, &x.server, sealed)
}
