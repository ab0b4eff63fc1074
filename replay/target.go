package replay

import (
	"context"
	"database/sql"
	"fmt"
	"net"
	"net/netip"
	"os"
	"time"

	"redrive/internal/identity"
)

// MarkerSchema is a schema whose presence says that replays may write to the server. It is only ever looked for.
const MarkerSchema = "redrive_target_ok"

// A Target is what is known of the server that a replay would reach, for a Gate to decide by.
type Target struct {
	Address  string // host:port, or the path of a Unix socket
	Resolved []string
	Server   identity.Server // what it says of itself
	Marked   bool            // it has MarkerSchema

	Host  string       // this machine's name
	Local []netip.Addr // and its addresses
}

// InspectTarget asks the server behind db, which was reached at this address, what a Gate wants to know. It writes
// nothing.
func InspectTarget(ctx context.Context, db *sql.DB, network, address string) (Target, error) {
	t := Target{Address: address, Resolved: resolved(ctx, network, address), Local: localAddresses()}
	t.Host, _ = os.Hostname() // without a name of our own, loopback is taken for the captured machine's
	var err error
	if t.Server, err = identity.Probe(ctx, db); err != nil {
		return t, err
	}
	t.Marked, err = hasSchema(ctx, db, MarkerSchema)
	return t, err
}

func hasSchema(ctx context.Context, db *sql.DB, name string) (bool, error) {
	rows, err := db.QueryContext(ctx, "SHOW DATABASES")
	if err != nil {
		return false, fmt.Errorf("look for schema %s: %w", name, err)
	}
	defer rows.Close()
	found := false
	for rows.Next() {
		var schema string
		if err := rows.Scan(&schema); err != nil {
			return false, fmt.Errorf("look for schema %s: %w", name, err)
		}
		found = found || schema == name
	}
	return found, rows.Err()
}

// resolved lists the addresses a host:port stands for; a socket stands for itself.
func resolved(ctx context.Context, network, address string) []string {
	host, port, err := net.SplitHostPort(address)
	if network == "unix" || err != nil {
		return []string{address}
	}
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	hosts, err := net.DefaultResolver.LookupHost(ctx, host)
	if err != nil {
		return nil // we were able to connect, so the name alone has to do
	}
	for i, h := range hosts {
		hosts[i] = net.JoinHostPort(h, port)
	}
	return hosts
}

func localAddresses() []netip.Addr {
	addresses, err := net.InterfaceAddrs()
	if err != nil {
		return nil
	}
	var local []netip.Addr
	for _, a := range addresses {
		if prefix, err := netip.ParsePrefix(a.String()); err == nil {
			local = append(local, prefix.Addr().Unmap())
		}
	}
	return local
}
