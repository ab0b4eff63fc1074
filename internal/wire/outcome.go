package wire

// An Outcome is what became of a command: its reply, skimmed. With several results (procedures, multi-statements)
// counts are sums, and Status and Warnings are the last one's.
type Outcome struct {
	Results      uint32 // OK packets, result sets and an ERR
	ResultSets   uint32 // those with columns, even without rows
	Rows         uint64 // over all result sets
	Affected     uint64
	LastInsertID uint64 // the last one given
	Warnings     uint16
	Status       uint16 // the last status flags; meaningful only if HasStatus
	HasStatus    bool
	Errno        uint16 // 0 if no ERR came
	SQLState     [5]byte
	ReplyBytes   uint64 // packet headers included
	State        SessionState
}

// SessionState is what the server said about the session in the reply (session tracking). The slices are valid as
// long as the reply's Outcome is.
type SessionState struct {
	Schema        []byte // new default schema
	SchemaChanged bool
	GTIDs         []byte // as the server wrote them
	Transaction   []byte // transaction state, eight letters
	Redirect      bool   // the server told the client to go elsewhere
}

// Reset empties the outcome and keeps its buffers.
func (o *Outcome) Reset() {
	schema, gtids, transaction := o.State.Schema[:0], o.State.GTIDs[:0], o.State.Transaction[:0]
	*o = Outcome{}
	o.State.Schema, o.State.GTIDs, o.State.Transaction = schema, gtids, transaction
}

func (s *SessionState) note(block []byte) {
	EachTrack(block, func(kind byte, data []byte) {
		c := NewCursor(data)
		switch kind {
		case TrackSchema:
			s.Schema, s.SchemaChanged = append(s.Schema[:0], c.LenencBytes()...), true
		case TrackGTIDs:
			c.Skip(1)
			s.GTIDs = append(s.GTIDs[:0], c.LenencBytes()...)
		case TrackTransactionState:
			s.Transaction = append(s.Transaction[:0], c.LenencBytes()...)
		case TrackVariable:
			for c.Len() > 0 {
				name, value := c.LenencBytes(), c.LenencBytes()
				if !c.OK() {
					return
				}
				s.Redirect = s.Redirect || string(name) == "redirect_url" && len(value) > 0
			}
		}
	})
}
