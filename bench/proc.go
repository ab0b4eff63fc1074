package main

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// cpu is the processor time that the contender's process has used, all its threads together.
func (c *contender) cpu() (time.Duration, error) {
	if c.process == nil {
		return 0, nil
	}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", c.process.Pid()))
	if err != nil {
		return 0, err
	}
	return parseStat(string(stat))
}

// perUnit divides what the contender's process used; none where there is no process.
func (c *contender) perUnit(used, units float64) float64 {
	if c.process == nil {
		return none
	}
	return used / units
}

// tick is the unit of processor times in /proc, the same on all Linux machines.
const tick = time.Second / 100

// parseStat adds user and system time, the 14th and 15th field. The 2nd is a name in parentheses that may hold anything.
func parseStat(stat string) (time.Duration, error) {
	fields := strings.Fields(stat[strings.LastIndexByte(stat, ')')+1:])
	if len(fields) < 13 {
		return 0, fmt.Errorf("processor times in %q: too few fields", stat)
	}
	var sum time.Duration
	for _, field := range fields[11:13] {
		n, err := strconv.ParseInt(field, 10, 64)
		if err != nil {
			return 0, fmt.Errorf("processor times in %q: %w", stat, err)
		}
		sum += time.Duration(n) * tick
	}
	return sum, nil
}

// resident is the contender's memory that is in RAM, in bytes.
func (c *contender) resident() (int64, error) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", c.process.Pid()))
	if err != nil {
		return 0, err
	}
	return parseResident(string(status))
}

// parseResident reads the line VmRSS of /proc/PID/status, in kB that are KiB.
func parseResident(status string) (int64, error) {
	const label = "\nVmRSS:"
	_, rest, found := strings.Cut(status, label)
	fields := strings.Fields(rest)
	if !found || len(fields) < 2 || fields[1] != "kB" {
		return 0, fmt.Errorf("resident memory: no VmRSS in kB in %q", status)
	}
	n, err := strconv.ParseInt(fields[0], 10, 64)
	if err != nil {
		return 0, fmt.Errorf("resident memory: %w", err)
	}
	return n << 10, nil
}
