package proxy_test

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"testing"
	"time"

	"github.com/go-mysql-org/go-mysql/mysql"

	"redrive/internal/mysqltest"
	"redrive/internal/wire"
)

// rawCaps are what a raw connection asks for at least.
const rawCaps = wire.Protocol41 | wire.SecureConnection | wire.PluginAuth | wire.Transactions | wire.ConnectWithDB | wire.LocalFiles |
	wire.MultiStatements | wire.MultiResults | wire.PSMultiResults | wire.StmtBulk

// A raw connection sends what it is told to, byte by byte if need be, and gives the bytes that come back.
type raw struct {
	t     *testing.T
	conn  net.Conn
	id    uint32 // the server's
	caps  wire.Capabilities
	nonce []byte
	pause time.Duration // with it bytes are written one at a time
	log   []exchanged   // what went over the wire, in order, without secrets
	reply wire.Reply    // the last
	split wire.Splitter
	rest  []byte // read beyond the last reply
}

// exchanged are bytes of one direction.
type exchanged struct {
	fromClient bool
	data       []byte
}

// dialRaw logs in over a new connection, with capabilities that go beyond rawCaps.
func dialRaw(t *testing.T, addr, schema string, extra wire.Capabilities) *raw {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	conn.SetDeadline(time.Now().Add(2 * time.Minute)) // nothing here may hang
	c := &raw{t: t, conn: conn}
	payload := c.packet()
	greeting, err := wire.ParseGreeting(payload)
	if err != nil {
		t.Fatal(err)
	}
	c.id, c.nonce = greeting.ConnectionID, greeting.Nonce
	c.caps = wire.Negotiate(greeting.Capabilities, rawCaps|extra)
	c.log = append(c.log, exchanged{false, frame(0, payload)})
	response := wire.HandshakeResponse{Capabilities: c.caps, MaxPacket: 1 << 30, Collation: 45, User: mysqltest.User, Schema: schema, Plugin: mysql.AUTH_NATIVE_PASSWORD}
	response.AuthData = make([]byte, 20)
	c.log = append(c.log, exchanged{true, frame(1, response.Append(nil))})
	response.AuthData = c.scramble()
	c.write(frame(1, response.Append(nil)))
	ok := c.packet()
	if len(ok) == 0 || ok[0] != 0 {
		t.Fatalf("login answered by %q", ok)
	}
	c.log = append(c.log, exchanged{false, frame(2, ok)})
	return c
}

func (c *raw) scramble() []byte { return mysql.CalcPassword(c.nonce, []byte(mysqltest.Password)) }

func frame(seq byte, payload []byte) []byte {
	b, _ := wire.AppendPacket(make([]byte, 0, len(payload)+16), seq, payload)
	return b
}

func (c *raw) write(b []byte) {
	c.t.Helper()
	size := len(b)
	if c.pause > 0 {
		size = 1
	}
	for len(b) > 0 {
		if _, err := c.conn.Write(b[:size]); err != nil {
			c.t.Fatal(err)
		}
		b = b[size:]
		time.Sleep(c.pause)
	}
}

// packet reads one packet, and gives its payload.
func (c *raw) packet() []byte {
	c.t.Helper()
	return readPacket(c.t, c.conn)
}

// do sends a command and gives the bytes of its reply. A file that the server asks for is sent packet by packet.
func (c *raw) do(payload []byte, file ...[]byte) []byte {
	c.t.Helper()
	c.log = append(c.log, exchanged{true, frame(0, payload)})
	c.write(frame(0, payload))
	return c.receive(payload, file...)
}

// receive gives the bytes of the reply to a command that has been sent.
func (c *raw) receive(payload []byte, file ...[]byte) []byte {
	c.t.Helper()
	reply, err := c.read(payload, file...)
	if err != nil {
		c.t.Fatalf("%.40q: %v after %d bytes of the reply", payload, err, len(reply))
	}
	return reply
}

func (c *raw) read(payload []byte, file ...[]byte) (got []byte, err error) {
	code := byte(0)
	if len(payload) > 0 {
		code = payload[0]
	}
	if !wire.HasReply(code) {
		return nil, nil
	}
	c.reply.Begin(code, c.caps, code == wire.ComStmtExecute && len(payload) > 5 && payload[5]&wire.CursorReadOnly != 0)
	buf := make([]byte, 64<<10)
	logged := 0
	for !c.reply.Done() {
		if len(c.rest) == 0 {
			n, err := c.conn.Read(buf)
			if n == 0 {
				return got, err
			}
			c.rest = buf[:n]
		}
		p, rest, whole := c.split.Next(c.rest)
		got = append(got, c.rest[:len(c.rest)-len(rest)]...)
		c.rest = rest
		if !whole {
			continue
		}
		if _, err := c.reply.Feed(p); err != nil {
			return got, err
		}
		if c.reply.WantsFile() {
			c.log = append(c.log, exchanged{false, got[logged:len(got):len(got)]})
			logged = len(got)
			c.upload(p.Seq+1, file)
			c.reply.FileSent()
		}
	}
	c.rest = bytes.Clone(c.rest)
	c.log = append(c.log, exchanged{false, got[logged:]})
	return got, nil
}

// upload sends a file and the empty packet that ends it.
func (c *raw) upload(seq byte, file [][]byte) {
	var sent []byte
	for _, part := range append(file, nil) {
		var b []byte
		b, seq = wire.AppendPacket(nil, seq, part)
		c.write(b)
		if len(part) < 1<<16 {
			sent = append(sent, b...)
		}
	}
	c.log = append(c.log, exchanged{true, sent})
}

// changeUser sends a COM_CHANGE_USER and answers the exchange that follows.
func (c *raw) changeUser(user, schema string) (got []byte) {
	c.t.Helper()
	scramble := c.scramble()
	payload := fmt.Appendf([]byte{wire.ComChangeUser}, "%s\x00%c%s%s\x00\x2d\x00%s\x00", user, len(scramble), scramble, schema, mysql.AUTH_NATIVE_PASSWORD)
	c.write(frame(0, payload))
	for seq := byte(2); ; seq += 2 {
		answer := c.packet()
		if answer[0] == 0 || answer[0] == 0xFF {
			return append(got, answer...)
		}
		got = append(got, answer[:22]...) // the plugin's name; behind it stands the nonce
		c.write(frame(seq, scramble))
	}
}

// gone reports whether the server has hung up, without another word.
func (c *raw) gone() bool {
	rest, err := io.ReadAll(c.conn)
	return len(rest) == 0 && (err == nil || !err.(net.Error).Timeout())
}
