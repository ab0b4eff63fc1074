package mysqltest

import (
	"database/sql"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
)

// The administrator's account, good over TCP and over the socket. The password is a word that occurs nowhere else,
// so that a test can look for it where it must not be.
const (
	User     = "root"
	Password = "Hush-4711-hush"
)

// startTimeout is how long an idle server may take to answer; a busy machine needs most of it.
const startTimeout = 60 * time.Second

// A Server is a private MariaDB server on 127.0.0.1. Its methods may be called concurrently.
type Server struct {
	Addr   string // host:port
	Port   int
	Socket string // path of its Unix socket

	dir     string
	process *Process
	db      *sql.DB

	mu         sync.Mutex
	statusRows uint64 // rows that Status has been sent
	schemas    int    // schemas that Schema has made
	logs       int    // logs that GeneralLog has begun
}

// Start starts a server that is stopped and removed at the test's end. options are mariadbd's, such as
// "--max-allowed-packet=1G"; they come after our own and win. It takes about two seconds: see Shared.
func Start(t testing.TB, options ...string) *Server {
	t.Helper()
	s, err := Launch(options...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Stop)
	return s
}

// Launch is Start for those who are not a test: the caller must call Stop.
func Launch(options ...string) (*Server, error) {
	dir, err := os.MkdirTemp("", "redrive-mysqltest-") // not the test's folder: a socket's path has 107 bytes at most
	if err != nil {
		return nil, err
	}
	port, err := FreePort()
	if err != nil {
		return nil, err
	}
	s := &Server{dir: dir, Port: port, Addr: net.JoinHostPort("127.0.0.1", strconv.Itoa(port)), Socket: filepath.Join(dir, "sock")}
	if err = s.install(); err == nil {
		err = s.start(options)
	}
	if err != nil {
		s.Stop()
		return nil, fmt.Errorf("private MariaDB: %w", err)
	}
	return s, nil
}

// Options that mariadb-install-db and mariadbd must agree on. A server that starts removes what it takes for temporary
// tables left behind by another: two must not share a folder for them.
func (s *Server) commonOptions() []string {
	options := []string{"--no-defaults", "--datadir=" + s.dataDir(), "--tmpdir=" + s.dir, "--innodb-log-file-size=32M"}
	if os.Geteuid() == 0 {
		options = append(options, "--user=root")
	}
	return options
}

func (s *Server) dataDir() string { return filepath.Join(s.dir, "data") }

func (s *Server) install() error {
	tool, err := Tool("mariadb-install-db")
	if err != nil {
		return err
	}
	cmd := exec.Command(tool, append(s.commonOptions(), "--auth-root-authentication-method=normal", "--skip-test-db")...)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("mariadb-install-db: %w\n%s", err, out)
	}
	return nil
}

// accounts runs at the server's start, one statement a line.
const accounts = `CREATE OR REPLACE USER ` + User + `@'%' IDENTIFIED BY '` + Password + `';
GRANT ALL ON *.* TO ` + User + `@'%' WITH GRANT OPTION;
ALTER USER ` + User + `@localhost IDENTIFIED BY '` + Password + `';
DROP USER IF EXISTS ` + User + `@'127.0.0.1', ` + User + `@'::1';
`

func (s *Server) start(options []string) error {
	tool, err := Tool("mariadbd")
	if err != nil {
		return err
	}
	initFile := filepath.Join(s.dir, "accounts.sql")
	if err := os.WriteFile(initFile, []byte(accounts), 0o600); err != nil {
		return err
	}
	cmd := exec.Command(tool, append(append(s.commonOptions(),
		"--init-file="+initFile,
		"--socket="+s.Socket,
		"--bind-address=127.0.0.1",
		"--port="+strconv.Itoa(s.Port),
		"--pid-file="+filepath.Join(s.dir, "pid"),
		"--skip-name-resolve",
		"--max-connections=4000",
		"--max-prepared-stmt-count=1048576",
		"--back-log=1024",
		"--innodb-buffer-pool-size=128M",
		"--innodb-flush-log-at-trx-commit=0", // nobody needs the data after a crash
		"--innodb-doublewrite=OFF",
	), options...)...)
	log, err := os.Create(s.errorLog())
	if err != nil {
		return err
	}
	defer log.Close()
	cmd.Stdout, cmd.Stderr = log, log
	if s.process, err = Spawn(cmd); err != nil {
		return err
	}
	config := s.config("")
	config.Logger = silent{} // a server that is starting refuses connections; that is no news
	connector, err := mysql.NewConnector(config)
	if err != nil {
		return err
	}
	s.db = sql.OpenDB(connector)
	return s.awaitReady()
}

func (s *Server) errorLog() string { return filepath.Join(s.dir, "error.log") }

func (s *Server) awaitReady() error {
	deadline := time.Now().Add(startTimeout)
	for {
		err := s.db.Ping()
		if err == nil {
			return nil
		}
		select {
		case <-s.process.Done():
			said, _ := os.ReadFile(s.errorLog())
			return fmt.Errorf("mariadbd ended at its start: %v\n%s", s.process.Wait(), said)
		case <-time.After(20 * time.Millisecond):
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("mariadbd does not answer after %v: %w", startTimeout, err)
		}
	}
}

// Stop kills the server, waits for its end and removes its files. A second Stop does nothing.
func (s *Server) Stop() {
	if s.db != nil {
		s.db.Close()
	}
	if s.process != nil {
		s.process.Kill()
	}
	os.RemoveAll(s.dir)
}

// Process is the server's process, for tests that freeze or kill it.
func (s *Server) Process() *Process { return s.process }

// DSN is go-sql-driver's name for the administrator's connection to schema, which may be empty.
func (s *Server) DSN(schema string) string { return s.config(schema).FormatDSN() }

func (s *Server) config(schema string) *mysql.Config {
	c := mysql.NewConfig()
	c.User, c.Passwd, c.Net, c.Addr, c.DBName = User, Password, "tcp", s.Addr, schema
	return c
}

// DB is the administrator's pool of connections, without a default schema. It closes with the server.
func (s *Server) DB() *sql.DB { return s.db }

type silent struct{}

func (silent) Print(...any) {}
