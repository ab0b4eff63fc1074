package proxy_test

import (
	"errors"
	"os"
	"sync"
	"testing"

	"redrive/internal/mysqltest"
)

// A secureServer is a MariaDB with a certificate, that takes PROXY headers and large packets.
type secureServer struct {
	*mysqltest.Server
	certificate *mysqltest.Certificate
	dir         string
}

var secure struct {
	sync.Mutex
	*secureServer
	err error
}

// secured is the one that all tests share, started by the first that asks.
func secured(t *testing.T) *secureServer {
	t.Helper()
	secure.Lock()
	defer secure.Unlock()
	if secure.secureServer == nil && secure.err == nil {
		secure.secureServer, secure.err = launchSecure()
	}
	if secure.err != nil {
		t.Fatal(secure.err)
	}
	return secure.secureServer
}

func launchSecure() (*secureServer, error) {
	dir, err := os.MkdirTemp("", "redrive-certificate-")
	if err != nil {
		return nil, err
	}
	certificate, err := mysqltest.MakeCertificate(dir)
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	server, err := mysqltest.Launch(append(certificate.ServerOptions(), "--proxy-protocol-networks=127.0.0.0/8", "--max-allowed-packet=64M")...)
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	return &secureServer{server, certificate, dir}, nil
}

func stopSecure() {
	if secure.secureServer != nil {
		secure.Stop()
		os.RemoveAll(secure.dir)
	}
}
