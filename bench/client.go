package main

import (
	"fmt"
	"io"
	"net"
	"time"

	"redrive/internal/client"
	"redrive/internal/mysqltest"
	"redrive/internal/wire"
)

// patience bounds each of a session's steps: a bench must not hang for good.
const patience = 5 * time.Minute

// smallQuery is what a session does that is to do something.
const smallQuery = "SELECT 1"

// A session is a client that takes next to no processor time: it reads as much as there is and looks at little more
// than packet headers. It belongs to one goroutine.
type session struct {
	conn    net.Conn
	login   *client.Login
	command client.Command
	buf     []byte // what is read or written
}

// logIn opens a session at addr as the administrator. buf is the session's until it is closed.
func logIn(addr string, buf []byte) (*session, error) {
	conn, err := net.DialTimeout("tcp", addr, patience)
	if err != nil {
		return nil, err
	}
	s := &session{conn: conn, buf: buf, login: client.NewLogin(&client.Config{Address: addr, User: mysqltest.User, Password: mysqltest.Password})}
	if err := s.logIn(); err != nil {
		conn.Close()
		return nil, fmt.Errorf("log in at %s: %w", addr, err)
	}
	return s, nil
}

func (s *session) logIn() error {
	if err := s.conn.SetDeadline(time.Now().Add(patience)); err != nil {
		return err
	}
	for !s.login.Done() {
		n, err := s.conn.Read(s.buf)
		if err != nil {
			return err
		}
		answer, err := s.login.Feed(s.buf[:n])
		if err != nil {
			return err
		}
		if len(answer) == 0 {
			continue
		}
		if _, err := s.conn.Write(answer); err != nil {
			return err
		}
	}
	return nil
}

// query runs a statement and skims its result, which is valid until the next one.
func (s *session) query(text string) (*wire.Outcome, error) {
	if err := s.conn.SetDeadline(time.Now().Add(patience)); err != nil {
		return nil, err
	}
	s.command.Begin(wire.AppendQuery(nil, []byte(text), nil, s.login.Capabilities), s.login.Capabilities)
	if _, err := s.conn.Write(s.command.AppendNext(s.buf[:0])); err != nil {
		return nil, err
	}
	for !s.command.Done() {
		n, err := s.conn.Read(s.buf)
		if n > 0 {
			_, err = s.command.Feed(s.buf[:n])
		}
		if err == io.EOF {
			err = io.ErrUnexpectedEOF
		}
		if err != nil {
			return nil, err
		}
	}
	if refusal := s.command.Reply.Err(); refusal != nil {
		return nil, refusal
	}
	return &s.command.Reply.Outcome, nil
}

// quit says COM_QUIT and closes, as clients do.
func (s *session) quit() error {
	if _, err := s.conn.Write([]byte{1, 0, 0, 0, wire.ComQuit}); err != nil {
		s.conn.Close()
		return err
	}
	return s.conn.Close()
}
