package analyze

import (
	"redrive/capture"
)

// A Reader is a capture being read: a *capture.Reader.
type Reader interface {
	Header() (*capture.Header, error)
	Next() bool
	Record() *capture.Record
	Err() error
	Ledger() (capture.Ledger, bool)
}

// Read summarises a whole capture; file is its name in the report. Where reading fails after the header, as at the end
// of a capture that was cut, it returns both a report of what came before and the error.
func Read(src Reader, file string, o Options) (*Report, error) {
	header, err := src.Header()
	if err != nil {
		return nil, err
	}
	s := NewSummary(o)
	for src.Next() {
		s.Add(src.Record())
	}
	from := Origin{File: file, Header: header, Err: src.Err()}
	if ledger, ok := src.Ledger(); ok {
		from.Ledger = &ledger
	}
	return s.Report(from), from.Err
}
