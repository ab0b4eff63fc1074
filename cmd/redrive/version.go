package main

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// version is the release; capture headers carry it.
const version = "0.1.0"

func newVersion(s streams) *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print what this binary was built from",
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			_, err := fmt.Fprintf(s.out, "redrive %s (%s, %s/%s)%s\n", version, runtime.Version(), runtime.GOOS, runtime.GOARCH, revision())
			return err
		},
	}
}

// revision is the commit the binary was built from, where the build recorded one.
func revision() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" {
			return " commit " + s.Value
		}
	}
	return ""
}
