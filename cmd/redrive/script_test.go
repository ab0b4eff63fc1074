package main

import (
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"redrive/internal/mysqltest"
)

// TestMain lets scripts and tests run the commands redrive and rdt, which the test binary then is.
func TestMain(m *testing.M) {
	testscript.Main(withServer{m}, map[string]func(){"redrive": main, "rdt": makeCapture})
}

// withServer has the tests run with a server that they share.
type withServer struct{ *testing.M }

func (m withServer) Run() int { return mysqltest.Run(m.M) }

// TestScripts runs every testdata/*.txtar. Beside testscript's own commands there are redrive, and rdt to make
// capture files (rdt_test.go).
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{Dir: "testdata"})
}
