package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"sync"
	"syscall"
	"time"

	"redrive/capture"
	"redrive/proxy"
)

// A request steers a running proxy: one JSON object on a line, answered by one.
type request struct {
	Do  string `json:"do"`            // start, stop, rotate or status
	Out string `json:"out,omitempty"` // start, rotate: the file to record into
}

type response struct {
	Error     string          `json:"error,omitempty"`
	Recording string          `json:"recording,omitempty"` // the file that is being recorded into now
	Closed    string          `json:"closed,omitempty"`    // the file that was closed
	Ledger    *capture.Ledger `json:"ledger,omitempty"`    // of the file closed, or else of the one recorded into
}

// A recordingControl starts, stops and rotates the recording of a proxy. It is safe for concurrent use.
type recordingControl struct {
	proxy   *proxy.Proxy
	header  func(ctx context.Context) (capture.Header, error)
	streams streams

	mu       sync.Mutex
	name     string // of the file; empty when nothing is recorded
	file     *output
	recorder *capture.Recorder
}

// recorderBudget bounds the records on their way to the file. A statement of --max-statement must find room.
const recorderBudget = 192 << 20

// open makes a recorder that writes to a new file. A server that cannot be asked who it is is an error only when the
// proxy starts: later the recording matters more.
func (c *recordingControl) open(ctx context.Context, name string, starting bool) (*capture.Recorder, *output, error) {
	header, err := c.header(ctx)
	switch {
	case err != nil && starting:
		return nil, nil, err
	case err != nil:
		c.proxy.Logger.Warn("the server was not asked who it is; the recording goes on without", "error", err)
	}
	file, err := createOutput(name, c.streams.out)
	if err != nil {
		return nil, nil, err
	}
	return capture.NewRecorder(file, header, capture.RecorderOptions{
		Memory: capture.NewMemory(recorderBudget), Sync: file.Sync,
		Failed: func(err error) {
			c.proxy.Logger.Error("the recording has failed; relaying goes on", "file", name, "error", err)
		},
	}), file, nil
}

// begin opens the recording that the proxy starts with.
func (c *recordingControl) begin(ctx context.Context, name string) error {
	recorder, file, err := c.open(ctx, name, true)
	if err != nil {
		return err
	}
	c.name, c.file, c.recorder = name, file, recorder
	c.proxy.Record(recorder)
	return nil
}

// change goes over to a recording in the file named out, or to none where that is empty, and closes the one before.
func (c *recordingControl) change(ctx context.Context, out string) (closed string, ledger *capture.Ledger, err error) {
	var recorder *capture.Recorder
	var file *output
	if out != "" {
		if recorder, file, err = c.open(ctx, out, false); err != nil {
			return "", nil, err
		}
	}
	before, unfinished := c.proxy.Record(recorder)
	closed, closedFile := c.name, c.file
	c.name, c.file, c.recorder = out, file, recorder
	if before == nil {
		return "", nil, nil
	}
	l, err := closeRecording(before, unfinished, closed, closedFile, c.streams)
	return closed, &l, err
}

// end closes the recording when the proxy has ended.
func (c *recordingControl) end() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.recorder == nil {
		return nil
	}
	_, err := closeRecording(c.recorder, 0, c.name, c.file, c.streams)
	c.recorder = nil
	return err
}

func (c *recordingControl) answer(ctx context.Context, r request) response {
	c.mu.Lock()
	defer c.mu.Unlock()
	var answer response
	var err error
	switch {
	case r.Do == "status":
	case r.Do == "stop" && c.name == "":
		err = errors.New("nothing is being recorded")
	case r.Do == "start" && c.name != "":
		err = fmt.Errorf("%s is being recorded already; stop it first, or rotate", c.name)
	case r.Do == "rotate" && c.name == "":
		err = errors.New("nothing is being recorded; start a recording first")
	case r.Do == "start" || r.Do == "rotate" || r.Do == "stop":
		answer.Closed, answer.Ledger, err = c.change(ctx, r.Out)
	default:
		err = fmt.Errorf("no such request: %q", r.Do)
	}
	answer.Recording = c.name
	if answer.Ledger == nil && c.recorder != nil {
		l := c.recorder.Ledger()
		answer.Ledger = &l
	}
	if err != nil {
		answer.Error = err.Error()
	}
	return answer
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
