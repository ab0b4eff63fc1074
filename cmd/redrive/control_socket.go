package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"syscall"
	"time"

	"redrive/capture"
)

// A request steers a running proxy: one JSON object on a line, answered by one.
type request struct {
	Do  string `json:"do"`            // start, stop, rotate or status
	Out string `json:"out,omitempty"` // start, rotate: the file to record into
}

type response struct {
	Error       string          `json:"error,omitempty"`
	Recording   string          `json:"recording,omitempty"` // the file that is being recorded into now
	Closed      string          `json:"closed,omitempty"`    // the file that was closed
	Ledger      *capture.Ledger `json:"ledger,omitempty"`    // of the file closed, or else of the one recorded into
	MemoryUsed  uint64          `json:"memory_used"`         // bytes taken by statements on their way to the file
	MemoryLimit uint64          `json:"memory_limit"`
	Connections uint64          `json:"connections"` // open at the moment
}

// listenControl creates the control socket, which the owner alone may use.
func listenControl(ctx context.Context, path string) (net.Listener, error) {
	if err := removeStaleSocket("--control", path); err != nil {
		return nil, err
	}
	defer syscall.Umask(syscall.Umask(0o177)) // so that nobody else can connect even for a moment
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "unix", path)
	if err != nil {
		return nil, fmt.Errorf("--control %s: %w", path, err)
	}
	return listener, nil
}

// serve answers requests until ctx is done.
func (c *recordingControl) serve(ctx context.Context, listener net.Listener) {
	stop := context.AfterFunc(ctx, func() { listener.Close() })
	defer stop()
	for {
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		go c.serveOne(ctx, conn)
	}
}

func (c *recordingControl) serveOne(ctx context.Context, conn net.Conn) {
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(30 * time.Second)) // nobody may keep others waiting
	var r request
	answer := response{Error: "not a request"}
	if err := json.NewDecoder(conn).Decode(&r); err == nil {
		answer = c.answer(ctx, r)
	}
	_ = json.NewEncoder(conn).Encode(answer) // who asked may have gone
}

// steer sends a request to the proxy that listens on the control socket.
func steer(ctx context.Context, path string, r request) (response, error) {
	var d net.Dialer
	conn, err := d.DialContext(ctx, "unix", path)
	if err != nil {
		return response{}, fmt.Errorf("--control %s: %w; is the proxy running with --control?", path, err)
	}
	defer conn.Close()
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	defer stop()
	var answer response
	if err := json.NewEncoder(conn).Encode(r); err != nil {
		return answer, fmt.Errorf("--control %s: %w", path, err)
	}
	if err := json.NewDecoder(conn).Decode(&answer); err != nil {
		return answer, fmt.Errorf("--control %s: %w", path, err)
	}
	if answer.Error != "" {
		return answer, errors.New(answer.Error)
	}
	return answer, nil
}
