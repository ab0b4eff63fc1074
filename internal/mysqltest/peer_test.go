package mysqltest_test

import (
	"bytes"
	"database/sql"
	"errors"
	"net"
	"strings"
	"testing"

	"github.com/go-mysql-org/go-mysql/mysql"
	"github.com/go-mysql-org/go-mysql/server"
	driver "github.com/go-sql-driver/mysql"

	"redrive/internal/mysqltest"
	"redrive/internal/wire"
)

const peerOffer = wire.Protocol41 | wire.SecureConnection | wire.PluginAuth

func TestPeerPlaysItsScript(t *testing.T) {
	large := bytes.Repeat([]byte{'x'}, wire.MaxPayload+10) // two physical packets
	peer := mysqltest.NewPeer(t, func(c *mysqltest.PeerConn) {
		c.Expect([]byte("hello"))
		c.SendPacket([]byte("one"), large)
		c.Send([]byte("raw"))
		c.ExpectHangUp()
	})
	conn := dial(t, peer)
	packet, _ := wire.AppendPacket(nil, 7, []byte("hello"))
	conn.Write(packet)
	want, seq := wire.AppendPacket(nil, 8, []byte("one"))
	want, _ = wire.AppendPacket(want, seq, large)
	want = append(want, "raw"...)
	got := make([]byte, len(want))
	for n := 0; n < len(got); {
		m, err := conn.Read(got[n:])
		if err != nil {
			t.Fatalf("after %d bytes: %v", n, err)
		}
		n += m
	}
	if !bytes.Equal(got, want) {
		t.Errorf("peer sent %q…, want %q…", got[:20], want[:20])
	}
}

func dial(t *testing.T, peer *mysqltest.Peer) net.Conn {
	conn, err := net.Dial("tcp", peer.Addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn
}

func TestPeerReadsLargePackets(t *testing.T) {
	for _, n := range []int{0, 1, wire.MaxPayload - 1, wire.MaxPayload, wire.MaxPayload + 1} {
		payload := bytes.Repeat([]byte{'x'}, n)
		got := make(chan []byte, 1)
		peer := mysqltest.NewPeer(t, func(c *mysqltest.PeerConn) { got <- c.ReadPacket() })
		packet, _ := wire.AppendPacket(nil, 0, payload)
		dial(t, peer).Write(packet)
		if b := <-got; !bytes.Equal(b, payload) {
			t.Errorf("packet of %d bytes arrived with %d", n, len(b))
		}
	}
}

func TestPeerAcceptsAnybody(t *testing.T) {
	told := make(chan wire.HandshakeResponse, 1)
	peer := mysqltest.NewPeer(t, func(c *mysqltest.PeerConn) {
		told <- c.Accept("5.7.44-log", peerOffer|wire.ConnectWithDB)
		c.Expect([]byte("\x0e")) // COM_PING
		c.SendPacket([]byte("\xff\x28\x04#42000no"))
		c.Expect([]byte("\x01")) // COM_QUIT
		c.ExpectHangUp()
	})
	err := ping(t, "any:secret@tcp("+peer.Addr+")/app")
	var refused *driver.MySQLError
	if !errors.As(err, &refused) || refused.Number != 1064 {
		t.Errorf("ping: %v, want error 1064", err)
	}
	if h := <-told; h.User != "any" || h.Schema != "app" {
		t.Errorf("login told user %q and schema %q", h.User, h.Schema)
	}
}

func ping(t *testing.T, dsn string) error {
	db, err := sql.Open("mysql", dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	return db.Ping()
}

// oneRow answers every query with one row.
type oneRow struct{ server.EmptyHandler }

func (oneRow) UseDB(string) error { return nil }

func (oneRow) HandleQuery(query string) (*mysql.Result, error) {
	set, err := mysql.BuildSimpleResultset([]string{"query"}, [][]any{{query}}, false)
	return mysql.NewResult(set), err
}

func TestPeerChecksPasswords(t *testing.T) {
	for _, plugin := range []string{"", mysql.AUTH_NATIVE_PASSWORD, mysql.AUTH_CACHING_SHA2_PASSWORD, mysql.AUTH_SHA256_PASSWORD} {
		for _, tls := range []string{"false", "skip-verify"} {
			peer := mysqltest.NewPeer(t, func(c *mysqltest.PeerConn) {
				c.Serve(mysqltest.Account{User: "u", Password: "right", Plugin: plugin, Handler: oneRow{}})
			})
			options := "@tcp(" + peer.Addr + ")/app?tls=" + tls
			db, err := sql.Open("mysql", "u:right"+options)
			if err != nil {
				t.Fatal(err)
			}
			var got string
			if err := db.QueryRow("SELECT 1").Scan(&got); err != nil || got != "SELECT 1" {
				t.Errorf("plugin %q, tls %s: query gives %q, %v", plugin, tls, got, err)
			}
			db.Close()
			if err := ping(t, "u:wrong"+options); err == nil || !strings.Contains(err.Error(), "denied") {
				t.Errorf("plugin %q, tls %s: wrong password: %v, want access denied", plugin, tls, err)
			}
		}
	}
}
