package mysqltest

import (
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
	c, err := MakeCertificate(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// MakeCertificate makes one with its files in a folder.
func MakeCertificate(dir string) (*Certificate, error) {
	c := &Certificate{
		CA: filepath.Join(dir, "ca.pem"), Cert: filepath.Join(dir, "cert.pem"), Key: filepath.Join(dir, "key.pem"),
		Roots: x509.NewCertPool(),
	}
	authority := template("test authority")
	authority.IsCA, authority.BasicConstraintsValid = true, true
	authorityKey, err := newKey(c.Key) // its file is overwritten below: nobody needs it
	if err != nil {
		return nil, err
	}
	if err := c.sign(c.CA, authority, authority, authorityKey, authorityKey); err != nil {
		return nil, err
	}
	c.Roots.AddCert(authority)
	key, err := newKey(c.Key)
	if err != nil {
		return nil, err
	}
	server := template("test server")
	server.DNSNames, server.IPAddresses = []string{"localhost"}, []net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback}
	if err := c.sign(c.Cert, server, authority, key, authorityKey); err != nil {
		return nil, err
	}
	c.TLS, err = tls.LoadX509KeyPair(c.Cert, c.Key)
	return c, err
}

// sign writes a certificate, and puts what was signed in the template's place.
func (c *Certificate) sign(file string, template, parent *x509.Certificate, key, parentKey *ecdsa.PrivateKey) error {
	der, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, parentKey)
	if err != nil {
		return err
	}
	signed, err := x509.ParseCertificate(der)
	if err != nil {
		return err
	}
	*template = *signed
	return writePEM(file, "CERTIFICATE", der)
}

// newKey makes a key and writes it to a file.
func newKey(file string) (*ecdsa.PrivateKey, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, err
	}
	return key, writePEM(file, "PRIVATE KEY", der)
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
