package proxy_test

import (
	"context"
	"encoding/binary"
	"io"
	"net"
	"net/netip"
)

// resolveTo is a resolver to which every name stands for the same IPv4 addresses.
func resolveTo(addresses ...string) *net.Resolver {
	return &net.Resolver{PreferGo: true, Dial: func(context.Context, string, string) (net.Conn, error) {
		ours, theirs := net.Pipe()
		go answerNames(theirs, addresses)
		return ours, nil
	}}
}

// answerNames plays a name server, over a stream: two bytes of length in front of every message.
func answerNames(conn net.Conn, addresses []string) {
	defer conn.Close()
	for {
		var length [2]byte
		if _, err := io.ReadFull(conn, length[:]); err != nil {
			return
		}
		question := make([]byte, binary.BigEndian.Uint16(length[:]))
		if _, err := io.ReadFull(conn, question); err != nil {
			return
		}
		end := 12 // of the header; the name follows, then type and class
		for question[end] != 0 {
			end += int(question[end]) + 1
		}
		const typeA = 1
		answers := addresses
		if binary.BigEndian.Uint16(question[end+1:]) != typeA {
			answers = nil
		}
		answer := append([]byte(nil), question[:end+5]...)
		copy(answer[2:12], []byte{0x81, 0x80, 0, 1, 0, byte(len(answers)), 0, 0, 0, 0})
		for _, a := range answers {
			answer = append(answer, 0xC0, 12, 0, typeA, 0, 1, 0, 0, 0, 60, 0, 4)
			answer = append(answer, netip.MustParseAddr(a).AsSlice()...)
		}
		conn.Write(append(binary.BigEndian.AppendUint16(nil, uint16(len(answer))), answer...))
	}
}
