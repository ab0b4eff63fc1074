package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"strings"
	"time"
)

// refuseItself refuses a backend that is the proxy's own listener: each connection would open the next.
func refuseItself(ctx context.Context, o *proxyOptions, listening net.Addr, network, address string) error {
	own, isTCP := listening.(*net.TCPAddr)
	if !isTCP {
		if network == "unix" && address == listening.String() {
			return usagef("--backend %s is the proxy's own --listen address", o.backend)
		}
		return nil
	}
	for _, resolved := range resolve(ctx, network, address) {
		addr, err := net.ResolveTCPAddr("tcp", resolved)
		if err != nil || network != "tcp" || addr.Port != own.Port {
			continue
		}
		if addr.IP.Equal(own.IP) || own.IP.IsUnspecified() && addr.IP.IsLoopback() {
			return usagef("--backend %s is the proxy's own --listen address", o.backend)
		}
	}
	return nil
}

// splitAddress tells a Unix socket's path from host:port. flag names it in messages.
func splitAddress(flag, address string) (network, addr string, err error) {
	if strings.HasPrefix(address, "/") || strings.HasPrefix(address, "./") {
		return "unix", address, nil
	}
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		return "", "", usagef("%s %s: want host:port, or the path of a Unix socket", flag, address)
	}
	if _, err := net.LookupPort("tcp", port); err != nil {
		return "", "", usagef("%s %s: %s is no port", flag, address, port)
	}
	return "tcp", address, nil
}

func listen(ctx context.Context, address string) (net.Listener, error) {
	network, addr, err := splitAddress("--listen", address)
	if err != nil {
		return nil, err
	}
	if network == "unix" {
		if err := removeStaleSocket("--listen", addr); err != nil {
			return nil, err
		}
	}
	var config net.ListenConfig
	listener, err := config.Listen(ctx, network, addr)
	if err != nil {
		return nil, fmt.Errorf("--listen %s: %w; is another program using it?", address, err)
	}
	return listener, nil
}

// removeStaleSocket removes a socket that nobody listens on any more.
func removeStaleSocket(flag, path string) error {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) || err == nil && info.Mode()&fs.ModeSocket == 0 {
		return nil // what stands there else is for Listen to complain of
	}
	if conn, err := net.Dial("unix", path); err == nil {
		conn.Close()
		return fmt.Errorf("%s %s: another program listens there", flag, path)
	}
	return os.Remove(path)
}

// resolve lists the addresses that a backend's name stands for at the moment; a name that cannot be resolved now may
// be later, so that is no error.
func resolve(ctx context.Context, network, address string) []string {
	if network == "unix" {
		return []string{address}
	}
	host, port, _ := net.SplitHostPort(address)
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	hosts, err := net.DefaultResolver.LookupHost(ctx, host)
	if err != nil {
		return nil
	}
	for i, h := range hosts {
		hosts[i] = net.JoinHostPort(h, port)
	}
	return hosts
}
