package proxy_test

import (
	"crypto/tls"
	"fmt"
	"net"
	"strings"
	"testing"

	native "github.com/go-mysql-org/go-mysql/mysql"

	"redrive/capture"
	"redrive/internal/client"
	"redrive/internal/mysqltest"
	"redrive/internal/wire"
	"redrive/proxy"
)

// Servers other than MariaDB, as scripts play them, are logged in to and followed through every kind of connection.
// They are scripted because MariaDB 10.11 lacks what is peculiar to them: caching_sha2_password, query attributes,
// optional metadata, zstd, several factors.
func TestPersonas(t *testing.T) {
	certificate := mysqltest.NewCertificate(t)
	for i := range mysqltest.Personas {
		persona := &mysqltest.Personas[i]
		peer := mysqltest.NewPeer(t, func(c *mysqltest.PeerConn) { c.Play(persona, personaPassword) })
		for _, legs := range []struct {
			name           string
			client, server bool
		}{{"plain to plain", false, false}, {"TLS to plain", true, false}, {"plain to TLS", false, true}, {"TLS to TLS", true, true}} {
			if legs.server && !persona.Capabilities.Has(wire.SSL) {
				continue // it has none
			}
			t.Run(persona.Name+", "+legs.name, func(t *testing.T) {
				var log mysqltest.Printed
				set := []func(*proxy.Proxy){logInto(&log)}
				a := account{user: persona.User, password: personaPassword}
				if legs.client {
					set = append(set, clientTLS(certificate))
					a.tls = &tls.Config{RootCAs: certificate.Roots, ServerName: "localhost"}
				}
				if legs.server {
					set = append(set, peerTLS)
				}
				p := start(t, peer.Addr, set...)
				var got string
				db := a.connect(t, p.addr)
				if err := db.QueryRow("SELECT 'by a driver'").Scan(&got); err != nil || got != "SELECT 'by a driver'" {
					t.Errorf("the query gives %q, %v", got, err)
				}
				db.Close()
				talkToPersona(t, persona, a, p.addr)
				checkPersona(t, persona, p)
				checkNoSecret(t, p, &log, personaPassword)
			})
		}
	}
}

const personaPassword = "Persona-4714"

// talkToPersona logs in by our own client, which asks for all that a present-day client does, and tries some commands.
func talkToPersona(t *testing.T, persona *mysqltest.Persona, a account, addr string) {
	t.Helper()
	config := client.Config{
		Address: addr, User: a.user, Password: a.password, TLS: a.tls,
		Capabilities: wire.QueryAttributes | wire.OptionalMetadata,
		Attributes:   []wire.Attribute{{Name: "program_name", Value: "persona"}},
	}
	if a.tls != nil {
		config.TLSMode = client.TLSRequired
	}
	conn, err := client.Dial(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	caps := conn.Capabilities()
	if caps&(wire.Compress|wire.Zstd) != 0 {
		t.Errorf("compression was negotiated: %x", caps)
	}
	if persona.Capabilities.Has(wire.QueryAttributes|wire.OptionalMetadata) && !caps.Has(wire.QueryAttributes|wire.OptionalMetadata) {
		t.Errorf("capabilities %x, want query attributes and optional metadata: nothing else is withheld", caps)
	}
	for _, command := range [][]byte{
		wire.AppendQuery(nil, []byte("SELECT 1"), nil, caps),
		{wire.ComStatistics},
		{wire.ComPing},
		{wire.ComResetConnection},
		append([]byte{wire.ComStmtPrepare}, "SELECT 'prepared'"...), wire.AppendExecute(nil, 1, 0, nil, nil, nil),
		wire.AppendQuery(nil, []byte("DO 1"), nil, caps),
	} {
		if _, _, err := conn.Do(command); err != nil {
			t.Fatalf("%s: %v", wire.CommandName(command[0]), err)
		}
	}
}

// checkPersona looks at what was recorded of both sessions.
func checkPersona(t *testing.T, persona *mysqltest.Persona, p *running) {
	t.Helper()
	var texts []string
	logins := 0
	for _, rec := range p.records(t) {
		switch s := &rec.Statement; rec.Kind {
		case capture.KindSessionStart:
			logins++
			if rec.Start.User != persona.User || rec.Start.ServerVersion != persona.Version {
				t.Errorf("session of %q at %q recorded, want %q at %q", rec.Start.User, rec.Start.ServerVersion, persona.User, persona.Version)
			}
		case capture.KindStatement:
			if s.RunsSQL() {
				texts = append(texts, fmt.Sprintf("%s: %d rows", s.Text, s.Outcome.Rows))
			}
			lacks := strings.IndexByte(string(persona.Lacks), s.Command) >= 0
			if want := map[bool]uint16{true: 1047}[lacks]; s.Outcome.Errno != want {
				t.Errorf("%s: error %d, want %d", wire.CommandName(s.Command), s.Outcome.Errno, want)
			}
		}
	}
	want := []string{"SELECT 'by a driver': 1 rows", "SELECT 1: 1 rows", "SELECT 'prepared': 1 rows", "DO 1: 0 rows"}
	if strings.Join(texts, "\n") != strings.Join(want, "\n") || logins != 2 {
		t.Errorf("%d logins and statements %q recorded, want 2 and %q", logins, texts, want)
	}
	if n := p.Totals().Opaque; n != 0 {
		t.Errorf("%d sessions not followed", n)
	}
}

// A second factor that sends the password in clear passes over TLS, and is refused where it would go on without.
func TestSecondFactor(t *testing.T) {
	certificate := mysqltest.NewCertificate(t)
	persona := mysqltest.Persona{
		Version: "9.4.0", Capabilities: wire.Protocol41 | wire.SecureConnection | wire.PluginAuth | wire.SSL | wire.MultiFactor,
		User: "app", Greets: wire.PluginCachingSHA2, Asks: wire.PluginCachingSHA2, Factors: true,
	}
	peer := mysqltest.NewPeer(t, func(c *mysqltest.PeerConn) { c.Play(&persona, personaPassword) })
	for _, tt := range []struct {
		name string
		set  []func(*proxy.Proxy)
		ok   bool
	}{
		{"TLS to TLS", []func(*proxy.Proxy){clientTLS(certificate), peerTLS}, true},
		{"TLS to plain", []func(*proxy.Proxy){clientTLS(certificate)}, false},
	} {
		p := start(t, peer.Addr, tt.set...)
		conn, err := net.Dial("tcp", p.addr)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		greeting, err := wire.ParseGreeting(readPacket(t, conn))
		if err != nil {
			t.Fatal(err)
		}
		h := wire.HandshakeResponse{Capabilities: persona.Capabilities, User: "app", Plugin: persona.Asks}
		send(conn, 1, h.AppendSSLRequest(nil))
		secured := tls.Client(conn, &tls.Config{RootCAs: certificate.Roots, ServerName: "localhost"})
		h.AuthData = native.CalcCachingSha2Password(greeting.Nonce, personaPassword)
		send(secured, 2, h.Append(nil))
		if fast := readPacket(t, secured); string(fast) != "\x01\x03" {
			t.Errorf("%s: the first factor is answered by %q, want 01 03", tt.name, fast)
		}
		next := readPacket(t, secured)
		if !tt.ok {
			if refused := wire.ParseError(next); refused.Errno != 1105 || !strings.Contains(refused.Message, "--backend-ssl-mode") {
				t.Errorf("%s: %q, want error 1105 that names --backend-ssl-mode", tt.name, next)
			}
			continue
		}
		if string(next) != "\x02mysql_clear_password\x00" {
			t.Errorf("%s: %q, want the second factor", tt.name, next)
		}
		send(secured, 5, []byte(personaPassword+"\x00"))
		if ok := readPacket(t, secured); ok[0] != 0 {
			t.Errorf("%s: login answered by %q", tt.name, ok)
		}
	}
}

func send(conn net.Conn, seq byte, payload []byte) {
	packet, _ := wire.AppendPacket(nil, seq, payload)
	conn.Write(packet)
}
