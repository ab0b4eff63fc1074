package capture

import (
	"errors"
	"io"
	"time"
)

// A Sink takes records. What it is given it has copied when the call returns.
type Sink interface {
	Statement(*Statement)
	Begin(*Statement)
	SessionStart(*SessionStart)
	SessionEnd(*SessionEnd)
}

// A Writer writes a capture file, block by block, in the caller's goroutine; a Recorder is the one for many of them.
// It keeps its first error and ignores every record after it, so that checking Close is enough. It is not safe for
// concurrent use.
type Writer struct {
	enc      *encoder
	spare    *block
	out      *output
	promised time.Duration
	closed   bool
}

// NewWriter writes the file's header to w and returns a Writer that goes on there. It writes whole blocks of about
// 1 MiB before compression, one Write each, and never seeks.
func NewWriter(w io.Writer, h Header) *Writer {
	return &Writer{enc: newEncoder(), spare: new(block), out: newOutput(w, h, nil)}
}

// Statement stores a statement that is done. The flag Begun is the Writer's: it is set if a begin was stored.
func (w *Writer) Statement(s *Statement) {
	if w.ready() {
		w.enc.statement(s)
		w.flushFull()
	}
}

// Begin stores that a statement is open; its end follows as a Statement, or never.
func (w *Writer) Begin(s *Statement) {
	if w.ready() {
		w.enc.beginStatement(s)
		w.flushFull()
	}
}

// SessionStart stores a login that succeeded.
func (w *Writer) SessionStart(s *SessionStart) {
	if w.ready() {
		w.enc.sessionStart(s)
		w.flushFull()
	}
}

// SessionEnd stores the end of a connection; statements of it that are still open have no end.
func (w *Writer) SessionEnd(s *SessionEnd) {
	if w.ready() {
		w.enc.sessionEnd(s)
		w.flushFull()
	}
}

// Gap stores what was left out.
func (w *Writer) Gap(g *Gap) {
	if w.ready() {
		w.enc.gap(g)
		w.flushFull()
	}
}

// Horizon promises that no record that is stored after this call has a place in start order before t: no statement
// and no begin started, no session started or ended, no begun statement was done before it. It lets readers give start
// order in bounded memory; without any promise they hold the whole file. Promises never shrink.
func (w *Writer) Horizon(t time.Duration) { w.promised = max(w.promised, t) }

// Flush writes what is buffered as a block.
func (w *Writer) Flush() error {
	if w.ready() && w.enc.block.info.Records > 0 {
		w.flush()
	}
	return w.out.err
}

// Close writes what is buffered, the index and the footer with l. It does not close the underlying writer.
func (w *Writer) Close(l Ledger) error {
	if w.closed {
		return errors.Join(w.out.err, errors.New("capture: closed twice"))
	}
	if w.Flush() == nil {
		w.out.end(l)
	}
	w.closed = true
	return w.out.err
}

func (w *Writer) ready() bool { return w.out.err == nil && !w.closed }

func (w *Writer) flushFull() {
	if w.enc.full() {
		w.flush()
	}
}

func (w *Writer) flush() {
	full := w.enc.take(w.spare)
	full.info.Horizon = w.promised
	w.out.records(full)
	w.spare = full
}
