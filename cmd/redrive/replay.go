package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"redrive/capture"
	"redrive/internal/client"
	"redrive/internal/pace"
	"redrive/internal/units"
	"redrive/internal/wire"
	"redrive/replay"
)

type replayOptions struct {
	connect connectOptions
	speed   string
	scale   int
	budget  int
	out     string
	format  string
	gate    replay.Gate
}

func newReplay(s streams) *cobra.Command {
	var o replayOptions
	c := &cobra.Command{
		Use:   "replay FILE… --host HOST [--speed 1|F|max] [--scale N] [--out FILE]",
		Short: "Send what captures hold to a server, and compare what comes back",
		Long: `Send the statements of captures to a server: one session for every captured one, each in its captured order, at
the captured pace times --speed, or without gaps (max). With --scale N every session has N-1 copies beside it, which
send its reads but nothing that writes or locks. Several files are played side by side as their clocks tell.

A replay never reaches the server a capture was taken from, unless --allow-same-server says so, and writes nothing
unless --allow-writes says so and the target is known to be meant: by a schema named ` + replay.MarkerSchema + ` on it, or by
--i-know with the target's address.

A replay gives up where the target takes no sessions any more. Exit status 0 says that everything due was sent and
answered and the captures were whole; differences are reported, they do not fail. 1: incomplete. 2: used wrongly, or
refused.`,
		Example: `  redrive replay today.rdt --host 10.0.0.7 --user app --speed 2 --out replayed.rdt`,
		RunE: func(c *cobra.Command, args []string) error {
			return runReplay(c.Context(), &o, args, s)
		},
	}
	f := c.Flags()
	o.connect.addFlags(f)
	f.StringVar(&o.speed, "speed", "1", "pace: 1 as captured, 2 twice as fast, max without gaps")
	f.IntVar(&o.scale, "scale", 1, "sessions for every captured one; copies send reads only")
	f.IntVar(&o.budget, "read-ahead", 64, "MiB of statements held between the file and the sessions")
	f.StringVarP(&o.out, "out", "o", "", "capture file to record the replay into; - is standard output")
	f.StringVar(&o.format, "format", "text", "of the summary: text or json")
	f.BoolVar(&o.gate.AllowSameServer, "allow-same-server", false, "replay even to the captured server")
	f.BoolVar(&o.gate.AllowWrites, "allow-writes", false, "replay captures that write; see also --i-know")
	f.StringVar(&o.gate.IKnow, "i-know", "", "the target's HOST:PORT (or socket), as proof that writing to it is meant")
	return c
}

func runReplay(ctx context.Context, o *replayOptions, args []string, s streams) error {
	speed, err := o.check(args)
	if err != nil {
		return err
	}
	config, err := o.connect.config(s.err)
	if err != nil {
		return err
	}
	files, closeAll, err := replayFiles(ctx, args, s.in)
	if err != nil {
		return orInterrupted(ctx, err)
	}
	defer closeAll()
	scan, err := replay.ScanFiles(ctx, files)
	if err != nil {
		return orInterrupted(ctx, err)
	}
	target, err := o.admit(ctx, scan, config, s.err)
	if err != nil {
		return orInterrupted(ctx, err)
	}
	config.Attributes = []wire.Attribute{{Name: "program_name", Value: "redrive replay"}}
	p := &replay.Player{
		Files: files, Scan: scan, Config: config, Speed: speed, Scale: o.scale, Budget: o.budget << 20,
		Clock:  capture.NewClock(),
		Notify: func(line string) { fmt.Fprintf(s.err, "redrive replay: %s\n", line) },
	}
	fmt.Fprintf(s.err, "redrive replay: %s of %s to %s, speed %s, scale %d\n",
		units.Count(scan.Statements, "statement"), units.Count(scan.Sessions, "session"), config.Address, pace.FormatSpeed(speed), o.scale)
	result, err := o.play(ctx, p, target, args, s)
	if result == nil {
		return err
	}
	return errors.Join(err, o.report(result, s))
}

func (o *replayOptions) check(args []string) (speed float64, err error) {
	if len(args) == 0 {
		return 0, usagef("no capture: want the names of one or more files, or - for standard input")
	}
	if speed, err = pace.ParseSpeed(o.speed); err != nil {
		return 0, usagef("--speed %w", err)
	}
	switch {
	case o.scale < 1 || o.scale > 1<<16:
		return 0, usagef("--scale %d: want a number from 1 to 65536", o.scale)
	case o.budget < 1 || o.budget > 1<<20:
		return 0, usagef("--read-ahead %d: want a number of MiB from 1 to 1048576", o.budget)
	case o.format != "text" && o.format != "json":
		return 0, usagef("--format %s: want text or json", o.format)
	case o.out == "-" && o.format == "json":
		return 0, usagef("--out - and --format json both write to standard output: give --out a file")
	}
	return speed, nil
}

// replayFiles opens the captures to play. Each is read twice, from one and the same open file and no further than it
// reached at first, so that what is played is what the gate has seen. Pipes, which can be read only once, are copied to
// temporary files.
func replayFiles(ctx context.Context, args []string, stdin io.Reader) (files []replay.File, closeAll func(), err error) {
	var opened []*os.File
	closeAll = func() {
		for _, f := range opened {
			f.Close() // read only: nothing to lose
		}
	}
	for _, name := range args {
		f, size, err := openCapture(ctx, name, stdin)
		if err != nil {
			closeAll()
			return nil, nil, err
		}
		opened = append(opened, f)
		files = append(files, replay.File{Name: name, Open: func() (io.ReadCloser, error) {
			return io.NopCloser(io.NewSectionReader(f, 0, size)), nil
		}})
	}
	return files, closeAll, nil
}

func openCapture(ctx context.Context, name string, stdin io.Reader) (f *os.File, size int64, err error) {
	if name == "-" {
		return spool(ctx, stdin)
	}
	if f, err = os.Open(name); err != nil {
		return nil, 0, fmt.Errorf("open capture: %w", err)
	}
	info, err := f.Stat()
	if err != nil {
		f.Close()
		return nil, 0, fmt.Errorf("open capture: %w", err)
	}
	if info.Mode().IsRegular() {
		return f, info.Size(), nil
	}
	defer f.Close()
	return spool(ctx, f)
}

// spool copies r to a temporary file that has no name any more, so that it goes when it is closed.
func spool(ctx context.Context, r io.Reader) (f *os.File, size int64, err error) {
	if f, err = os.CreateTemp("", "redrive-*.rdt"); err != nil {
		return nil, 0, fmt.Errorf("keep a pipe's capture: %w", err)
	}
	os.Remove(f.Name())
	input := untilDone(ctx, r)
	defer input.Close()
	if size, err = io.Copy(f, input); err != nil {
		f.Close()
		return nil, 0, fmt.Errorf("keep a pipe's capture: %w", err)
	}
	return f, size, nil
}

// admit asks the target who it is, and the gate whether the captures may be played to it.
func (o *replayOptions) admit(ctx context.Context, scan *replay.Scan, config client.Config, stderr io.Writer) (*replay.Target, error) {
	config.Schema = "" // the target may lack it, and that is not the gate's business
	db, err := openDB(config)
	if err != nil {
		return nil, err
	}
	defer db.Close()
	target, err := replay.InspectTarget(ctx, db, config.Network, config.Address)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", config.Address, err)
	}
	notes, err := o.gate.Check(scan, &target)
	for _, note := range notes {
		fmt.Fprintf(stderr, "redrive replay: %s\n", note)
	}
	if err != nil {
		return nil, &exitError{exitUsage, err}
	}
	return &target, nil
}

// play runs the player, recorded if that was asked for. Without a result nothing was played.
func (o *replayOptions) play(ctx context.Context, p *replay.Player, target *replay.Target, args []string, s streams) (result *replay.Result, err error) {
	if o.out == "" {
		return p.Run(ctx)
	}
	file, err := createOutput(o.out, s.out)
	if err != nil {
		return nil, err
	}
	p.Recorder = capture.NewRecorder(file.Writer, o.header(p, target, args), capture.RecorderOptions{OnFull: capture.Block, Sync: file.Sync})
	result, err = p.Run(ctx)
	ledger, closeErr := p.Recorder.Close(0)
	fmt.Fprintf(s.err, "redrive replay: recorded in %s: %d commands sent = %d stored + %d shed\n", o.out, ledger.Forwarded, ledger.Stored, ledger.Shed)
	if err := errors.Join(closeErr, file.Close()); err != nil {
		return result, errors.Join(err, fmt.Errorf("recording in %s is not complete", o.out))
	}
	return result, err
}

// header says what the recording of a replay comes from.
func (o *replayOptions) header(p *replay.Player, target *replay.Target, args []string) capture.Header {
	h := newHeader("replay", p.Clock)
	h.Backend, h.Resolved, h.Server = target.Address, target.Resolved, &target.Server
	h.Source = strings.Join(args, " ")
	h.Settings = map[string]string{"speed": pace.FormatSpeed(p.Speed), "scale": strconv.Itoa(o.scale)}
	return h
}

// report prints the summary. An incomplete replay has failed.
func (o *replayOptions) report(result *replay.Result, s streams) error {
	out := s.out
	if o.out == "-" {
		out = s.err
	}
	write := result.WriteText
	if o.format == "json" {
		write = result.WriteJSON
	}
	if err := write(out); err != nil {
		return fmt.Errorf("write the summary: %w", err)
	}
	if !result.Complete() {
		return errors.New("the replay is incomplete, as the summary says")
	}
	return nil
}
