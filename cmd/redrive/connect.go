package main

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/user"
	"strconv"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/spf13/pflag"

	"redrive/internal/client"
	"redrive/internal/identity"
)

const defaultPort = "3306"

// socketPaths are where servers listen when nobody says otherwise.
var socketPaths = []string{"/run/mysqld/mysqld.sock", "/var/run/mysqld/mysqld.sock", "/var/lib/mysql/mysql.sock", "/tmp/mysql.sock"}

// connectOptions are the mysql client's words for reaching a server and being somebody there, as flags of a command.
// The zero value is ready for one of the add methods.
type connectOptions struct {
	set    *pflag.FlagSet
	prefix string
}

// addFlags adds all of them to a command.
func (o *connectOptions) addFlags(set *pflag.FlagSet) {
	set.String("host", "", "server's host; localhost without --port means its Unix socket")
	set.Uint16("port", 0, "server's port (default "+defaultPort+")")
	set.String("socket", "", "server's Unix socket")
	set.String("password", "", "the account's password; MYSQL_PWD and option files are safer places")
	set.String("database", "", "schema of sessions that name none")
	o.addAccountFlags(set)
}

// addProbeFlags adds those that say who to be on a server known by other means, to ask it who it is. The password
// comes from MYSQL_PWD or an option file.
func (o *connectOptions) addProbeFlags(set *pflag.FlagSet) {
	o.prefix = "probe-"
	o.addAccountFlags(set)
}

func (o *connectOptions) addAccountFlags(set *pflag.FlagSet) {
	set.String(o.prefix+"user", "", "account (default: your own name)")
	o.addTLSFlags(set)
	set.String(o.prefix+"defaults-file", "", "option file whose [client] group to read instead of ~/.my.cnf")
	if o.prefix != "" {
		set.Lookup(o.prefix + "user").Usage = "account to ask the server who it is; password by MYSQL_PWD or option file"
	}
}

func (o *connectOptions) addTLSFlags(set *pflag.FlagSet) {
	o.set = set
	set.String(o.prefix+"ssl-mode", "", "disabled, preferred, required, verify-ca or verify-identity (default preferred)")
	set.String(o.prefix+"ssl-ca", "", "file of certificates to trust")
	set.String(o.prefix+"ssl-cert", "", "file of our certificate")
	set.String(o.prefix+"ssl-key", "", "file of its key")
}

// wanted reports whether the account was named on the command line.
func (o *connectOptions) wanted() bool { return o.given("user") != "" }

// probe asks the server at an address who it is.
func (o *connectOptions) probe(ctx context.Context, network, address string) (identity.Server, error) {
	c, err := o.config(io.Discard)
	if err != nil {
		return identity.Server{}, err
	}
	c.Network, c.Address, c.Schema = network, address, ""
	db, err := openDB(c)
	if err != nil {
		return identity.Server{}, err
	}
	defer db.Close()
	return identity.Probe(ctx, db)
}

// given is the value of a flag, "" if there is none.
func (o *connectOptions) given(name string) string {
	if flag := o.set.Lookup(o.prefix + name); flag != nil && flag.Changed {
		return flag.Value.String()
	}
	return ""
}

// config puts flags, environment and option file together, the first of them that has a word deciding. Warnings go to
// warn. Address stays empty for commands without a host flag.
func (o *connectOptions) config(warn io.Writer) (client.Config, error) {
	file, err := o.options(warn)
	if err != nil {
		return client.Config{}, err
	}
	c := client.Config{
		User:     cmp.Or(o.given("user"), file["user"], ownName()),
		Password: cmp.Or(o.given("password"), os.Getenv("MYSQL_PWD"), file["password"]),
		Schema:   cmp.Or(o.given("database"), file["database"]),
	}
	if o.set.Lookup(o.prefix+"host") != nil {
		if c.Network, c.Address, err = o.address(file); err != nil {
			return client.Config{}, err
		}
	}
	return c, o.encrypt(&c, file)
}

func (o *connectOptions) options(warn io.Writer) (map[string]string, error) {
	if name := o.given("defaults-file"); name != "" {
		return readOptionFile(name, warn)
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return nil, nil // nobody's home: no file
	}
	options, err := readOptionFile(home+"/.my.cnf", warn)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	return options, err
}

// address decides between TCP and a socket as the mysql client does, but that any port given asks for TCP: who names a
// port means the server there, and not another one behind the default socket.
func (o *connectOptions) address(file map[string]string) (network, address string, err error) {
	host := cmp.Or(o.given("host"), file["host"])
	remote := host != "" && host != "localhost"
	socket, port := o.given("socket"), o.given("port")
	if socket != "" && (port != "" || o.given("host") != "" && remote) {
		return "", "", usagef("--socket and --host or --port name two servers: give one")
	}
	switch {
	case socket != "":
		return "unix", socket, nil
	case remote || port != "":
		port = cmp.Or(port, file["port"], defaultPort)
	case file["socket"] != "":
		return "unix", file["socket"], nil
	case file["port"] != "":
		port = file["port"]
	default:
		socket, err := defaultSocket()
		return "unix", socket, err
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
		return "", "", usagef("port %q: want a number from 1 to 65535", port)
	}
	return "tcp", net.JoinHostPort(cmp.Or(host, "localhost"), port), nil
}

// defaultSocket is the first of the usual sockets that is there.
func defaultSocket() (string, error) {
	for _, path := range socketPaths {
		if info, err := os.Stat(path); err == nil && info.Mode()&os.ModeSocket != 0 {
			return path, nil
		}
	}
	return "", usagef("no server: localhost means a Unix socket, and there is none at %s or the other usual places; give --socket, or --host 127.0.0.1", socketPaths[0])
}

// encrypt fills in the TLS part. A certificate authority without a mode asks for verify-ca, as in the mysql client.
func (o *connectOptions) encrypt(c *client.Config, file map[string]string) error {
	word := func(name string) string { return cmp.Or(o.given(name), file[name]) }
	mode := word("ssl-mode")
	ca, cert, key := word("ssl-ca"), word("ssl-cert"), word("ssl-key")
	if mode == "" && ca != "" {
		mode = "verify-ca"
	}
	var err error
	if c.TLSMode, err = client.ParseTLSMode(cmp.Or(mode, "preferred")); err != nil {
		return usagef("--%sssl-mode: %w", o.prefix, err)
	}
	c.TLS = &tls.Config{}
	if ca != "" {
		pem, err := os.ReadFile(ca)
		if err != nil {
			return usagef("--%sssl-ca: %w", o.prefix, err)
		}
		c.TLS.RootCAs = x509.NewCertPool()
		if !c.TLS.RootCAs.AppendCertsFromPEM(pem) {
			return usagef("--%sssl-ca %s: no certificate in it", o.prefix, ca)
		}
	}
	if cert == "" && key == "" {
		return nil
	}
	pair, err := tls.LoadX509KeyPair(cert, key)
	if err != nil {
		return usagef("--%sssl-cert and --%sssl-key: %w", o.prefix, o.prefix, err)
	}
	c.TLS.Certificates = []tls.Certificate{pair}
	return nil
}

// ownName is the name of whoever runs us, which the mysql client takes for the account's.
func ownName() string {
	if u, err := user.Current(); err == nil {
		return u.Username
	}
	return os.Getenv("USER")
}

// openDB is a pool for administrative SQL on the server that c reaches. It connects when it is first used.
func openDB(c client.Config) (*sql.DB, error) {
	m := mysql.NewConfig()
	m.User, m.Passwd, m.Net, m.Addr, m.DBName = c.User, c.Password, c.Network, c.Address, c.Schema
	m.Timeout = cmp.Or(c.DialTimeout, 10*time.Second)
	m.Logger = silent{} // it would write to stderr what it also returns
	m.TLS = c.ClientTLS()
	m.AllowFallbackToPlaintext = c.TLSMode == client.TLSPreferred
	m.AllowCleartextPasswords = c.TLSMode >= client.TLSRequired
	connector, err := mysql.NewConnector(m)
	if err != nil {
		return nil, fmt.Errorf("connect to %s: %w", c.Address, err)
	}
	return sql.OpenDB(connector), nil
}

type silent struct{}

func (silent) Print(...any) {}
