//go:build race

package session_test

// raceEnabled: the race detector makes sync.Pool forget things at random.
const raceEnabled = true
