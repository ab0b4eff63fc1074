package proxy_test

import (
	"context"
	"net"
	"os"
	"runtime"
	"testing"
	"time"

	"redrive/internal/mysqltest"
)

// However its connections end, a proxy that has ended leaves neither goroutines nor file descriptors behind.
func TestNothingIsLeftBehind(t *testing.T) {
	server := mysqltest.Shared(t)
	server.DB().Ping()
	goroutines, files := runtime.NumGoroutine(), descriptors(t)

	p := start(t, server.Addr)
	db := open(t, p.addr, "")
	idle, err := db.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	busy, err := db.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	working, err := db.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	sleeping := make(chan error, 1)
	go func() {
		_, err := busy.ExecContext(context.Background(), "DO SLEEP(100)")
		sleeping <- err
	}()
	quitter := open(t, p.addr, "")
	if err := quitter.Ping(); err != nil {
		t.Fatal(err)
	}
	quitter.Close()
	prober, err := net.Dial("tcp", p.addr)
	if err != nil {
		t.Fatal(err)
	}
	prober.Close()
	time.Sleep(50 * time.Millisecond) // for the one that sleeps to be at it
	p.HangUp()
	if err := p.stop(); err != nil {
		t.Fatal(err)
	}
	if err := <-sleeping; err == nil {
		t.Error("a statement that was cut off ended well")
	}
	idle.Close()
	busy.Close()
	working.Rollback()
	db.Close()

	wait := time.Now().Add(10 * time.Second)
	for runtime.NumGoroutine() > goroutines || descriptors(t) > files {
		if time.Now().After(wait) {
			stacks := make([]byte, 1<<20)
			t.Fatalf("%d goroutines and %d descriptors, want %d and %d:\n%s", runtime.NumGoroutine(), descriptors(t), goroutines, files,
				stacks[:runtime.Stack(stacks, true)])
		}
		time.Sleep(10 * time.Millisecond)
	}
}

func descriptors(t *testing.T) int {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(entries)
}
