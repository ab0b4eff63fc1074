package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
)

// An output is a capture file being written, or standard output.
type output struct {
	io.Writer
	file *os.File // nil for standard output
}

// createOutput creates a file for a capture, readable by its owner alone; "-" is standard output. A file that is there
// already is left alone: a capture cannot be had again. Pipes and devices are written to as they are.
func createOutput(name string, stdout io.Writer) (*output, error) {
	if name == "-" {
		return &output{Writer: stdout}, nil
	}
	flags := os.O_WRONLY | os.O_CREATE | os.O_EXCL
	if info, err := os.Stat(name); err == nil && !info.Mode().IsRegular() && !info.IsDir() {
		flags = os.O_WRONLY
	}
	file, err := os.OpenFile(name, flags, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return nil, usagef("--out %s: the file exists already; remove it or name another", name)
	}
	if err != nil {
		return nil, fmt.Errorf("--out: %w", err)
	}
	return &output{file, file}, nil
}

// Sync forces what was written to the disk, where there is one.
func (o *output) Sync() error {
	if o.file == nil {
		return nil
	}
	if info, err := o.file.Stat(); err != nil || !info.Mode().IsRegular() {
		return err
	}
	return o.file.Sync()
}

// Close closes the file.
func (o *output) Close() error {
	if o.file == nil {
		return nil
	}
	return o.file.Close()
}
