package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"redrive/capture"
	"redrive/internal/client"
	"redrive/internal/wire"
	"redrive/synth"
)

// synthOptions are a sysbench command line, read.
type synthOptions struct {
	synth.Settings
	test, command  string
	hosts, ports   []string
	sockets        []string
	user, password string
	schema         string
	out            string
	help, version  bool
	given          map[string]string // options as given, by name with -, but for the password
}

// A synthMistake is a mistake in the command line, said where sysbench says it.
type synthMistake struct {
	text   string
	banner bool // after the banner
	fatal  bool // on standard output, as FATAL; else on standard error
}

func (m *synthMistake) Error() string { return m.text }

func (m *synthMistake) print(s streams) {
	if m.banner {
		fmt.Fprint(s.out, synth.Banner(version))
	}
	if m.fatal {
		fmt.Fprintf(s.out, "FATAL: %s\n", m.text)
		return
	}
	fmt.Fprintln(s.err, m.text)
}

func fatalMistake(format string, args ...any) error {
	return &synthMistake{fmt.Sprintf(format, args...), true, true}
}

// A synthOption is one of the options: how it is written, what it is for, and what it does to o.
type synthOption struct {
	name, value, help string
	set               setter
}

// synthOptionList is every option there is, in the order of --help.
var synthOptionList = []synthOption{
	{"threads", "N", "worker threads, each with a connection of its own [1]", integer(func(o *synthOptions, n int) { o.Threads = n })},
	{"events", "N", "stop after so many events; 0: no limit [0]", integer(func(o *synthOptions, n int) { o.Events = uint64(max(0, n)) })},
	{"time", "N", "stop after so many seconds; 0: no limit [10]", integer(func(o *synthOptions, n int) { o.Time = wholeSeconds(n) })},
	{"rate", "N", "events per second over all threads, open loop; 0: closed loop [0]", integer(func(o *synthOptions, n int) { o.Rate = n })},
	{"report-interval", "N", "seconds between interim lines; 0: none [0]", integer(func(o *synthOptions, n int) { o.ReportInterval = wholeSeconds(n) })},
	{"percentile", "N", "of the latencies in the report; 0: none [95]", integer(func(o *synthOptions, n int) { o.Percentile = n })},
	{"rand-seed", "N", "seed of all random numbers; 0: from the clock [0]", integer(func(o *synthOptions, n int) { o.Seed = uint64(max(0, n)) })},
	{"rand-type", "STRING", "special, uniform, gaussian or pareto [special]", setDistribution},
	{"db-driver", "STRING", "mysql [mysql]", setDriver},
	{"db-ps-mode", "STRING", "auto: prepared statements; disable: text [auto]", setPSMode},
	{"mysql-host", "[LIST,...]", "servers; localhost means the Unix socket [localhost]", list(func(o *synthOptions, l []string) { o.hosts = l })},
	{"mysql-port", "[LIST,...]", "their ports [3306]", list(func(o *synthOptions, l []string) { o.ports = l })},
	{"mysql-socket", "[LIST,...]", "Unix sockets; hosts and ports then do not count", list(func(o *synthOptions, l []string) { o.sockets = l })},
	{"mysql-user", "STRING", "account [sbtest]", text(func(o *synthOptions, v string) { o.user = v })},
	{"mysql-password", "STRING", "its password [MYSQL_PWD]", text(func(o *synthOptions, v string) { o.password = v })},
	{"mysql-db", "STRING", "schema [sbtest]", text(func(o *synthOptions, v string) { o.schema = v })},
	{"mysql-ignore-errors", "[LIST,...]", "errors after which an event begins again, or all [1213,1020,1205]", setIgnoreErrors},
	{"tables", "N", "tables sbtest1, sbtest2, … [1]", count(func(o *synthOptions, n int) { o.Tables = n })},
	{"table-size", "N", "rows per table [10000]", count(func(o *synthOptions, n int) { o.TableSize = n })},
	{"range-size", "N", "rows of a range select [100]", count(func(o *synthOptions, n int) { o.RangeSize = n })},
	{"point-selects", "N", "per event [10]; oltp_point_select has 1", count(func(o *synthOptions, n int) { o.PointSelects = n })},
	{"range-selects", "[on|off]", "off leaves all ranges out [on]", boolean(func(o *synthOptions, b bool) { o.RangeSelects = b })},
	{"simple-ranges", "N", "per event [1]", count(func(o *synthOptions, n int) { o.SimpleRanges = n })},
	{"sum-ranges", "N", "per event [1]", count(func(o *synthOptions, n int) { o.SumRanges = n })},
	{"order-ranges", "N", "per event [1]", count(func(o *synthOptions, n int) { o.OrderRanges = n })},
	{"distinct-ranges", "N", "per event [1]", count(func(o *synthOptions, n int) { o.DistinctRanges = n })},
	{"index-updates", "N", "per event [1]", count(func(o *synthOptions, n int) { o.IndexUpdates = n })},
	{"non-index-updates", "N", "per event [1]", count(func(o *synthOptions, n int) { o.NonIndexUpdates = n })},
	{"delete-inserts", "N", "per event [1]", count(func(o *synthOptions, n int) { o.DeleteInserts = n })},
	{"skip-trx", "[on|off]", "no BEGIN and COMMIT [off]", boolean(func(o *synthOptions, b bool) { o.SkipTrx = b })},
	{"out", "FILE", "record the run into a capture file (not in sysbench)", text(func(o *synthOptions, v string) { o.out = v })},
	{"help", "[on|off]", "print this", boolean(func(o *synthOptions, b bool) { o.help = b })},
	{"version", "[on|off]", "print the version", boolean(func(o *synthOptions, b bool) { o.version = b })},
}

// notTaken are sysbench's options that this command does not have: refused by name, rather than taken in silence.
var notTaken = strings.Fields(`auto-inc config-file create-secondary create-table-options db-debug debug delta
	forced-shutdown histogram luajit-cmd max-requests max-time mysql-compression mysql-compression-algorithms mysql-debug
	mysql-dry-run mysql-ssl mysql-ssl-ca mysql-ssl-cert mysql-ssl-cipher mysql-ssl-key mysql-storage-engine num-threads
	number-of-ranges pgsql-db pgsql-host pgsql-password pgsql-port pgsql-user pgsql-variant rand-pareto-h rand-spec-iter
	rand-spec-pct rand-spec-res rand-zipfian-exp random-points reconnect report-checkpoints secondary test
	thread-init-timeout thread-stack-size tx-rate validate verbosity warmup-time`)

// parseSynth reads a sysbench command line.
func parseSynth(args []string) (*synthOptions, error) {
	o := &synthOptions{
		Settings: synth.Defaults(), hosts: []string{"localhost"}, ports: []string{defaultPort},
		user: "sbtest", schema: "sbtest", password: os.Getenv("MYSQL_PWD"), given: make(map[string]string),
	}
	var words []string
	var late error // said after what must be said before the banner
	for _, arg := range args {
		if !strings.HasPrefix(arg, "--") {
			words = append(words, arg)
			continue
		}
		err := o.option(arg)
		if m, ok := err.(*synthMistake); ok && !m.banner {
			return nil, err
		}
		late = cmp.Or(late, err)
	}
	if o.help || o.version {
		return o, nil
	}
	if late == nil {
		late = o.check()
	}
	if late == nil {
		late = o.words(words)
	}
	return o, late
}

func (o *synthOptions) option(arg string) error {
	name, value, hasValue := strings.Cut(arg[2:], "=")
	plain := strings.ReplaceAll(name, "_", "-")
	i := slices.IndexFunc(synthOptionList, func(p synthOption) bool { return p.name == plain })
	switch {
	case slices.Contains(notTaken, plain):
		return &synthMistake{fmt.Sprintf("invalid option: --%s: redrive synth does not have this option of sysbench's", name), true, false}
	case i < 0:
		return &synthMistake{"invalid option: " + arg, true, false}
	}
	p := synthOptionList[i]
	if !hasValue {
		if p.value != "[on|off]" {
			return &synthMistake{fmt.Sprintf("invalid option: --%s: want --%s=%s", name, name, p.value), true, false}
		}
		value = "on"
	}
	if plain != "mysql-password" {
		o.given[plain] = value
	}
	return p.set(o, plain, value)
}

// words takes the test and the command.
func (o *synthOptions) words(words []string) error {
	if len(words) == 0 {
		return fatalMistake("a test is required: %s", strings.Join(synth.Workloads, ", "))
	}
	o.test = strings.TrimSuffix(filepath.Base(words[0]), ".lua")
	if !slices.Contains(synth.Workloads, o.test) {
		return fatalMistake("Cannot find benchmark '%s': no such built-in test, file or module; there are %s", words[0], strings.Join(synth.Workloads, ", "))
	}
	if len(words) == 1 {
		return fatalMistake("%s: Command is required. Supported commands: prepare, run, cleanup", o.test)
	}
	if len(words) > 2 {
		return &synthMistake{"Unrecognized command line argument: " + words[2], true, false}
	}
	o.command = words[1]
	if !slices.Contains([]string{"prepare", "run", "cleanup"}, o.command) {
		return &synthMistake{"Unknown command: " + o.command, true, false}
	}
	return nil
}

// check looks at what can only be judged when all is known.
func (o *synthOptions) check() error {
	switch {
	case o.Threads <= 0:
		return fatalMistake("Invalid value for --threads: %d.", o.Threads)
	case o.Percentile < 0 || o.Percentile > 100:
		return fatalMistake("Invalid value for --percentile: %d", o.Percentile)
	case o.Rate < 0:
		return fatalMistake("Invalid value for --rate: %d", o.Rate)
	case o.Tables < 1:
		return fatalMistake("Invalid value for --tables: %d", o.Tables)
	case o.TableSize < 1:
		return fatalMistake("Invalid value for --table-size: %d", o.TableSize)
	}
	for _, port := range o.ports {
		if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
			return fatalMistake("Invalid value for --mysql-port: %s", port)
		}
	}
	return nil
}

// targets are the servers in the order in which connections get them: all ports of the first host, then of the next.
func (o *synthOptions) targets() []client.Config {
	config := client.Config{
		User: o.user, Password: o.password, Schema: o.schema, Capabilities: wire.MultiStatements,
		Attributes: []wire.Attribute{{Name: "program_name", Value: "redrive synth"}},
	}
	var targets []client.Config
	add := func(network, address string) {
		config.Network, config.Address = network, address
		targets = append(targets, config)
	}
	for _, socket := range o.sockets {
		add("unix", socket)
	}
	if len(targets) > 0 {
		return targets
	}
	for _, host := range o.hosts {
		if host == "localhost" {
			add("unix", localSocket())
			continue
		}
		for _, port := range o.ports {
			add("tcp", net.JoinHostPort(strings.Trim(host, "[]"), port))
		}
	}
	return targets
}

// localSocket is what the client library takes localhost for: the socket that the environment names, the first of the
// usual ones that is there, or else the most usual.
func localSocket() string {
	if path := os.Getenv("MYSQL_UNIX_PORT"); path != "" {
		return path
	}
	if path, err := defaultSocket(); err == nil {
		return path
	}
	return socketPaths[0]
}

// header says where the run's capture comes from.
func (o *synthOptions) header(ctx context.Context, clock capture.Clock) capture.Header {
	h := newHeader("synth", clock)
	h.Settings = map[string]string{"test": o.test, "command": o.command}
	for name, value := range o.given {
		h.Settings[name] = value
	}
	var backends []string
	for _, target := range o.targets() {
		backends = append(backends, target.Address)
		h.Resolved = append(h.Resolved, resolve(ctx, target.Network, target.Address)...)
	}
	h.Backend = strings.Join(backends, ",")
	return h
}

// synthHelp is the text of --help.
func synthHelp() string {
	var b strings.Builder
	fmt.Fprintf(&b, "Usage:\n  redrive synth [options]... %s prepare|run|cleanup\n\nOptions ([default]):\n", strings.Join(synth.Workloads, "|"))
	for _, p := range synthOptionList {
		printOption(&b, p)
	}
	b.WriteString("\nA test may be a path and end in .lua. Words may stand anywhere, - and _ are alike, the last of several counts.\n")
	return b.String()
}

func printOption(w io.Writer, p synthOption) {
	fmt.Fprintf(w, "  --%-36s %s\n", p.name+"="+p.value, p.help)
}
