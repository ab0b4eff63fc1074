package client

import (
	"redrive/internal/wire"
)

// executeFlags is where a COM_STMT_EXECUTE payload has its flags.
const executeFlags = 5

// A Command takes one command from its first byte to the last byte of its reply. It has no I/O and no clock: while
// Sending, AppendNext gives packets to send; then Feed takes what comes back. A file that the server asks for (LOCAL
// INFILE) is answered by the one offered, or an empty one, so Sending may become true again after Feed. A Command is used over and over
// and allocates nothing once its buffers have grown.
type Command struct {
	Code  byte // COM_QUERY, …
	Reply wire.Reply

	split     wire.Splitter
	payload   []byte // what is still to be sent
	file      []byte // for the server's first request of a file
	sending   bool
	uploading bool // a file, not the command
	answers   bool // the command has a reply
	seq       byte
}

// Begin prepares for the command with this payload, command byte included, under the negotiated caps. payload must not
// change until it is sent.
func (c *Command) Begin(payload []byte, caps wire.Capabilities) {
	cursor := payload[0] == wire.ComStmtExecute && len(payload) > executeFlags && payload[executeFlags]&wire.CursorReadOnly != 0
	c.Code = payload[0]
	c.Reply.Begin(c.Code, caps, cursor)
	c.split = wire.Splitter{}
	c.payload, c.sending, c.uploading, c.seq, c.file = payload, true, false, 0, nil
	c.answers = wire.HasReply(c.Code)
}

// Offer names the file that answers the server's first request for one. It must not change until the command is done.
func (c *Command) Offer(file []byte) { c.file = file }

// Sending reports whether there is something to send.
func (c *Command) Sending() bool { return c.sending }

// Done reports whether the command is over: sent, and its reply, if it has one, read to the last byte.
func (c *Command) Done() bool { return !c.sending && (!c.answers || c.Reply.Done()) }

// AppendNext appends the next physical packet.
func (c *Command) AppendNext(dst []byte) []byte {
	n := min(len(c.payload), wire.MaxPayload)
	dst = append(dst, byte(n), byte(n>>8), byte(n>>16), c.seq)
	dst = append(dst, c.payload[:n]...)
	c.payload = c.payload[n:]
	c.seq++
	c.sending = n == wire.MaxPayload || c.uploading && n > 0 // an exact multiple, and a file, is ended by an empty packet
	return dst
}

// Abandon gives up sending: the server answered without waiting for the rest.
func (c *Command) Abandon() { c.payload, c.sending = nil, false }

// Feed takes bytes from the server and gives back those behind the reply's end. An error means that the reply could
// not be followed, and wraps wire.ErrLost.
func (c *Command) Feed(b []byte) (rest []byte, err error) {
	for !c.Reply.Done() {
		p, rest, ok := c.split.Next(b)
		if !ok {
			return nil, nil
		}
		b = rest
		if _, err := c.Reply.Feed(p); err != nil {
			return nil, err
		}
		if c.Reply.WantsFile() {
			c.Reply.FileSent()
			c.payload, c.sending, c.uploading, c.seq = c.file, true, true, p.Seq+1
			c.file = nil
		}
	}
	return b, nil
}
