package capture

import (
	"encoding/binary"
	"hash/crc32"
	"time"
)

// The numbers of FORMAT.md. A reader refuses what exceeds the bounds before it allocates for it.
const (
	fileMagic     = "\x89RDT\r\n\x1a\n"
	blockMagic    = "RDBk"
	trailerMagic  = "\x89RDTend\n"
	formatVersion = 1

	fileHeaderLen  = 16
	blockHeaderLen = 56
	trailerLen     = 20
	indexEntryLen  = 48

	maxHeaderJSON = 1 << 20
	maxRaw        = 256 << 20 // bytes of a block before compression
	maxRecords    = 1 << 18   // records of a block
	maxWords      = 1 << 16   // entries of a block's dictionary

	blockSize = 1 << 20 // raw bytes at which a writer ends a block
)

// Block types.
const (
	blockRecords byte = 1 + iota
	blockIndex
	blockFooter
)

// Codecs of a block's stored bytes.
const (
	codecRaw byte = iota
	codecZstd
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// none stands in a block for a time that no record gives.
const none time.Duration = -1

// A BlockInfo says what is in one block of records, as its header and the file's index tell it.
type BlockInfo struct {
	Offset     int64 // of the block's header in the file
	Records    int
	Earliest   time.Duration // smallest place in start order of its records; -1 if it has none but gaps
	LastDone   time.Duration // largest Done or At of its records; -1 if it has none but gaps
	OldestOpen time.Duration // start of the oldest statement begun and not ended by the block's end; -1 for none
	Horizon    time.Duration // no record of a later block has a place in start order before this, gaps excepted
}

// appendIndexEntry appends the block's entry in the index.
func (b *BlockInfo) appendIndexEntry(dst []byte) []byte {
	dst = binary.LittleEndian.AppendUint64(dst, uint64(b.Offset))
	dst = binary.LittleEndian.AppendUint64(dst, uint64(b.Records))
	return b.appendTimes(dst)
}

func (b *BlockInfo) times() [4]*time.Duration {
	return [...]*time.Duration{&b.Earliest, &b.LastDone, &b.OldestOpen, &b.Horizon}
}

func (b *BlockInfo) appendTimes(dst []byte) []byte {
	for _, t := range b.times() {
		dst = binary.LittleEndian.AppendUint64(dst, uint64(*t))
	}
	return dst
}

// A blockHeader is the fixed head of a block.
type blockHeader struct {
	kind   byte
	codec  byte
	stored int // bytes that follow
	raw    int // bytes they hold
	block  BlockInfo
}

// put writes the header into the first blockHeaderLen bytes of buf, for the stored bytes in pieces.
func (h *blockHeader) put(buf []byte, stored ...[]byte) {
	head := append(buf[:0], blockMagic...)
	head = append(head, h.kind, h.codec, 0, 0)
	head = binary.LittleEndian.AppendUint32(head, uint32(h.stored))
	head = binary.LittleEndian.AppendUint32(head, uint32(h.raw))
	head = binary.LittleEndian.AppendUint32(head, uint32(h.block.Records))
	head = h.block.appendTimes(head)
	binary.LittleEndian.AppendUint32(head, blockSum(buf, stored...))
}

// blockSum is the checksum of a whole block: its header up to the checksum, and its stored bytes.
func blockSum(head []byte, stored ...[]byte) uint32 {
	sum := crc32.Checksum(head[:blockHeaderLen-4], castagnoli)
	for _, p := range stored {
		sum = crc32.Update(sum, castagnoli, p)
	}
	return sum
}

// parseBlockHeader reads a header; the caller checks the bounds and the checksum.
func parseBlockHeader(buf []byte) blockHeader {
	le := binary.LittleEndian
	at := func(off int) time.Duration { return time.Duration(le.Uint64(buf[off:])) }
	return blockHeader{
		kind:   buf[4],
		codec:  buf[5],
		stored: int(le.Uint32(buf[8:])),
		raw:    int(le.Uint32(buf[12:])),
		block: BlockInfo{
			Records:  int(le.Uint32(buf[16:])),
			Earliest: at(20), LastDone: at(28), OldestOpen: at(36), Horizon: at(44),
		},
	}
}

// A footer is the JSON of the last block.
type footer struct {
	Ledger Ledger `json:"ledger"`
	Index  int64  `json:"index"`  // offset of the first index block
	Blocks int    `json:"blocks"` // blocks of records, which is the number of the index's entries
}

// Columns of a block of records. The numbers are the format: new ones are added at the end.
const (
	colKinds = 1 + iota
	colSlots
	colSessions
	colWordLengths
	colWordBytes

	colText
	colTextRuns
	colTextDigits
	colGTIDs
	colGTIDRuns
	colGTIDDigits

	colIntended
	colReceived
	colComplete
	colSent
	colFirst
	colDone

	colLows // the low 16 bits of the six times above, in their order
	_       // Received
	_       // Complete
	_       // Sent
	_       // First
	_       // Done

	colValueBytes
	colAttributeBytes

	colNumbers // the first of numberCount columns
)

// Columns behind those of a statement's numbers.
const (
	colStartAt = colNumbers + numberCount + iota
	colStartAccepted
	colStartCollation
	colStartCapabilities
	colStartConnectionID
	colStartStatus
	colStartSource
	colStartCopy
	colStartUser
	colStartSchema
	colStartVersion
	colStartClient
	colStartAttributes

	colEndAt
	colEndReason
	colEndErrno
	colEndCommands
	colEndDetail

	colGapFrom
	colGapTo
	colGapStatements
	colGapSessions
	colGapReason

	colStartJoined
	colStartPrepared
	colStartUnknown

	colLong // of a statement: a word
	colFile // of a statement: a word

	colGapCut

	colPlain // of a statement: a word

	columnCount // all ids are below
)

// Numbers of a statement, each a column: colNumbers + n.
const (
	numNumber = iota
	numTxn
	numPlace
	numTxnEnd
	numCommand
	numFlags
	numStatementID
	numSchema // a word
	numTextLen
	numTextHash
	numNulls      // a word
	numTypes      // a word
	numValues     // length of the values, which stand in colValueBytes
	numAttributes // length of the attributes, which stand in colAttributeBytes
	numStalled
	numRequest // RequestBytes less the lengths of text, values and attributes
	numResults
	numResultSets
	numRows
	numAffected
	numLastInsertID
	numWarnings
	numStatus
	numBits
	numErrno
	numSQLState // a word
	numReply
	numStateSchema      // a word
	numStateTransaction // a word

	numberCount
)

// Bits of numBits.
const (
	bitHasStatus = 1 << iota
	bitSchemaChanged
	bitRedirect
)

// zigzag maps a difference to a number that is small when the difference is.
func zigzag(d uint64) uint64 { return d<<1 ^ uint64(int64(d)>>63) }

func unzigzag(z uint64) uint64 { return z>>1 ^ -(z & 1) }

// timeCode is a time as stored: 0 for none, else its distance from p. Times are never negative.
func timeCode(t, p time.Duration) uint64 {
	if t <= 0 {
		return 0
	}
	return zigzag(uint64(t-p)) + 1
}

func timeOf(code uint64, p time.Duration) time.Duration {
	if code == 0 {
		return 0
	}
	return p + time.Duration(unzigzag(code-1))
}
