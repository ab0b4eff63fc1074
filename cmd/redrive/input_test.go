package main

import (
	"bytes"
	"context"
	"io"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"
)

// The first Ctrl-C ends a command that waits for a silent pipe, and what was not read yet is no damage of the file.
func TestInterruptedInput(t *testing.T) {
	file := aCapture(t, 20)
	whole, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, args := range []string{
		"analyze -", "trace cat -", "trace info -", "trace verify -", "replay - --host 127.0.0.1",
		"analyze - " + strings.Repeat(file+" ", 9), "trace verify - " + file + " " + file,
	} {
		for _, sent := range []int{0, 10, len(whole) - 1} {
			ctx, cancel := context.WithCancel(context.Background())
			in, pipe := io.Pipe()
			go func() {
				pipe.Write(whole[:sent])
				time.Sleep(20 * time.Millisecond) // it waits by now, or will see ctx ended before it does
				cancel()
			}()
			var out, errs bytes.Buffer
			words := strings.Fields(args)
			status := run(ctx, words, streams{in, &out, &errs})
			pipe.Close()
			name := "redrive " + words[0]
			if words[0] == "trace" {
				name += " " + words[1]
			}
			if status != exitFailed || errs.String() != name+": interrupted\n" {
				t.Errorf("%s interrupted after %d bytes exits %d with %q, want 1 with %q", args, sent, status, errs.String(), name+": interrupted\n")
			}
			if out.Len() > 0 && words[1] != "cat" {
				t.Errorf("%s interrupted after %d bytes prints %q, want nothing", args, sent, out.String())
			}
		}
	}
}

// Whoever asks for help with what is not there, or prints to a full disk, is told.
func TestHelpAndVersion(t *testing.T) {
	for args, want := range map[string]int{"help": exitDone, "help replay": exitDone, "help trace cat": exitDone, "help foo": exitUsage, "help trace foo": exitUsage} {
		if status, _, errs := runArgs(nil, strings.Fields(args)...); status != want || (errs == "") != (want == exitDone) {
			t.Errorf("%s exits %d with %q, want %d", args, status, errs, want)
		}
	}
	var errs bytes.Buffer
	if status := run(context.Background(), []string{"version"}, streams{strings.NewReader(""), fullDisk{}, &errs}); status != exitFailed || !strings.Contains(errs.String(), "no space left on device") {
		t.Errorf("version to a full disk exits %d with %q, want 1 and why", status, errs.String())
	}
}

// fullDisk is what /dev/full is.
type fullDisk struct{}

func (fullDisk) Write([]byte) (int, error) { return 0, syscall.ENOSPC }
