package main

import (
	"cmp"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"redrive/synth"
)

// A setter takes the value of one of sysbench's options into o; name is for messages.
type setter func(o *synthOptions, name, value string) error

func wholeSeconds(n int) time.Duration { return time.Duration(max(0, n)) * time.Second }

// integer reads one of sysbench's general numbers: all of the value, in 32 bits; empty is 0.
func integer(set func(*synthOptions, int)) setter {
	return func(o *synthOptions, name, value string) error {
		n, err := strconv.ParseInt(cmp.Or(value, "0"), 10, 32)
		if err != nil {
			return &synthMistake{fmt.Sprintf("Invalid value for the '%s' option: '%s'", name, value), false, false}
		}
		set(o, int(n))
		return nil
	}
}

// count reads one of a script's numbers: 10000, 1e6, and also 10M, which sysbench takes for 10. What is behind the
// point does not count.
func count(set func(*synthOptions, int)) setter {
	return func(o *synthOptions, name, value string) error {
		digits, factor := value, 1.0
		if i := strings.IndexAny("KMGkmg", value[max(0, len(value)-1):]); i >= 0 && value != "" {
			digits, factor = value[:len(value)-1], math.Pow(1024, float64(i%3+1))
		}
		n, err := strconv.ParseFloat(cmp.Or(digits, "0"), 64)
		if err != nil || !(n >= 0 && n*factor <= math.MaxInt32) {
			return &synthMistake{fmt.Sprintf("Invalid value for the '%s' option: '%s': want a number from 0 to %d", name, value, math.MaxInt32), false, false}
		}
		set(o, int(n*factor))
		return nil
	}
}

func boolean(set func(*synthOptions, bool)) setter {
	return func(o *synthOptions, name, value string) error {
		switch value {
		case "on", "true", "1":
			set(o, true)
		case "off", "false", "0":
			set(o, false)
		default:
			return &synthMistake{fmt.Sprintf("invalid option: --%s=%s", name, value), true, false}
		}
		return nil
	}
}

func text(set func(*synthOptions, string)) setter {
	return func(o *synthOptions, _, value string) error {
		set(o, value)
		return nil
	}
}

// list reads a list; empty items do not count, and a list of nothing leaves the default.
func list(set func(*synthOptions, []string)) setter {
	return func(o *synthOptions, name, value string) error {
		if items := strings.FieldsFunc(value, func(r rune) bool { return r == ',' }); len(items) > 0 {
			set(o, items)
		}
		return nil
	}
}

func setDistribution(o *synthOptions, _, value string) (err error) {
	if o.Distribution, err = synth.ParseDistribution(value); err != nil {
		return fatalMistake("Invalid random numbers distribution: %s.", value)
	}
	return nil
}

func setDriver(_ *synthOptions, _, value string) error {
	if value != "mysql" {
		return fatalMistake("invalid database driver name: '%s'", value)
	}
	return nil
}

func setPSMode(o *synthOptions, _, value string) error {
	if value != "auto" && value != "disable" {
		return fatalMistake("Invalid value for db-ps-mode: %s", value)
	}
	o.Text = value == "disable"
	return nil
}

func setIgnoreErrors(o *synthOptions, _, value string) error {
	o.IgnoreErrors = synth.ErrorSet{}
	for _, item := range strings.FieldsFunc(value, func(r rune) bool { return r == ',' }) {
		if item == "all" {
			o.IgnoreErrors.All = true
			continue
		}
		n, err := strconv.ParseUint(strings.TrimSpace(item), 10, 16)
		if err != nil {
			return fatalMistake("Invalid value for --mysql-ignore-errors: %s", item)
		}
		o.IgnoreErrors.Numbers = append(o.IgnoreErrors.Numbers, uint16(n))
	}
	return nil
}
