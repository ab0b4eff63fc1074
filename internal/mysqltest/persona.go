package mysqltest

import (
	"bytes"
	"crypto/rsa"
	"crypto/sha1"
	"crypto/tls"

	"github.com/go-mysql-org/go-mysql/mysql"

	"redrive/internal/wire"
)

// A Persona is what sets a server apart for those who follow its protocol, as far as published manuals and reports tell.
// PeerConn.Play plays one: a script, and no substitute for the server itself.
type Persona struct {
	Name         string
	Version      string // as its greeting puts it
	Capabilities wire.Capabilities
	Greets       string // plugin that the greeting names
	Asks         string // plugin of its accounts; where it is another, by an AuthSwitch
	User         string // a user name as is usual there

	Forgetful    bool   // caching_sha2_password always goes its long way, as in a server with an empty cache
	EmptyState   bool   // OK says that session state changed, and does not say which
	ShortPrepare bool   // PREPARE_OK of 10 bytes, without the number of warnings
	Lacks        []byte // commands answered by error 1047
	Factors      bool   // a second factor by mysql_clear_password, the first one's password again
}

// Capabilities of the MySQL family, a version's atop the one before.
const (
	caps41 = wire.LongPassword | wire.FoundRows | wire.ConnectWithDB | wire.LocalFiles | wire.IgnoreSpace |
		wire.Protocol41 | wire.Interactive | wire.Transactions | wire.SecureConnection | wire.MultiStatements |
		wire.MultiResults | wire.PSMultiResults | wire.PluginAuth | wire.ConnectAttrs | wire.LenencAuthData
	caps57 = caps41 | wire.Compress | wire.SSL | wire.SessionTrack | wire.DeprecateEOF
	caps80 = caps57 | wire.OptionalMetadata | wire.Zstd | wire.QueryAttributes | wire.MultiFactor
)

// Personas are the servers that people keep beside MariaDB. MariaDB 10.11 has no caching_sha2_password, query
// attributes, optional metadata, zstd or factors, so that these are seen here only.
var Personas = []Persona{
	{Name: "MySQL 5.7", Version: "5.7.44-log", Capabilities: caps57, Greets: wire.PluginNative, Asks: wire.PluginNative, User: "app"},
	{Name: "MySQL 8.0", Version: "8.0.43", Capabilities: caps80, Greets: wire.PluginCachingSHA2, Asks: wire.PluginCachingSHA2, User: "app"},
	{Name: "MySQL 8.0, empty cache", Version: "8.0.43", Capabilities: caps80, Greets: wire.PluginCachingSHA2, Asks: wire.PluginCachingSHA2, User: "app", Forgetful: true},
	{Name: "MySQL 8.0, accounts of old", Version: "8.0.43", Capabilities: caps80, Greets: wire.PluginCachingSHA2, Asks: wire.PluginNative, User: "app"},
	{Name: "MySQL 8.0, default of old", Version: "8.0.43", Capabilities: caps80, Greets: wire.PluginNative, Asks: wire.PluginCachingSHA2, User: "app", Forgetful: true},
	{Name: "MySQL 8.4", Version: "8.4.6", Capabilities: caps80, Greets: wire.PluginCachingSHA2, Asks: wire.PluginSHA256, User: "app"},
	{Name: "MySQL 9", Version: "9.4.0", Capabilities: caps80, Greets: wire.PluginCachingSHA2, Asks: wire.PluginCachingSHA2, User: "app", Factors: true},
	{Name: "TiDB", Version: "8.0.11-TiDB-v8.5.3", Capabilities: caps41 | wire.SSL | wire.DeprecateEOF | wire.Compress | wire.Zstd, Greets: wire.PluginNative, Asks: wire.PluginCachingSHA2, User: "3pTAoNNegb47Uc8.root", Forgetful: true},
	{Name: "OceanBase", Version: "5.7.25-OceanBase_CE-v4.3.5.1", Capabilities: caps41 | wire.SSL | wire.Compress | wire.SessionTrack | wire.DeprecateEOF, Greets: wire.PluginNative, Asks: wire.PluginNative, User: "app@tenant#cluster", EmptyState: true},
	{Name: "PolarDB-X", Version: "8.0.3-TDDL-5.4.19", Capabilities: caps41 | wire.SSL, Greets: wire.PluginNative, Asks: wire.PluginNative, User: "polardbx_root"},
	{Name: "Vitess", Version: "8.0.30-Vitess", Capabilities: caps41 | wire.SSL | wire.SessionTrack | wire.DeprecateEOF, Greets: wire.PluginNative, Asks: wire.PluginNative, User: "app", EmptyState: true, Lacks: []byte{wire.ComStatistics, wire.ComChangeUser, wire.ComResetConnection}},
	{Name: "a front end with a short PREPARE_OK", Version: "5.1.0", Capabilities: caps41, Greets: wire.PluginNative, Asks: wire.PluginNative, User: "root", ShortPrepare: true},
}

// Play logs the client in as the persona does, if it knows the password, and answers its commands until it quits: a
// SELECT and an EXECUTE by one row, anything else by OK. A client that is refused ends the script.
func (c *PeerConn) Play(p *Persona, password string) {
	c.greetAs(p.Version, p.Capabilities, p.Greets)
	first := c.ReadPacket()
	if wire.IsSSLRequest(first) {
		c.Conn = tls.Server(c.Conn, peerIdentity().tls)
		first = c.ReadPacket()
	}
	h, err := wire.ParseHandshakeResponse(first, p.Capabilities)
	if err != nil {
		c.fail("%v", err)
	}
	caps := wire.Negotiate(p.Capabilities, h.Capabilities)
	answer := h.AuthData
	if h.Plugin != p.Asks {
		c.SendPacket(append(append(append(append([]byte{wire.AuthSwitch}, p.Asks...), 0), peerNonce...), 0))
		answer = c.ReadPacket()
	}
	if h.User != p.User || !c.verify(p, answer, password) || !c.verifyFactor(p, caps, password) {
		c.SendPacket(wire.AppendError(nil, &wire.Error{Errno: 1045, SQLState: "28000", Message: "Access denied for user"}))
		return
	}
	c.SendPacket(p.ok(caps))
	c.serve(p, caps)
}

// verify checks the client's first answer to the plugin, and asks on where the plugin does.
func (c *PeerConn) verify(p *Persona, answer []byte, password string) bool {
	switch p.Asks {
	case wire.PluginNative:
		return bytes.Equal(answer, mysql.CalcPassword([]byte(peerNonce), []byte(password)))
	case wire.PluginSHA256:
		return c.verifySecret(answer, wire.RequestSHA256Key, password)
	}
	if !bytes.Equal(answer, mysql.CalcCachingSha2Password([]byte(peerNonce), password)) {
		return false
	}
	if !p.Forgetful {
		c.SendPacket([]byte{wire.AuthMoreData, wire.SHA2FastOK})
		return true
	}
	c.SendPacket([]byte{wire.AuthMoreData, wire.SHA2Full})
	return c.verifySecret(c.ReadPacket(), wire.RequestSHA2Key, password)
}

// verifySecret takes the password in clear over TLS, and else encrypted with a key that it gives on request.
func (c *PeerConn) verifySecret(answer []byte, request byte, password string) bool {
	if _, encrypted := c.Conn.(*tls.Conn); encrypted {
		return string(answer) == password+"\x00"
	}
	identity := peerIdentity()
	if len(answer) == 1 && answer[0] == request {
		c.SendPacket(append([]byte{wire.AuthMoreData}, identity.publicKey...))
		answer = c.ReadPacket()
	}
	plain, err := rsa.DecryptOAEP(sha1.New(), nil, identity.tls.Certificates[0].PrivateKey.(*rsa.PrivateKey), answer, nil)
	if err != nil {
		return false
	}
	for i := range plain {
		plain[i] ^= peerNonce[i%len(peerNonce)]
	}
	return string(plain) == password+"\x00"
}

func (c *PeerConn) verifyFactor(p *Persona, caps wire.Capabilities, password string) bool {
	if !p.Factors || !caps.Has(wire.MultiFactor) {
		return true
	}
	c.SendPacket(append(append([]byte{wire.AuthNextFactor}, wire.PluginClear...), 0))
	answer, _ := c.Next() // a client may rather hang up
	return string(answer) == password+"\x00"
}

// ok is an OK of a session in autocommit.
func (p *Persona) ok(caps wire.Capabilities) []byte {
	status := wire.StatusAutocommit
	if p.EmptyState && caps.Has(wire.SessionTrack) {
		status |= wire.StatusStateChanged
	}
	return wire.AppendOK(nil, 0, wire.OK{Status: status})
}

// serve answers commands.
func (c *PeerConn) serve(p *Persona, caps wire.Capabilities) {
	for {
		command, alive := c.Next()
		switch {
		case !alive || len(command) == 0 || command[0] == wire.ComQuit:
			return
		case bytes.IndexByte(p.Lacks, command[0]) >= 0: // in Vitess's own words
			c.SendPacket(wire.AppendError(nil, &wire.Error{Errno: 1047, SQLState: "08S01", Message: "command handling not implemented yet"}))
		default:
			c.answer(p, caps, command)
		}
	}
}

func (c *PeerConn) answer(p *Persona, caps wire.Capabilities, command []byte) {
	switch command[0] {
	case wire.ComQuery:
		text, _, err := wire.QueryText(command, caps)
		if err != nil {
			c.fail("%v", err)
		}
		if !bytes.HasPrefix(text, []byte("SELECT")) {
			c.SendPacket(p.ok(caps))
			return
		}
		c.sendRow(p, caps, wire.AppendLenencBytes(nil, text))
	case wire.ComStmtPrepare:
		c.SendPacket(p.prepareOK(caps))
		c.sendColumns(caps)
	case wire.ComStmtExecute:
		c.sendRow(p, caps, append([]byte{0, 0}, "\x03one"...)) // binary: header, no NULLs, value
	case wire.ComStmtClose:
	case wire.ComStatistics:
		c.SendPacket([]byte("Uptime: 1"))
	default:
		c.SendPacket(p.ok(caps))
	}
}

// prepareOK is the head of the answer to a PREPARE: statement 1 has one column and no parameters.
func (p *Persona) prepareOK(caps wire.Capabilities) []byte {
	b := []byte{0, 1, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0}
	switch {
	case p.ShortPrepare:
		return b[:10]
	case caps.Has(wire.OptionalMetadata):
		return append(b, 1) // with metadata
	}
	return b
}

func (c *PeerConn) sendRow(p *Persona, caps wire.Capabilities, row []byte) {
	count := []byte{1}
	if caps.Has(wire.OptionalMetadata) {
		count = append(count, 1) // metadata follows
	}
	c.SendPacket(count)
	c.sendColumns(caps)
	c.SendPacket(row)
	if caps.Has(wire.DeprecateEOF) {
		end := p.ok(caps)
		end[0] = 0xFE
		c.SendPacket(end)
		return
	}
	c.SendPacket([]byte{0xFE, 0, 0, 2, 0})
}

func (c *PeerConn) sendColumns(caps wire.Capabilities) {
	var column []byte
	for _, name := range []string{"def", "", "", "", "text", ""} {
		column = wire.AppendLenencBytes(column, []byte(name))
	}
	c.SendPacket(append(column, 12, 45, 0, 0, 1, 0, 0, 0xFD, 0, 0, 0, 0, 0))
	if !caps.Has(wire.DeprecateEOF) {
		c.SendPacket([]byte{0xFE, 0, 0, 2, 0})
	}
}
