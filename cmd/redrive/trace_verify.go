package main

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"redrive/capture"
	"redrive/internal/units"
)

func newTraceVerify(s streams) *cobra.Command {
	return &cobra.Command{
		Use:   "verify FILE…",
		Short: "Check that capture files are whole and consistent",
		Long: `Read capture files from the first byte to the last and check everything that FORMAT.md promises: checksums, done
order, begins and their ends, horizons, index, and the ledger against the records. Exit status 1 says that a file is
not whole; what it holds up to the offset named can be used.`,
		Args: namesFiles,
		RunE: func(c *cobra.Command, files []string) error {
			bad := 0
			err := eachCapture(c.Context(), s, files, func(name string, r *capture.Reader, out io.Writer) error {
				v := capture.Verify(r)
				if v.Err != nil && c.Context().Err() != nil {
					return v.Err
				}
				if !v.OK() {
					bad++
				}
				printVerification(out, name, v)
				return nil
			})
			if err == nil && bad > 0 {
				return &exitError{exitFailed, nil} // all has been said
			}
			return err
		},
	}
}

func printVerification(out io.Writer, name string, v *capture.Verification) {
	for _, p := range v.Problems {
		fmt.Fprintf(out, "%s: %s\n", name, p)
	}
	if v.Further > 0 {
		fmt.Fprintf(out, "%s: and %s more\n", name, units.Count(uint64(v.Further), "problem"))
	}
	if v.Err != nil {
		fmt.Fprintln(out, v.Err) // names the file
	}
	if v.Whole == 0 {
		return // not even its header could be read
	}
	total := uint64(0)
	for _, n := range v.Records {
		total += n
	}
	end := "no clean end"
	if v.Clean {
		end = "clean end"
	}
	fmt.Fprintf(out, "%s: whole up to offset %d: %s in %s, %s; %s\n",
		name, v.Whole, units.Count(total, "record"), units.Count(uint64(v.Blocks), "block"), units.Count(v.Records[capture.KindStatement], "command"), end)
}
