package mysqltest

import (
	"fmt"
	"math/rand/v2"
	"net"
	"os/exec"
	"strconv"
)

// debianPackages tells where to get the programs that tests use.
var debianPackages = map[string]string{
	"mariadbd":           "mariadb-server",
	"mariadb-install-db": "mariadb-server",
	"mariadb":            "mariadb-client",
	"mariadb-dump":       "mariadb-client",
	"sysbench":           "sysbench",
	"haproxy":            "haproxy",
}

// Tool is the path of one of the programs that tests use. The error names the package that has it.
func Tool(name string) (string, error) {
	for _, candidate := range []string{name, "/usr/sbin/" + name} { // Debian keeps sbin from plain users' PATH
		if path, err := exec.LookPath(candidate); err == nil {
			return path, nil
		}
	}
	return "", fmt.Errorf("%s is not installed: as root, apt-get install %s (make test does it)", name, debianPackages[name])
}

// FreePort is a TCP port on 127.0.0.1 that nobody listens on at the moment. It lies below the range from which the
// kernel takes outgoing connections' ports, so that a busy machine does not snatch it.
func FreePort() (int, error) {
	var err error
	for range 100 {
		port := 20000 + rand.IntN(12000)
		var l net.Listener
		if l, err = net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port))); err == nil {
			return port, l.Close()
		}
	}
	return 0, fmt.Errorf("find a free port: %w", err)
}
