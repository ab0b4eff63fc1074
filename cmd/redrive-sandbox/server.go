package main

import (
	"context"
	"fmt"
	"net"
	"os"

	sqle "github.com/dolthub/go-mysql-server"
	"github.com/dolthub/go-mysql-server/memory"
	"github.com/dolthub/go-mysql-server/server"
	"github.com/dolthub/go-mysql-server/sql"
)

// serve takes connections until ctx ends. It calls ready with the address once it does.
func serve(ctx context.Context, listen, user, database string, ready func(*net.TCPAddr) error) error {
	l, err := listenLoopback(listen)
	if err != nil {
		return err
	}
	s, err := newServer(l, user, database)
	if err != nil {
		l.Close()
		return err
	}
	ended := make(chan error, 1)
	go func() { ended <- s.Start() }()
	if err := ready(l.Addr().(*net.TCPAddr)); err != nil {
		s.Close()
		return err
	}
	select {
	case <-ctx.Done():
		return s.Close()
	case err := <-ended:
		return err
	}
}

// listenLoopback refuses every other address, because the server asks for no password.
func listenLoopback(address string) (net.Listener, error) {
	l, err := net.Listen("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("--listen %s: %w", address, err)
	}
	if !l.Addr().(*net.TCPAddr).IP.IsLoopback() {
		l.Close()
		return nil, fmt.Errorf("--listen %s: want a loopback address such as 127.0.0.1:0: the sandbox asks for no password", address)
	}
	return l, nil
}

func newServer(l net.Listener, user, database string) (*server.Server, error) {
	// Without a password nobody may read this machine's files: no file lies below a device.
	if err := sql.SystemVariables.AssignValues(map[string]any{"secure_file_priv": os.DevNull + "/none"}); err != nil {
		return nil, err
	}
	db := memory.NewDatabase(database)
	db.BaseDatabase.EnablePrimaryKeyIndexes()
	databases := memory.NewDBProvider(db)
	engine := sqle.NewDefault(databases)

	accounts := engine.Analyzer.Catalog.MySQLDb
	editor := accounts.Editor()
	accounts.AddSuperUser(editor, user, "%", "")
	editor.Close()

	config := server.Config{Protocol: "tcp", Address: l.Addr().String(), Listener: l}
	return server.NewServer(config, engine, sql.NewContext, memory.NewSessionBuilder(databases), nil)
}
