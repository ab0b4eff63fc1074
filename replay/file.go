package replay

import (
	"fmt"
	"io"
	"time"

	"redrive/capture"
)

// A File is a capture that can be read more than once: first to see what is in it, then to play it.
type File struct {
	Name string                        // for messages
	Open func() (io.ReadCloser, error) // gives the same bytes each time: what plays is what the gate has seen
}

// A stream gives the records of several captures as one, in start order, on the time line of the earliest: offsets
// count from its start, so that captures taken side by side are played side by side.
type stream struct {
	parts []*part
	at    *part // whose record is at hand
}

// A part is one file of a stream.
type part struct {
	index   int           // of the file
	shift   time.Duration // added to its times
	file    io.Closer
	ordered *capture.Ordered
	more    bool
}

func openStream(files []File, scan *Scan) (*stream, error) {
	s := new(stream)
	for i, f := range files {
		r, err := f.Open()
		if err != nil {
			s.Close()
			return nil, fmt.Errorf("open capture: %w", err)
		}
		p := &part{index: i, shift: scan.Files[i].Shift, file: r, ordered: capture.InStartOrder(capture.NewReader(r, f.Name))}
		p.more = p.ordered.Next()
		s.parts = append(s.parts, p)
	}
	return s, nil
}

// Next goes on to the next record. A file that ends early does not end the others.
func (s *stream) Next() bool {
	if s.at != nil {
		s.at.more = s.at.ordered.Next()
		s.at = nil
	}
	for _, p := range s.parts {
		if p.more && (s.at == nil || p.place() < s.at.place()) {
			s.at = p
		}
	}
	return s.at != nil
}

// Record is the record at hand, valid until the next Next.
func (s *stream) Record() *capture.Record { return s.at.ordered.Record() }

// Part is the file that the record at hand is from.
func (s *stream) Part() *part { return s.at }

func (s *stream) Close() {
	for _, p := range s.parts {
		p.file.Close() // read only: nothing to lose
	}
}

func (p *part) place() time.Duration { return p.ordered.Record().Place() + p.shift }
