package proxy_test

import (
	"bytes"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"redrive/internal/mysqltest"
	"redrive/proxy"
)

// Whatever comes behind the login, and however little of it is understood: each side gets the bytes the other has sent.
// The streams are the follower's seeds, with bytes changed, left out and repeated.
func TestMutatedStreamsPassUnchanged(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	type streams struct{ greeting, response, ok, upload, download []byte }
	next := make(chan streams, 1)
	peer := mysqltest.NewPeer(t, func(c *mysqltest.PeerConn) {
		c.Conn.SetDeadline(time.Now().Add(time.Minute))
		s := <-next
		c.Conn.Write(s.greeting)
		received := make([]byte, len(s.response))
		io.ReadFull(c.Conn, received)
		c.Conn.Write(s.ok)
		var sending sync.WaitGroup
		sending.Go(func() { c.Conn.Write(s.download) })
		rest, _ := io.ReadAll(c.Conn)
		sending.Wait()
		if !bytes.Equal(received, s.response) || !bytes.Equal(rest, s.upload) {
			t.Errorf("the server got %d bytes, or others than the %d that were sent", len(received)+len(rest), len(s.response)+len(s.upload))
		}
	})
	p := start(t, peer.Addr, followCompression, func(p *proxy.Proxy) { p.DrainTimeout = time.Minute })
	for name, stream := range seeds(t) {
		for range 20 {
			client, server := sides(stream)
			greeting, response := firstPacket(server), firstPacket(client)
			ok := firstPacket(server[len(greeting):])
			upload := mutate(rng, client[len(response):])
			download := mutate(rng, server[len(greeting)+len(ok):])
			next <- streams{greeting, response, ok, upload, download}
			conn, err := net.Dial("tcp", p.addr)
			if err != nil {
				t.Fatal(err)
			}
			conn.SetDeadline(time.Now().Add(time.Minute))
			head := make([]byte, len(greeting)+len(ok))
			io.ReadFull(conn, head[:len(greeting)])
			conn.Write(response)
			io.ReadFull(conn, head[len(greeting):])
			var sending sync.WaitGroup
			sending.Go(func() {
				conn.Write(upload)
				conn.(*net.TCPConn).CloseWrite()
			})
			rest, err := io.ReadAll(conn)
			sending.Wait()
			if err != nil || !bytes.Equal(head, append(bytes.Clone(greeting), ok...)) || !bytes.Equal(rest, download) {
				t.Errorf("%s: the client got %d bytes, %v, or others than the %d that were sent", name, len(rest), err, len(download))
			}
			conn.Close()
		}
	}
}

// seeds are the recorded streams of FuzzFollower.
func seeds(t *testing.T) map[string][]byte {
	t.Helper()
	files, err := filepath.Glob("../internal/session/testdata/fuzz/FuzzFollower/*")
	if err != nil || len(files) == 0 {
		t.Fatalf("no seeds: %v", err)
	}
	all := map[string][]byte{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		_, quoted, _ := strings.Cut(strings.TrimSpace(string(text)), "[]byte(")
		stream, err := strconv.Unquote(strings.TrimSuffix(quoted, ")"))
		if err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		all[filepath.Base(file)] = []byte(stream)
	}
	return all
}

// sides takes a stream of FuzzFollower's apart.
func sides(stream []byte) (client, server []byte) {
	for len(stream) > 2 {
		n := min(int(stream[1]), len(stream)-2)
		if stream[0]&1 == 1 {
			client = append(client, stream[2:2+n]...)
		} else {
			server = append(server, stream[2:2+n]...)
		}
		stream = stream[2+n:]
	}
	return client, server
}

func firstPacket(b []byte) []byte { return b[:4+(int(b[0])|int(b[1])<<8|int(b[2])<<16)] }

func mutate(rng *rand.Rand, b []byte) []byte {
	b = bytes.Clone(b)
	for range rng.IntN(8) {
		at := rng.IntN(len(b))
		n := min(1+rng.IntN(8), len(b)-at)
		switch rng.IntN(3) {
		case 0:
			b[at] = byte(rng.Uint32())
		case 1:
			b = append(b[:at], b[at+n:]...)
		default:
			b = append(b[:at+n:at+n], b[at:]...)
		}
	}
	return b
}
