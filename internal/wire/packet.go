package wire

// HeaderLen is the size of a physical packet's header: three bytes of length, one of sequence id.
const HeaderLen = 4

// MaxPayload is the longest payload of one physical packet. A payload of exactly this length is continued by the
// next physical packet, which is empty when the logical packet's length is an exact multiple.
const MaxPayload = 1<<24 - 1

// AppendPacket appends payload as one logical packet, split as needed, its first physical packet numbered seq, and
// returns the sequence id that follows.
func AppendPacket(dst []byte, seq byte, payload []byte) ([]byte, byte) {
	for {
		n := min(len(payload), MaxPayload)
		dst = append(dst, byte(n), byte(n>>8), byte(n>>16), seq)
		dst = append(dst, payload[:n]...)
		payload = payload[n:]
		seq++
		if n < MaxPayload {
			return dst, seq
		}
	}
}

// A Piece is a run of payload bytes of one logical packet, as they came in.
type Piece struct {
	Data   []byte // aliases the bytes given to Next
	Seq    byte   // sequence id of the physical packet; good for diagnosis only
	Length int    // payload length of the logical packet's first physical packet
	Head   bool   // Data begins the logical packet
	Tail   bool   // Data ends it
	Opens  bool   // Data begins a physical packet: a header stood before it
}

// StreamBytes is how many bytes of the stream the piece takes, its header included.
func (p *Piece) StreamBytes() uint64 {
	n := uint64(len(p.Data))
	if p.Opens {
		n += HeaderLen
	}
	return n
}

// A Splitter cuts a stream of bytes into pieces of logical packets. It copies nothing but headers; the zero value
// stands before a packet.
type Splitter struct {
	header    [HeaderLen]byte
	have      int  // header bytes seen of the packet that begins
	remaining int  // payload bytes to come of the physical packet at hand
	length    int  // of the logical packet's first physical packet
	full      bool // the physical packet at hand has MaxPayload bytes: another follows
	continued bool // the next header belongs to the logical packet at hand
	headless  bool // no piece of the logical packet at hand has been given out
	unopened  bool // nor of the physical packet at hand
	inPayload bool
}

// Next takes the first piece off b. ok is false when b ended before a piece was there; rest is then empty, and the
// next call goes on with the bytes that follow. An empty packet gives a piece without data.
func (s *Splitter) Next(b []byte) (p Piece, rest []byte, ok bool) {
	rest, ok = s.Cut(b, &p)
	return p, rest, ok
}

// Cut is Next with the piece put into p, which is left alone if there is none: a Piece returned or passed on by value
// costs more than the cutting.
func (s *Splitter) Cut(b []byte, p *Piece) (rest []byte, ok bool) {
	for !s.inPayload {
		if s.have == 0 && len(b) >= HeaderLen { // the common case: a whole header
			s.begin(b[0], b[1], b[2], b[3])
			b = b[HeaderLen:]
			break
		}
		n := copy(s.header[s.have:], b)
		s.have += n
		b = b[n:]
		if s.have < HeaderLen {
			return nil, false
		}
		s.begin(s.header[0], s.header[1], s.header[2], s.header[3])
	}
	if len(b) == 0 && s.remaining > 0 {
		return nil, false
	}
	n := min(len(b), s.remaining)
	s.remaining -= n
	p.Data, p.Seq, p.Length = b[:n:n], s.header[3], s.length
	p.Head, p.Tail, p.Opens = s.headless, s.remaining == 0 && !s.full, s.unopened
	s.headless, s.unopened = false, false
	if s.remaining == 0 {
		s.inPayload = false
		s.have = 0
		s.continued = s.full
	}
	return b[n:], true
}

func (s *Splitter) begin(b0, b1, b2, seq byte) {
	s.remaining = int(b0) | int(b1)<<8 | int(b2)<<16
	s.header[3] = seq
	s.full = s.remaining == MaxPayload
	s.inPayload, s.unopened = true, true
	if !s.continued {
		s.length = s.remaining
		s.headless = true
	}
}

// AtBoundary reports whether the stream stands between two logical packets.
func (s *Splitter) AtBoundary() bool { return !s.inPayload && s.have == 0 && !s.continued }
