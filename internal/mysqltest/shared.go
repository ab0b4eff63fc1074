package mysqltest

import (
	"os"
	"sync"
	"testing"
)

var shared struct {
	sync.Mutex
	server *Server
	err    error
}

// Shared is the server that all tests of a test binary share, started by the first that asks. The binary must have
//
//	func TestMain(m *testing.M) { mysqltest.Main(m) }
//
// Tests that share it work in schemas of their own, see Schema, and run one after the other where they count what
// the whole server did.
func Shared(t testing.TB) *Server {
	t.Helper()
	shared.Lock()
	defer shared.Unlock()
	if shared.server == nil && shared.err == nil {
		shared.server, shared.err = Launch("--thread-cache-size=0") // a kept thread gives its next connection statement ids from where it was
	}
	if shared.err != nil {
		t.Fatal(shared.err)
	}
	return shared.server
}

// Main runs a test binary's tests, then stops the shared server, and exits.
func Main(m *testing.M) { os.Exit(Run(m)) }

// Run is Main for those who have more to clear away: it returns the exit status.
func Run(m interface{ Run() int }) int {
	defer func() {
		if shared.server != nil {
			shared.server.Stop()
		}
	}()
	return m.Run()
}
