package mysqltest

import (
	"bytes"
	"sync"
)

// Printed keeps what is written to it: a log, or what a process prints. It may be read while that goes on. Its zero value is
// empty.
type Printed struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (p *Printed) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.text.Write(b)
}

func (p *Printed) String() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.text.String()
}
