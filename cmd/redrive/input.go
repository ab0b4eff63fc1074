package main

import (
	"context"
	"errors"
	"io"
	"os"
)

// errInterrupted is all that is said of a command that was stopped while it read.
var errInterrupted = errors.New("interrupted")

// orInterrupted is err, but where ctx has ended: there an error is only its echo.
func orInterrupted(ctx context.Context, err error) error {
	if err != nil && ctx.Err() != nil {
		return errInterrupted
	}
	return err
}

// untilDone reads r until ctx is done, so that Ctrl-C ends the reading of a large file at once, and that of a pipe which
// stays silent. Close it when done; r is left open.
func untilDone(ctx context.Context, r io.Reader) io.ReadCloser {
	if f, ok := r.(*os.File); ok {
		if info, err := f.Stat(); err == nil && (info.Mode().IsRegular() || info.IsDir()) {
			return &checked{ctx, r}
		}
	}
	out, in := io.Pipe()
	stop := context.AfterFunc(ctx, func() { in.CloseWithError(context.Cause(ctx)) })
	go func() { // outlives Close where r stays silent, as nothing else can end a read of standard input
		_, err := io.CopyBuffer(in, struct{ io.Reader }{r}, make([]byte, 64<<10))
		in.CloseWithError(err)
	}()
	return &piped{out, stop}
}

// checked looks at the context before every read, which is enough where reads never wait.
type checked struct {
	ctx context.Context
	io.Reader
}

func (c *checked) Read(p []byte) (int, error) {
	if c.ctx.Err() != nil {
		return 0, context.Cause(c.ctx)
	}
	return c.Reader.Read(p)
}

func (*checked) Close() error { return nil }

type piped struct {
	*io.PipeReader
	stop func() bool
}

func (p *piped) Close() error {
	p.stop()
	return p.PipeReader.Close()
}
