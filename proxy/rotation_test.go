package proxy_test

import (
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"redrive/capture"
	"redrive/internal/mysqltest"
	"redrive/internal/wire"
	"redrive/proxy"
)

// A session that was no longer followed says so in the file it leaves and in the one it comes to.
func TestRotationOfAnOpaqueSession(t *testing.T) {
	peer := mysqltest.NewPeer(t, func(c *mysqltest.PeerConn) {
		c.Accept("10.11", wire.Protocol41|wire.SecureConnection|wire.PluginAuth)
		c.ReadPacket()
		c.Send([]byte("\x05\x00\x00\x01\xfe\x00\x00\x02\x00")) // no reply that a query can have
		io.Copy(io.Discard, c.Conn)
	})
	p := start(t, peer.Addr, relayOnly, func(p *proxy.Proxy) { p.DrainTimeout = time.Millisecond })
	first, second := newTape(p), newTape(p)
	p.Record(first.recorder)
	conn := handshake(t, p.addr)
	conn.Write([]byte("\x05\x00\x00\x00\x03DO 1"))
	readPacket(t, conn)
	for p.Totals().Opaque == 0 {
		time.Sleep(time.Millisecond)
	}
	p.Record(second.recorder)
	conn.Write([]byte("anything at all"))
	conn.Close()
	for p.Totals().Open != 0 {
		time.Sleep(time.Millisecond)
	}
	p.Record(nil)
	for i, tape := range []*tape{first, second} {
		opaque := 0
		for _, rec := range tape.records(t, 0) {
			if rec.Kind == capture.KindSessionEnd && rec.End.Reason == capture.EndOpaque && strings.Contains(rec.End.Detail, "not the reply that was expected") &&
				strings.Contains(rec.End.Detail, "byte") {
				opaque++
			}
		}
		if opaque != 1 {
			t.Errorf("file %d: %d ends that tell of the session no longer followed, want 1", i+1, opaque)
		}
	}
}

// Connections that come and go while files change end once, in one file.
func TestRotationUnderChurn(t *testing.T) {
	server := mysqltest.Shared(t)
	p := start(t, server.Addr, relayOnly)
	var tapes []*tape
	stop := make(chan struct{})
	var group sync.WaitGroup
	for range 4 {
		group.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
					conn := login(t, p.addr)
					query(t, conn, "DO 1")
					conn.Close()
				}
			}
		})
	}
	for range 40 {
		r := newTape(p)
		p.Record(r.recorder)
		tapes = append(tapes, r)
		time.Sleep(5 * time.Millisecond)
	}
	close(stop)
	group.Wait()
	p.Record(nil)
	ended := 0
	for i, r := range tapes {
		ends := map[uint64]int{}
		for _, rec := range r.records(t, 0) {
			if rec.Kind == capture.KindSessionEnd {
				ends[rec.End.Session]++
				ended++
			}
		}
		for session, n := range ends {
			if n > 1 {
				t.Errorf("file %d: session %d ends %d times", i, session, n)
			}
		}
	}
	if ended < 20 {
		t.Errorf("%d ends: the test does not bite", ended)
	}
}

// Clients that come while the backend accepts and says nothing get an answer, and leave nothing behind.
func TestMuteBackend(t *testing.T) {
	mute, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer mute.Close()
	p := start(t, mute.Addr().String(), func(p *proxy.Proxy) { p.DialTimeout = 200 * time.Millisecond })
	conn, err := net.Dial("tcp", p.addr)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if e := wire.ParseError(readPacket(t, conn)); e.Errno != 1105 || !strings.Contains(e.Message, "no greeting") || !strings.Contains(e.Message, mute.Addr().String()) {
		t.Errorf("the client got %v, want 1105 that names the backend and its silence", e)
	}
	for p.Totals().Open != 0 {
		time.Sleep(time.Millisecond)
	}
	ends := 0
	for _, rec := range p.records(t) {
		if rec.Kind == capture.KindSessionEnd {
			ends++
		}
	}
	if ends != 1 {
		t.Errorf("%d ends recorded, want 1", ends)
	}
}

// What a command of no SQL, or a batch, may bear of a password is not recorded either.
func TestPasswordsOutsideStatements(t *testing.T) {
	server := mysqltest.Shared(t)
	schema := server.Schema(t)
	p := start(t, server.Addr)
	const secret = "Tr0ub4dor"
	conn := login(t, p.addr)
	query(t, conn, "CREATE TABLE "+schema+".u (n VARCHAR(100), p VARCHAR(100))")
	prepared, _, err := conn.Prepare("INSERT INTO " + schema + ".u VALUES ('x', PASSWORD(?))")
	if err != nil {
		t.Fatal(err)
	}
	id := []byte{byte(prepared.ID), byte(prepared.ID >> 8), byte(prepared.ID >> 16), byte(prepared.ID >> 24)}
	longData := append(append([]byte{wire.ComStmtSendLongData}, id...), 0, 0)
	conn.Do(append(longData, secret...))
	bulk := append(append([]byte{wire.ComStmtBulkExecute}, id...), 0x80, 0, 0xfd, 0)
	bulk = append(append(append(bulk, 0), byte(len(secret))), secret...)
	conn.Do(bulk) // refused or not, it must not be recorded
	conn.Do(append([]byte("\x15\x01\x00\x00\x00\x01h\x01u\x09"), secret...))
	other := login(t, p.addr)
	query(t, other, "USE mysql")
	query(t, other, "UPDATE global_priv SET Priv = '"+secret+"' WHERE User = 'nobody at all'")
	other.Do(append([]byte{wire.ComQuery}, "UPDATE MYSQL.GLOBAL_PRIV SET Priv = '"+secret+"'"...)) // no such table where case counts
	other.Close()
	conn.Close()
	commands := map[byte]int{}
	for _, rec := range p.records(t) {
		s := &rec.Statement
		if rec.Kind != capture.KindStatement {
			continue
		}
		commands[s.Command]++
		if strings.Contains(fmt.Sprintf("%s%s%s", s.Text, s.Params.Values, s.File), secret) {
			t.Errorf("a password is in the record of a %s: %q", wire.CommandName(s.Command), s.Text)
		}
	}
	for _, want := range []byte{wire.ComStmtSendLongData, wire.ComStmtBulkExecute, wire.ComRegisterSlave} {
		if commands[want] != 1 {
			t.Errorf("%d commands %s recorded, want 1", commands[want], wire.CommandName(want))
		}
	}
}
