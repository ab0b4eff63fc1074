package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// An output is a capture file being written, or standard output.
type output struct {
	io.Writer // the file itself, if it is one: what was written to it can be taken back
	name      string
	file      *os.File // nil for standard output
}

// createOutput creates a file for a capture, readable by its owner alone; "-" is standard output. A file that is there
// already is left alone: a capture cannot be had again. Pipes and devices are written to as they are.
func createOutput(name string, stdout io.Writer) (*output, error) {
	if name == "-" {
		return &output{stdout, name, nil}, nil
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
	return &output{file, name, file}, nil
}

// createNext creates the file that follows one of that name: under the same name if it is free, because the file was
// moved away, else under the first that is of today-000002.rdt, today-000003.rdt and so on.
func createNext(name string) (*output, error) {
	for n, next := 2, name; ; n++ {
		file, err := os.OpenFile(next, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
		if err == nil {
			return &output{file, next, file}, nil
		}
		if !errors.Is(err, fs.ErrExist) {
			return nil, fmt.Errorf("--out: %w", err)
		}
		next = numbered(name, n)
	}
}

// numbered puts a number before a file name's extension.
func numbered(name string, n int) string {
	dir, base := filepath.Split(name)
	ext := filepath.Ext(base)
	if ext == base { // a hidden file without one
		ext = ""
	}
	return fmt.Sprintf("%s%s-%06d%s", dir, strings.TrimSuffix(base, ext), n, ext)
}

// regular reports whether the output is a file on a disk, and not a pipe, a device or standard output.
func (o *output) regular() bool {
	if o.file == nil {
		return false
	}
	info, err := o.file.Stat()
	return err == nil && info.Mode().IsRegular()
}

// Sync forces what was written to the disk, where there is one.
func (o *output) Sync() error {
	if !o.regular() {
		return nil
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
