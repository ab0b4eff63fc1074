package wire

import "github.com/go-mysql-org/go-mysql/mysql"

// Capabilities are the bits both sides announce at login: the low 32 as MySQL numbers them, MariaDB's extended
// capabilities above. A layout follows from the bits both sides announced, never from one side alone.
type Capabilities uint64

const (
	LongPassword     = Capabilities(mysql.CLIENT_LONG_PASSWORD) // MariaDB clears it to say "I am MariaDB"
	FoundRows        = Capabilities(mysql.CLIENT_FOUND_ROWS)
	ConnectWithDB    = Capabilities(mysql.CLIENT_CONNECT_WITH_DB)
	Compress         = Capabilities(mysql.CLIENT_COMPRESS)
	LocalFiles       = Capabilities(mysql.CLIENT_LOCAL_FILES)
	IgnoreSpace      = Capabilities(mysql.CLIENT_IGNORE_SPACE)
	Protocol41       = Capabilities(mysql.CLIENT_PROTOCOL_41)
	Interactive      = Capabilities(mysql.CLIENT_INTERACTIVE)
	SSL              = Capabilities(mysql.CLIENT_SSL)
	Transactions     = Capabilities(mysql.CLIENT_TRANSACTIONS)
	SecureConnection = Capabilities(mysql.CLIENT_SECURE_CONNECTION)
	MultiStatements  = Capabilities(mysql.CLIENT_MULTI_STATEMENTS)
	MultiResults     = Capabilities(mysql.CLIENT_MULTI_RESULTS)
	PSMultiResults   = Capabilities(mysql.CLIENT_PS_MULTI_RESULTS)
	PluginAuth       = Capabilities(mysql.CLIENT_PLUGIN_AUTH)
	ConnectAttrs     = Capabilities(mysql.CLIENT_CONNECT_ATTRS)
	LenencAuthData   = Capabilities(mysql.CLIENT_PLUGIN_AUTH_LENENC_CLIENT_DATA)
	SessionTrack     = Capabilities(mysql.CLIENT_SESSION_TRACK)
	DeprecateEOF     = Capabilities(mysql.CLIENT_DEPRECATE_EOF)
	OptionalMetadata = Capabilities(mysql.CLIENT_OPTIONAL_RESULTSET_METADATA)
	Zstd             = Capabilities(mysql.CLIENT_ZSTD_COMPRESSION_ALGORITHM)
	QueryAttributes  = Capabilities(mysql.CLIENT_QUERY_ATTRIBUTES)
	MultiFactor      = Capabilities(mysql.MULTI_FACTOR_AUTHENTICATION)

	// MariaDB's extended capabilities; they exist only where both sides leave LongPassword clear.
	Progress         Capabilities = 1 << 32
	StmtBulk         Capabilities = 1 << 34
	ExtendedMetadata Capabilities = 1 << 35
	CacheMetadata    Capabilities = 1 << 36
	BulkUnitResults  Capabilities = 1 << 37
)

// Has reports whether every bit of want is set.
func (c Capabilities) Has(want Capabilities) bool { return c&want == want }

// Negotiate is what server and client agreed on: the bits both announced, MariaDB's extended ones only if both
// speak MariaDB's dialect.
func Negotiate(server, client Capabilities) Capabilities {
	both := server & client
	if (server|client)&LongPassword != 0 {
		both &= 1<<32 - 1
	}
	return both
}
