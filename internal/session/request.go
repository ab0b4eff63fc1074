package session

import (
	"time"

	"redrive/capture"
	"redrive/internal/wire"
)

// clientPiece takes a piece of what the client sent. A packet's first piece decides what it is for.
func (f *Follower) clientPiece(p *wire.Piece, at, sent time.Duration) {
	if p.Head {
		f.sending = f.useOf(p.Seq)
	}
	switch {
	case f.stage == stageGreeting:
		f.lose(at, "the client spoke before the server's greeting")
	case f.sending == useFile:
		f.filePiece(p)
	case f.sending == useSecret:
		f.secretPiece(p)
	case f.sending == useResponse:
		if payload, whole := f.client.gather(p, f.account()); whole {
			f.response(payload, at)
		}
	default:
		f.commandPiece(p, at, sent)
	}
}

// useOf tells what a packet of the client's with this sequence id is for. A client may send commands ahead of the end
// of an authentication (a QUIT behind its login). They begin at 0, which a round of the authentication can only if
// there were a hundred before it; and then the server has just asked.
func (f *Follower) useOf(seq byte) use {
	switch {
	case f.uploading:
		return useFile
	case f.stage == stageResponse:
		return useResponse
	case (f.stage == stageAuth || f.changing > 0) && (seq != 0 || f.asked):
		return useSecret
	}
	return useCommand
}

// filePiece passes over the file a client sends because the server asked for it, up to the empty packet that ends it:
// also when the server has answered before.
func (f *Follower) filePiece(p *wire.Piece) {
	var reading *command
	if c := f.oldest; c != nil && c.reply.WantsFile() {
		reading = c
		reading.statement.RequestBytes += p.StreamBytes()
		reading.follow(&f.client, p.Seq)
		if f.KeepFiles {
			f.keepFile(reading, p)
		}
	}
	if p.Head && p.Length == 0 {
		f.uploading = false
		if reading != nil {
			reading.reply.FileSent()
		}
	}
}

// keepFile keeps a piece of a file, unless the whole grows beyond MaxStatement, or what memory is left.
func (f *Follower) keepFile(c *command, p *wire.Piece) {
	s := &c.statement
	another := s.Flags.Has(capture.FileKept) // a statement that asks for two is played by neither
	if another || c.fileLost || c.file.Append(p.Data, f.maxStatement(), f.account()) < len(p.Data) {
		c.file.Reset(f.account())
		s.File, c.fileLost = nil, true
		s.Flags &^= capture.FileKept
		return
	}
	s.File = c.file.Bytes()
	if p.Head && p.Length == 0 {
		s.Flags |= capture.FileKept
	}
}

// secretPiece passes over a packet of an authentication.
func (f *Follower) secretPiece(p *wire.Piece) {
	if c := f.oldest; c != nil && c.code == wire.ComChangeUser {
		c.statement.RequestBytes += p.StreamBytes()
		c.follow(&f.client, p.Seq)
	}
	if p.Tail {
		f.asked = false
	}
}

// commandPiece gathers a command. Of one longer than MaxStatement the beginning is kept, and a hash over all.
func (f *Follower) commandPiece(p *wire.Piece, at, sent time.Duration) {
	if c := f.youngest; c != nil && wire.LeavesProtocol(c.code) {
		f.leave(c, at)
		return
	}
	if p.Head {
		f.incoming = f.newCommand()
	}
	c := f.incoming
	if c == nil {
		f.lose(at, "no memory is left for so many commands without a reply")
		return
	}
	f.add(c, p.Data)
	if !p.Tail {
		return
	}
	f.incoming = nil
	c.follow(&f.client, p.Seq)
	f.stamp(c, at, sent)
	f.accept(c, at)
}

// add appends a piece of the payload, or to its hash what is not kept.
func (f *Follower) add(c *command, data []byte) {
	c.length += uint64(len(data))
	if !c.hashing {
		kept := c.payload.Append(data, f.maxStatement(), f.account())
		if c.payload.Len() > 0 { // an empty packet is a command too: servers answer it with an error
			c.code = c.payload.Bytes()[0]
		}
		if kept == len(data) {
			return
		}
		f.beginHash(c)
		data = data[kept:]
	}
	c.hash.add(data)
}

// beginHash hashes what is kept of the command's text. What is sent with the text of another command, as the parameters
// of an execute are, is hashed from behind the command byte.
func (f *Follower) beginHash(c *command) {
	payload := c.payload.Bytes()
	c.behind = min(1, len(payload))
	switch c.code {
	case wire.ComQuery:
		if text, _, err := wire.QueryText(payload, f.caps); err == nil {
			c.behind = len(payload) - len(text)
		}
	case wire.ComStmtSendLongData:
		c.behind = min(5, len(payload))
	}
	c.hashing, c.hash = true, newTextHash
	c.hash.add(payload[c.behind:])
}

// A textHash is a hash by FNV-1a of 64 bits.
type textHash uint64

const newTextHash textHash = 0xCBF29CE484222325

func (h *textHash) add(b []byte) {
	sum := *h
	for _, c := range b {
		sum = (sum ^ textHash(c)) * 0x100000001B3
	}
	*h = sum
}

// truncate notes the length and the hash of the whole; no hash of what proves who somebody is.
func (f *Follower) truncate(c *command) {
	if !c.hashing { // it broke off
		f.beginHash(c)
	}
	s := &c.statement
	s.Flags |= capture.Truncated
	s.TextLen = c.length - uint64(c.behind)
	if c.code != wire.ComChangeUser {
		s.TextHash = uint64(c.hash)
	}
}

// stamp notes when a command came, and numbers it.
func (f *Follower) stamp(c *command, at, sent time.Duration) {
	f.number++
	s := &c.statement
	s.Number, s.Command = f.number, c.code
	s.Received, s.Complete, s.Sent = f.arrived, at, sent
	s.RequestBytes = c.length + wire.HeaderLen*(1+c.length/wire.MaxPayload)
}
