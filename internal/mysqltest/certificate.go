package mysqltest

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// A Certificate is one with its key, signed by an authority of its own, good for 127.0.0.1, ::1 and localhost, as files
// and for crypto/tls.
type Certificate struct {
	CA, Cert, Key string // PEM files
	TLS           tls.Certificate
	Roots         *x509.CertPool // the authority's
}

// NewCertificate makes one that lasts as long as the test.
func NewCertificate(t testing.TB) *Certificate {
	t.Helper()
	must := func(err error) {
		if err != nil {
			t.Helper()
			t.Fatal(err)
		}
	}
	authorityKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(err)
	authority := template("test authority")
	authority.IsCA, authority.BasicConstraintsValid = true, true
	root, err := x509.CreateCertificate(rand.Reader, authority, authority, &authorityKey.PublicKey, authorityKey)
	must(err)
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(err)
	server := template("test server")
	server.DNSNames, server.IPAddresses = []string{"localhost"}, []net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback}
	leaf, err := x509.CreateCertificate(rand.Reader, server, authority, &key.PublicKey, authorityKey)
	must(err)

	dir := t.TempDir()
	c := &Certificate{
		CA: filepath.Join(dir, "ca.pem"), Cert: filepath.Join(dir, "cert.pem"), Key: filepath.Join(dir, "key.pem"),
		TLS: tls.Certificate{Certificate: [][]byte{leaf}, PrivateKey: key}, Roots: x509.NewCertPool(),
	}
	must(writePEM(c.CA, "CERTIFICATE", root))
	must(writePEM(c.Cert, "CERTIFICATE", leaf))
	der, err := x509.MarshalPKCS8PrivateKey(crypto.PrivateKey(key))
	must(err)
	must(writePEM(c.Key, "PRIVATE KEY", der))
	parsed, err := x509.ParseCertificate(root)
	must(err)
	c.Roots.AddCert(parsed)
	return c
}

func template(name string) *x509.Certificate {
	return &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()),
		Subject:      pkix.Name{CommonName: name},
		NotBefore:    time.Now().Add(-time.Hour),
		NotAfter:     time.Now().Add(24 * time.Hour),
	}
}

func writePEM(name, kind string, der []byte) error {
	return os.WriteFile(name, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600)
}

// ServerOptions are what mariadbd is started with to show it.
func (c *Certificate) ServerOptions() []string {
	return []string{"--ssl-ca=" + c.CA, "--ssl-cert=" + c.Cert, "--ssl-key=" + c.Key}
}
