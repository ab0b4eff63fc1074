package wire

import (
	"bytes"
	"fmt"
)

// An OK is an OK packet, or the EOF packet that ends rows: what both carry.
type OK struct {
	Affected, LastInsertID uint64
	Status, Warnings       uint16
	Track                  []byte // session state block, if any; see Outcome.Schema
}

// ParseOK reads an OK packet: header 00, or FE where it ends rows.
func ParseOK(payload []byte, caps Capabilities) (OK, error) {
	var ok OK
	c := NewCursor(payload)
	c.Skip(1)
	ok.Affected = c.Lenenc()
	ok.LastInsertID = c.Lenenc()
	ok.Status = c.Uint16()
	if caps.Has(Protocol41) {
		ok.Warnings = c.Uint16()
	}
	if !c.OK() {
		return ok, fmt.Errorf("OK packet: %w", errShort)
	}
	// The session state may be announced and then be missing, info field included: ask the length, not the flag.
	if caps.Has(SessionTrack) && ok.Status&StatusStateChanged != 0 && c.Len() > 0 {
		c.LenencBytes() // info
		if c.Len() > 0 {
			ok.Track = c.LenencBytes()
		}
	}
	return ok, nil
}

// ParseEOF reads an EOF packet: warnings stand before status, the other way round than in an OK.
func ParseEOF(payload []byte) OK {
	c := NewCursor(payload)
	c.Skip(1)
	warnings := c.Uint16()
	return OK{Warnings: warnings, Status: c.Uint16()}
}

// AppendOK appends an OK packet's payload with the given header (00, or FE at the end of rows), without session state.
func AppendOK(dst []byte, header byte, ok OK) []byte {
	dst = AppendLenenc(append(dst, header), ok.Affected)
	dst = AppendLenenc(dst, ok.LastInsertID)
	return append(dst, byte(ok.Status), byte(ok.Status>>8), byte(ok.Warnings), byte(ok.Warnings>>8))
}

// Error is an ERR packet.
type Error struct {
	Errno    uint16
	SQLState string // empty where the server sent none, as before the login
	Message  string // may hold literals of the statement: not for logs or files
}

func (e *Error) Error() string {
	if e.SQLState == "" {
		return fmt.Sprintf("error %d: %s", e.Errno, e.Message)
	}
	return fmt.Sprintf("error %d (%s): %s", e.Errno, e.SQLState, e.Message)
}

// ParseError reads an ERR packet, header FF included, with or without an SQLSTATE.
func ParseError(payload []byte) *Error {
	c := NewCursor(payload)
	c.Skip(1)
	e := &Error{Errno: c.Uint16()}
	message := c.Rest()
	if len(message) >= 6 && message[0] == '#' {
		e.SQLState = string(message[1:6])
		message = message[6:]
	}
	e.Message = string(bytes.TrimRight(message, "\x00"))
	return e
}

// AppendError appends an ERR packet's payload.
func AppendError(dst []byte, e *Error) []byte {
	dst = append(dst, 0xFF, byte(e.Errno), byte(e.Errno>>8))
	if e.SQLState != "" {
		dst = append(append(dst, '#'), e.SQLState...)
	}
	return append(dst, e.Message...)
}

// Session state changes, as an OK packet's Track carries them.
const (
	TrackVariable         byte = 0
	TrackSchema           byte = 1
	TrackState            byte = 2
	TrackGTIDs            byte = 3
	TrackCharacteristics  byte = 4 // of the transaction
	TrackTransactionState byte = 5 // of the transaction: eight letters
)

// EachTrack calls f for every entry of a session state block; unknown types are passed on, broken tails ignored.
func EachTrack(block []byte, f func(kind byte, data []byte)) {
	c := NewCursor(block)
	for c.Len() > 0 {
		kind := c.Byte()
		data := c.LenencBytes()
		if !c.OK() {
			return
		}
		f(kind, data)
	}
}
