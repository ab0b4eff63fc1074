// Command redrive-sandbox is a MySQL-compatible server in memory, to try redrive on: no installation, no data left
// behind. It is slow and simple: figures taken on it say nothing about any real server.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"syscall"

	"github.com/sirupsen/logrus"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second Ctrl-C kills
	logrus.SetLevel(logrus.WarnLevel)
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

// run serves until ctx ends and returns the exit status.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	flags := flag.NewFlagSet("redrive-sandbox", flag.ContinueOnError)
	flags.SetOutput(stderr)
	var (
		listen   = flags.String("listen", "127.0.0.1:0", "loopback `address` to listen on; port 0 takes a free one")
		user     = flags.String("user", "sbtest", "account, without a password")
		database = flags.String("database", "sbtest", "schema to begin with")
		portFile = flags.String("port-file", "", "`file` to write the port to once connections are taken")
	)
	if err := flags.Parse(args); errors.Is(err, flag.ErrHelp) {
		return 0
	} else if err != nil {
		return 2
	}
	if flags.NArg() > 0 {
		fmt.Fprintf(stderr, "redrive-sandbox: unexpected argument %q\n", flags.Arg(0))
		return 2
	}
	err := serve(ctx, *listen, *user, *database, func(address *net.TCPAddr) error {
		fmt.Fprintln(stdout, address)
		if *portFile == "" {
			return nil
		}
		return writeWhole(*portFile, fmt.Sprintln(address.Port))
	})
	if err != nil {
		fmt.Fprintf(stderr, "redrive-sandbox: %v\n", err)
		return 1
	}
	return 0
}

// writeWhole writes a file that nobody can see half written.
func writeWhole(name, content string) error {
	if err := os.WriteFile(name+".new", []byte(content), 0o600); err != nil {
		return err
	}
	return os.Rename(name+".new", name)
}
