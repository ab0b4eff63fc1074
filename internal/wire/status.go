package wire

// Status flags of OK and EOF packets.
const (
	StatusInTrans            uint16 = 0x0001
	StatusAutocommit         uint16 = 0x0002
	StatusMoreResults        uint16 = 0x0008
	StatusCursorExists       uint16 = 0x0040
	StatusLastRowSent        uint16 = 0x0080
	StatusDBDropped          uint16 = 0x0100
	StatusNoBackslashEscapes uint16 = 0x0200
	StatusPSOutParams        uint16 = 0x1000
	StatusStateChanged       uint16 = 0x4000
)
