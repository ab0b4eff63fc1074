package stats

import (
	"time"

	"redrive/capture"
)

// Times sum up a distribution of durations. In JSON they are nanoseconds.
type Times struct {
	Count uint64        `json:"count"`
	Sum   time.Duration `json:"sum_ns"`
	Mean  time.Duration `json:"mean_ns"`
	P50   time.Duration `json:"p50_ns"`
	P95   time.Duration `json:"p95_ns"`
	P99   time.Duration `json:"p99_ns"`
	Max   time.Duration `json:"max_ns"`
}

// Times are the histogram's figures, nil if nothing was recorded.
func (h *Histogram) Times() *Times {
	if h.Count() == 0 {
		return nil
	}
	return &Times{
		Count: h.Count(), Sum: h.Sum(), Mean: h.Mean(), P50: h.Quantile(0.50), P95: h.Quantile(0.95), P99: h.Quantile(0.99), Max: h.Max(),
	}
}

// Clocks are a run's times by design: how long statements took, and how late they were and why. Whoever prints them
// takes them from here, so that a replay and the analysis of its recording agree to the digit. The zero value is empty.
type Clocks struct {
	Service, Wait, Lag, Response Histogram
}

// Record takes a statement whose whole reply was seen. prevDone is Done of the session's previous command, for the first
// one SessionStart.Ready. Wait, lag and response time are of statements that were due at a time: in a closed loop
// nothing is late.
func (c *Clocks) Record(s *capture.Statement, prevDone time.Duration) {
	c.Service.Record(s.Service(prevDone))
	if s.Intended == 0 {
		return
	}
	c.Wait.Record(s.Wait(prevDone))
	c.Lag.Record(s.Lag(prevDone))
	c.Response.Record(s.Response(prevDone))
}
