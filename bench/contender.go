package main

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"redrive/internal/mysqltest"
)

// The ways to the server.
const (
	directPath    = "direct"
	haproxyPath   = "HAProxy, TCP mode"
	relayingPath  = "redrive proxy, relaying"
	recordingPath = "redrive proxy, recording"

	goroutinesPath = "redrive proxy, recording, by goroutines"
)

// A contender is a way to the server.
type contender struct {
	path    string
	addr    string
	process *mysqltest.Process // in the middle; nil when there is none
	said    *bytes.Buffer      // what it printed; complete once it has ended
}

// startContenders starts all of them. On an error it returns those that run.
func (b *bench) startContenders() ([]*contender, error) {
	starts := []func() (*contender, error){
		b.startHAProxy,
		func() (*contender, error) { return b.startProxy(relayingPath) },
		func() (*contender, error) { return b.startProxy(recordingPath, "--out", b.newFile()) },
	}
	if b.goroutines {
		starts = append(starts, func() (*contender, error) {
			return b.startProxy(goroutinesPath, "--out", b.newFile(), "--relay", "goroutines")
		})
	}
	contenders := []*contender{{path: directPath, addr: b.server.Addr}}
	for _, start := range starts {
		c, err := start()
		if err != nil {
			return contenders, err
		}
		contenders = append(contenders, c)
	}
	return contenders, nil
}

// newFile names a capture file.
func (b *bench) newFile() string {
	b.recordings++
	return filepath.Join(b.dir, fmt.Sprintf("%d.rdt", b.recordings))
}

// haproxyConfig is a plain TCP relay on as many threads as the proxy may use here.
const haproxyConfig = `global
    maxconn 4096
    nbthread 2
defaults
    mode tcp
    timeout connect 10s
    timeout client 1h
    timeout server 1h
listen mysql
    bind %s
    server database %s
`

func (b *bench) startHAProxy() (*contender, error) {
	tool, err := mysqltest.Tool("haproxy")
	if err != nil {
		return nil, err
	}
	config := filepath.Join(b.dir, "haproxy.cfg")
	return b.startMiddle(haproxyPath, func(addr string) (*exec.Cmd, error) {
		err := os.WriteFile(config, fmt.Appendf(nil, haproxyConfig, addr, b.server.Addr), 0o600)
		return exec.Command(tool, "-db", "-f", config), err
	})
}

func (b *bench) startProxy(path string, flags ...string) (*contender, error) {
	return b.startMiddle(path, func(addr string) (*exec.Cmd, error) {
		args := append([]string{"proxy", "--listen", addr, "--backend", b.server.Addr}, b.proxyFlags...)
		return exec.Command(b.redrive, append(args, flags...)...), nil
	})
}

// startMiddle starts what listens on addr, and waits until it does.
func (b *bench) startMiddle(path string, command func(addr string) (*exec.Cmd, error)) (*contender, error) {
	port, err := mysqltest.FreePort()
	if err != nil {
		return nil, err
	}
	c := &contender{path: path, addr: net.JoinHostPort("127.0.0.1", strconv.Itoa(port)), said: &bytes.Buffer{}}
	cmd, err := command(c.addr)
	if err != nil {
		return nil, err
	}
	cmd.Stdout, cmd.Stderr = c.said, c.said
	if c.process, err = mysqltest.Spawn(cmd); err != nil {
		return nil, err
	}
	for {
		if conn, err := net.Dial("tcp", c.addr); err == nil {
			return c, conn.Close()
		}
		select {
		case <-c.process.Done():
			return nil, fmt.Errorf("%s ended at its start: %v\n%s", path, c.process.Wait(), c.said)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// stop asks the contender to end, waits, and gives the last line it printed. A second stop does no harm.
func (c *contender) stop() (lastWords string, err error) {
	if c.process == nil {
		return "", nil
	}
	c.process.Signal(syscall.SIGTERM)
	err = c.process.Wait()
	if c.path == haproxyPath {
		return "", nil // it ends by the signal, as it should
	}
	if err != nil {
		return "", fmt.Errorf("%s: %w\n%s", c.path, err, c.said)
	}
	lines := strings.Split(strings.TrimSpace(c.said.String()), "\n")
	return lines[len(lines)-1], nil
}

// stopAll is for those that may still run after an error.
func stopAll(contenders []*contender) {
	for _, c := range contenders {
		c.stop()
	}
}
