package proxy_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

var corpus = flag.String("corpus", "", "write what goes over the wire as seeds of FuzzFollower into this folder")

// writeCorpus writes a conversation in the form that FuzzFollower in internal/session takes: of each chunk the side, its
// length in one byte, and its bytes.
func writeCorpus(t testing.TB, name string, log []exchanged) {
	if *corpus == "" {
		return
	}
	var seed []byte
	for _, e := range log {
		side := byte(0)
		if e.fromClient {
			side = 1
		}
		for data := e.data; len(data) > 0; {
			n := min(len(data), 255)
			seed = append(append(seed, side, byte(n)), data[:n]...)
			data = data[n:]
		}
	}
	text := fmt.Appendf(nil, "go test fuzz v1\n[]byte(%q)\n", seed)
	if err := os.WriteFile(filepath.Join(*corpus, name), text, 0o644); err != nil {
		t.Fatal(err)
	}
}
