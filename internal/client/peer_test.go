package client_test

import (
	"context"
	"errors"
	"io"
	"net"
	"testing"

	"redrive/internal/client"
	"redrive/internal/mysqltest"
	"redrive/internal/wire"
)

func TestMain(m *testing.M) { mysqltest.Main(m) }

const secret = "tell-no-one"

// serve accepts one connection and lets script play the server; the address is good for one Dial.
func serve(t testing.TB, script func(net.Conn)) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		c, err := l.Accept()
		if err != nil {
			return
		}
		defer c.Close()
		script(c)
	}()
	t.Cleanup(func() { l.Close(); <-done })
	return l.Addr().String()
}

// greetingPacket is a greeting that offers caps and nonce 01…14 (hexadecimal), in its packet.
func greetingPacket(caps wire.Capabilities, plugin string) []byte {
	p := append([]byte{10}, "8.0.99-test\x00"...)
	p = append(p, 7, 0, 0, 0)
	p = append(p, 1, 2, 3, 4, 5, 6, 7, 8, 0)
	p = append(p, byte(caps), byte(caps>>8), 45, 2, 0, byte(caps>>16), byte(caps>>24), 21)
	p = append(p, make([]byte, 10)...)
	p = append(p, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 0)
	p = append(append(p, plugin...), 0)
	return packet(0, p)
}

const serverCaps = wire.LongPassword | wire.Protocol41 | wire.Transactions | wire.SecureConnection | wire.PluginAuth |
	wire.LenencAuthData | wire.ConnectWithDB | wire.MultiResults | wire.MultiStatements | wire.LocalFiles | wire.DeprecateEOF

func packet(seq byte, payload []byte) []byte {
	p, _ := wire.AppendPacket(nil, seq, payload)
	return p
}

func okPacket(seq byte, ok wire.OK) []byte { return packet(seq, wire.AppendOK(nil, 0, ok)) }

func errPacket(seq byte, errno uint16, message string) []byte {
	return packet(seq, wire.AppendError(nil, &wire.Error{Errno: errno, SQLState: "HY000", Message: message}))
}

// readPacket reads one logical packet; nil at the end of the stream.
func readPacket(c net.Conn) []byte {
	var payload []byte
	for {
		header := make([]byte, wire.HeaderLen)
		if _, err := io.ReadFull(c, header); err != nil {
			return nil
		}
		n := int(header[0]) | int(header[1])<<8 | int(header[2])<<16
		part := make([]byte, n)
		if _, err := io.ReadFull(c, part); err != nil {
			return nil
		}
		payload = append(payload, part...)
		if n < wire.MaxPayload {
			return payload
		}
	}
}

// letIn plays a server that lets everybody in.
func letIn(c net.Conn) {
	c.Write(greetingPacket(serverCaps, "mysql_native_password"))
	readPacket(c)
	c.Write(okPacket(2, wire.OK{Status: wire.StatusAutocommit}))
}

// dialScript connects to a server that lets us in and then answers every command with reply's bytes; nil closes.
func dialScript(t testing.TB, reply func(command []byte) []byte) *client.Conn {
	t.Helper()
	address := serve(t, func(c net.Conn) {
		letIn(c)
		for {
			command := readPacket(c)
			if command == nil || command[0] == wire.ComQuit {
				return
			}
			if !wire.HasReply(command[0]) {
				continue
			}
			b := reply(command)
			if b == nil {
				return
			}
			c.Write(b)
		}
	})
	conn, err := client.Dial(context.Background(), client.Config{Address: address, User: "u", Capabilities: wire.LocalFiles})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn
}

// refusal is the server's error in err's chain.
func refusal(t *testing.T, err error) *wire.Error {
	t.Helper()
	var e *wire.Error
	if !errors.As(err, &e) {
		t.Fatalf("error %v, want one from the server", err)
	}
	return e
}
