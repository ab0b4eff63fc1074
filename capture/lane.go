package capture

// A Lane is a way into a Recorder that goroutines of their own use: it shares no lock with other lanes. It is safe for
// concurrent use. All records of one session go through one lane.
type Lane struct{ r *Recorder }

// Lane is lane number i, modulo how many there are.
func (r *Recorder) Lane(int) *Lane { return &r.lane }

// Statement is the Recorder's.
func (l *Lane) Statement(s *Statement) { l.r.Statement(s) }

// Begin is the Recorder's.
func (l *Lane) Begin(s *Statement) { l.r.Begin(s) }

// SessionStart is the Recorder's.
func (l *Lane) SessionStart(s *SessionStart) { l.r.SessionStart(s) }

// SessionEnd is the Recorder's.
func (l *Lane) SessionEnd(s *SessionEnd) { l.r.SessionEnd(s) }
