package main

import (
	"context"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"
)

// endInSteps gives a context that is done when the proxy is to drain: at the first SIGINT or SIGTERM, when its time is
// over (0: never), or when ctx is done. The next signal after that calls hangUp, and after that one nobody catches them any
// more: they kill. Call stop at the end.
func endInSteps(ctx context.Context, limit time.Duration, hangUp func()) (draining context.Context, stop func()) {
	draining, drain := context.WithCancel(ctx)
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	var over <-chan time.Time
	if limit > 0 {
		over = time.After(limit)
	}
	ended := make(chan struct{})
	var watching sync.WaitGroup
	watching.Go(func() {
		defer signal.Stop(signals)
		// That ctx is done is no step: the signal that did it comes here as well.
		select {
		case <-signals:
		case <-over:
		case <-ended:
			return
		}
		drain()
		select {
		case <-signals:
			hangUp()
		case <-ended:
		}
	})
	return draining, func() {
		drain()
		close(ended)
		watching.Wait()
	}
}

// onHangups calls f after each SIGHUP, one at a time, until stop is called; from then on SIGHUP does nothing. Those that
// come while f runs count as one.
func onHangups(f func()) (stop func()) {
	hangups := make(chan os.Signal, 1)
	signal.Notify(hangups, syscall.SIGHUP)
	var watching sync.WaitGroup
	watching.Go(func() {
		for range hangups {
			f()
		}
	})
	return func() {
		signal.Ignore(syscall.SIGHUP) // a file may still have to be closed
		signal.Stop(hangups)
		close(hangups)
		watching.Wait()
	}
}
