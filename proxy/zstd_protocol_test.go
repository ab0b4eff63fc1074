package proxy_test

import (
	"fmt"
	"io"
	"net"
	"testing"

	"github.com/klauspost/compress/zstd"

	"redrive/internal/mysqltest"
	"redrive/internal/wire"
	"redrive/proxy"
)

// Client and server that agree on zstd are followed through the proxy. The server is scripted: MariaDB 10.11 has no zstd.
func TestZstdFollowed(t *testing.T) {
	encoder, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	frame := func(seq byte, content []byte) []byte {
		packed := encoder.EncodeAll(content, nil)
		head := []byte{byte(len(packed)), byte(len(packed) >> 8), 0, seq, byte(len(content)), byte(len(content) >> 8), 0}
		return append(head, packed...)
	}
	packet := func(payload string) []byte {
		b, _ := wire.AppendPacket(nil, 0, []byte(payload))
		return b
	}
	query := frame(0, packet("\x03SELECT a FROM a_table_whose_name_is_long_enough_to_be_worth_it"))
	answer := frame(1, []byte("\x07\x00\x00\x01\x00\x05\x00\x02\x00\x00\x00"))
	peer := mysqltest.NewPeer(t, func(c *mysqltest.PeerConn) {
		c.Accept("8.0.36", wire.Protocol41|wire.SecureConnection|wire.PluginAuth|wire.Zstd)
		for range 3 {
			got := make([]byte, len(query))
			if _, err := io.ReadFull(c.Conn, got); err != nil || string(got) != string(query) {
				t.Errorf("the server got % x, %v, want % x", got, err, query)
			}
			c.Send(answer)
		}
		io.Copy(io.Discard, c.Conn)
	})
	p := start(t, peer.Addr, func(p *proxy.Proxy) { p.FollowCompression = true })
	conn := handshake(t, p.addr)
	for range 3 {
		conn.Write(query)
		got := make([]byte, len(answer))
		if _, err := io.ReadFull(conn, got); err != nil || string(got) != string(answer) {
			t.Fatalf("the client got % x, %v, want % x", got, err, answer)
		}
	}
	conn.(*net.TCPConn).CloseWrite()
	waitFor(t, "the connection to end", func() bool { return p.Totals().Open == 0 })
	text := "SELECT a FROM a_table_whose_name_is_long_enough_to_be_worth_it"
	if got, want := fmt.Sprint(p.texts(t)), fmt.Sprint([]string{text, text, text}); got != want {
		t.Errorf("recorded %s, want %s", got, want)
	}
	if n := p.Totals().Opaque; n != 0 {
		t.Errorf("%d connections given up", n)
	}
}
