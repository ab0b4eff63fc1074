package capture

import "time"

// A Clock gives the times of a capture: how long it has been running, on the machine's monotonic clock. It may be used
// by many goroutines at once.
type Clock struct{ start time.Time }

// NewClock is a clock that starts now.
func NewClock() Clock { return Clock{time.Now()} }

// Now is the time since the clock's start. It never goes back, whatever happens to the wall clock.
func (c Clock) Now() time.Duration { return time.Since(c.start) }

// Start is the wall clock's time at the start: Header.Start.
func (c Clock) Start() time.Time { return c.start.Round(0) }
