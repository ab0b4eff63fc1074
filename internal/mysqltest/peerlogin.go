package mysqltest

import (
	"cmp"
	"crypto/rand"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/binary"
	"encoding/pem"
	"math/big"
	"net"
	"runtime"
	"sync"
	"time"

	"github.com/go-mysql-org/go-mysql/mysql"
	"github.com/go-mysql-org/go-mysql/server"

	"redrive/internal/wire"
)

// peerNonce is what a peer that checks no password has it scrambled with.
const peerNonce = "abcdefghijklmnopqrst"

// okPacket is an OK of a session in autocommit.
var okPacket = []byte{0, 0, 0, 2, 0, 0, 0}

// Accept logs anybody in: it greets as a server of that version that offers exactly these capabilities, and says OK
// to the answer, which it returns.
func (c *PeerConn) Accept(version string, offer wire.Capabilities) wire.HandshakeResponse {
	c.Greet(version, offer)
	response, err := wire.ParseHandshakeResponse(c.ReadPacket(), offer)
	if err != nil {
		c.fail("%v", err)
	}
	c.SendPacket(okPacket)
	return response
}

// Greet sends a greeting of mysql_native_password, in the layout that its capabilities ask for.
func (c *PeerConn) Greet(version string, offer wire.Capabilities) {
	c.greetAs(version, offer, mysql.AUTH_NATIVE_PASSWORD)
}

func (c *PeerConn) greetAs(version string, offer wire.Capabilities, plugin string) {
	b := append([]byte{10}, version...)
	b = append(b, 0)
	b = binary.LittleEndian.AppendUint32(b, uint32(c.Number+1))
	b = append(b, peerNonce[:8]...)
	b = append(b, 0)
	b = binary.LittleEndian.AppendUint16(b, uint16(offer))
	b = append(b, 45, 2, 0) // utf8mb4_general_ci; autocommit
	b = binary.LittleEndian.AppendUint16(b, uint16(offer>>16))
	b = append(b, byte(len(peerNonce)+1), 0, 0, 0, 0, 0, 0)
	b = binary.LittleEndian.AppendUint32(b, uint32(offer>>32)) // MariaDB's
	b = append(append(b, peerNonce[8:]...), 0)
	if offer.Has(wire.PluginAuth) {
		b = append(append(b, plugin...), 0)
	}
	c.seq = 0
	c.SendPacket(b)
}

// An Account is what a peer asks of who logs in, and how.
type Account struct {
	User, Password string
	Plugin         string         // mysql_native_password if empty; caching_sha2_password, sha256_password
	Version        string         // of the server; 8.0.36 if empty
	Handler        server.Handler // for Serve, and told of the schema at login; may be nil
}

// Login checks the client's password with the account's plugin, TLS and the exchange of RSA keys included, as a real
// server does. A client that is refused ends the script; that is no failure of the test. Each Login knows nothing of
// those before: caching_sha2_password always goes its long way.
func (c *PeerConn) Login(a Account) *server.Conn {
	if a.Handler == nil {
		a.Handler = acceptSchema{}
	}
	identity := peerIdentity()
	s := server.NewServer(cmp.Or(a.Version, "8.0.36"), mysql.DEFAULT_COLLATION_ID,
		cmp.Or(a.Plugin, mysql.AUTH_NATIVE_PASSWORD), identity.publicKey, identity.tls)
	conn, err := s.NewCustomizedConn(c.Conn, credential{a.User, a.Password}, a.Handler)
	if err != nil {
		c.peer.t.Logf("scripted peer, connection %d: login: %v", c.Number, err)
		runtime.Goexit()
	}
	c.Conn = conn.Conn.Conn
	return conn
}

// A credential is one account. (With the provider that go-mysql brings caching_sha2_password would always take its short
// way.)
type credential struct{ user, password string }

func (c credential) CheckUsername(user string) (bool, error) { return user == c.user, nil }

func (c credential) GetCredential(user string) (string, bool, error) {
	return c.password, user == c.user, nil
}

// Serve logs the client in and has the account's handler answer its commands until it hangs up.
func (c *PeerConn) Serve(a Account) {
	conn := c.Login(a)
	for conn.HandleCommand() == nil && !conn.Closed() {
	}
}

// acceptSchema refuses every command, but lets a client log in to any schema.
type acceptSchema struct{ server.EmptyHandler }

func (acceptSchema) UseDB(string) error { return nil }

type identity struct {
	tls       *tls.Config
	publicKey []byte // PEM
}

// peerIdentity is the key and certificate that all peers of a process show.
var peerIdentity = sync.OnceValue(func() identity {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		panic(err) // the system has no randomness
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1),
		Subject:      pkix.Name{CommonName: "scripted peer"},
		NotBefore:    time.Now().Add(-time.Hour),
		NotAfter:     time.Now().Add(24 * time.Hour),
		IPAddresses:  []net.IP{net.IPv4(127, 0, 0, 1)},
		IsCA:         true, BasicConstraintsValid: true,
	}
	certificate, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		panic(err)
	}
	public, err := x509.MarshalPKIXPublicKey(&key.PublicKey)
	if err != nil {
		panic(err)
	}
	return identity{
		tls:       &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{certificate}, PrivateKey: key}}},
		publicKey: pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: public}),
	}
})
