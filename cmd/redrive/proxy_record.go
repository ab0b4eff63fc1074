package main

import (
	"fmt"
	"io"
	"path/filepath"

	"github.com/spf13/cobra"

	"redrive/internal/units"
)

func newProxyRecord(s streams) *cobra.Command {
	c := &cobra.Command{
		Use:   "record start|stop|rotate|status --control SOCKET",
		Short: "Steer the recording of a running proxy",
		Long: `Steer the recording of a running proxy through its control socket (proxy --control).

Sessions that are open join a recording at their next command, with a record of their state: user, schema, prepared
statements, whether a transaction is open. rotate goes over to another file without losing a command in between.`,
		Args: cobra.NoArgs,
	}
	c.AddCommand(
		newSteer(s, "start", "Begin to record into a new file", true),
		newSteer(s, "rotate", "Close the file and go on in a new one", true),
		newSteer(s, "stop", "Close the file; relaying goes on", false),
		newSteer(s, "status", "Tell what is being recorded", false),
	)
	return c
}

func newSteer(s streams, do, short string, wantsOut bool) *cobra.Command {
	var control, out string
	c := &cobra.Command{
		Use:   do + " --control SOCKET",
		Short: short,
		Args:  cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if control == "" {
				return usagef("--control is missing: want the socket that the proxy was given by --control")
			}
			r := request{Do: do}
			if wantsOut {
				if out == "" || out == "-" {
					return usagef("--out is missing: want the file to record into")
				}
				path, err := filepath.Abs(out) // the proxy may have another working directory
				if err != nil {
					return err
				}
				r.Out = path
			}
			answer, err := steer(c.Context(), control, r)
			if err != nil {
				return err
			}
			printAnswer(s.out, do, answer)
			return nil
		},
	}
	c.Flags().StringVar(&control, "control", "", "control socket of the proxy")
	if wantsOut {
		c.Flags().StringVarP(&out, "out", "o", "", "capture file to record into")
	}
	return c
}

// printAnswer says what became of a request.
func printAnswer(out io.Writer, do string, answer response) {
	l := answer.Ledger
	if answer.Closed != "" && l != nil {
		fmt.Fprintf(out, "closed %s: %d commands forwarded = %d stored + %d shed + %d unfinished\n",
			answer.Closed, l.Forwarded, l.Stored, l.Shed, l.Unfinished)
	}
	switch {
	case answer.Recording == "":
		fmt.Fprintln(out, "not recording")
	case do == "status" && l != nil:
		fmt.Fprintf(out, "recording into %s: %d commands stored, %d shed\n", answer.Recording, l.Stored, l.Shed)
	default:
		fmt.Fprintf(out, "recording into %s\n", answer.Recording)
	}
	if do == "status" {
		fmt.Fprintf(out, "%s of %s of memory used; %s open\n",
			units.Bytes(answer.MemoryUsed), units.Size(answer.MemoryLimit), units.Count(answer.Connections, "connection"))
	}
}
