package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

// TestMain lets scripts call redrive: the test binary then does what main does.
func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){
		"redrive": func() {
			ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
			defer stop()
			os.Exit(run(ctx, os.Args[1:], streams{os.Stdin, os.Stdout, os.Stderr}))
		},
		"rdt": makeCapture,
	})
}

// TestScripts runs every testdata/*.txtar. Beside testscript's own commands there are redrive, and rdt to make
// capture files (rdt_test.go).
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{Dir: "testdata"})
}
