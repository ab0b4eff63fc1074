package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"redrive/capture"
	"redrive/internal/mysqltest"
	"redrive/synth"
)

func runSynthCommand(args ...string) (status int, out, err string) {
	var stdout, stderr bytes.Buffer
	status = run(context.Background(), append([]string{"synth"}, args...), streams{strings.NewReader(""), &stdout, &stderr})
	return status, stdout.String(), stderr.String()
}

// Mistakes are said where sysbench says them: those of general numbers before the banner.
func TestSynthMistakes(t *testing.T) {
	banner := synth.Banner(version)
	tests := []struct {
		args     string
		out, err string
	}{
		{"--threads=abc oltp_read_write run", "", "Invalid value for the 'threads' option: 'abc'\n"},
		{"--events=1K oltp_read_write run", "", "Invalid value for the 'events' option: '1K'\n"},
		{"--table-size=many oltp_read_write run", "", "Invalid value for the 'table-size' option: 'many': want a number from 0 to 2147483647\n"},
		{"--nonsense=1 oltp_read_write run", banner, "invalid option: --nonsense=1\n"},
		{"--skip-trx=yes oltp_read_write run", banner, "invalid option: --skip-trx=yes\n"},
		{"--threads oltp_read_write run", banner, "invalid option: --threads: want --threads=N\n"},
		{"--rand_pareto_h=0.1 oltp_read_write run", banner, "invalid option: --rand_pareto_h: redrive synth does not have this option of sysbench's\n"},
		{"--mysql-ssl-ca=f oltp_read_write run", banner, "invalid option: --mysql-ssl-ca: redrive synth does not have this option of sysbench's\n"},
		{"--threads=0 oltp_read_write run", banner + "FATAL: Invalid value for --threads: 0.\n", ""},
		{"--percentile=101 oltp_read_write run", banner + "FATAL: Invalid value for --percentile: 101\n", ""},
		{"--rand-type=foo oltp_read_write run", banner + "FATAL: Invalid random numbers distribution: foo.\n", ""},
		{"--db-ps-mode=foo oltp_read_write run", banner + "FATAL: Invalid value for db-ps-mode: foo\n", ""},
		{"--db-driver=foo oltp_read_write run", banner + "FATAL: invalid database driver name: 'foo'\n", ""},
		{"--mysql-port=99999 oltp_read_write run", banner + "FATAL: Invalid value for --mysql-port: 99999\n", ""},
		{"--mysql-ignore-errors=often oltp_read_write run", banner + "FATAL: Invalid value for --mysql-ignore-errors: often\n", ""},
		{"no_such_test run", banner + "FATAL: Cannot find benchmark 'no_such_test': no such built-in test, file or module; there are oltp_point_select, oltp_read_only, oltp_read_write\n", ""},
		{"oltp_read_write", banner + "FATAL: oltp_read_write: Command is required. Supported commands: prepare, run, cleanup\n", ""},
		{"", "", synthHelp()},
		{"--threads=1", banner + "FATAL: a test is required: oltp_point_select, oltp_read_only, oltp_read_write\n", ""},
		{"oltp_read_write launch", banner, "Unknown command: launch\n"},
		{"oltp_read_write run now", banner, "Unrecognized command line argument: now\n"},
	}
	for _, test := range tests {
		status, out, err := runSynthCommand(strings.Fields(test.args)...)
		if status != 1 || out != test.out || err != test.err {
			t.Errorf("synth %s: status %d, out %q, err %q; want 1, %q, %q", test.args, status, out, err, test.out, test.err)
		}
	}
}

func TestParseSynth(t *testing.T) {
	t.Setenv("MYSQL_PWD", "from-the-environment")
	parse := func(args string) *synthOptions {
		t.Helper()
		o, err := parseSynth(strings.Fields(args))
		if err != nil {
			t.Fatalf("%s: %v", args, err)
		}
		return o
	}
	o := parse("--tables=3 --table_size=1e3 /usr/share/sysbench/oltp_read_only.lua --threads=4 --time=5 --events=7 --rate=8 --report-interval=9 " +
		"--db-ps-mode=disable --rand-seed=10 --rand-type=pareto --skip_trx run --mysql-ignore-errors=1213,all --range-selects=off --percentile=99 --table-size=10K")
	want := synth.Defaults()
	want.Tables, want.TableSize, want.Threads, want.Time, want.Events, want.Rate = 3, 10240, 4, 5*time.Second, 7, 8
	want.ReportInterval, want.Text, want.Seed, want.Distribution, want.SkipTrx = 9*time.Second, true, 10, synth.Pareto, true
	want.IgnoreErrors, want.RangeSelects, want.Percentile = synth.ErrorSet{All: true, Numbers: []uint16{1213}}, false, 99
	if !reflect.DeepEqual(o.Settings, want) {
		t.Errorf("settings %+v, want %+v", o.Settings, want)
	}
	if o.test != "oltp_read_only" || o.command != "run" || o.password != "from-the-environment" {
		t.Errorf("test %s, command %s; want oltp_read_only, run", o.test, o.command)
	}
	if o := parse("oltp_read_write run --mysql-password=given"); o.password != "given" || len(o.given) != 0 {
		t.Errorf("settings kept for the header: %v, want none", o.given)
	}
}

func TestSynthTargets(t *testing.T) {
	t.Setenv("MYSQL_UNIX_PORT", "/the/socket")
	for args, want := range map[string]string{
		"":                                    "unix /the/socket",
		"--mysql-port=3307":                   "unix /the/socket", // localhost is the socket whatever the port, as in the client library
		"--mysql-host=127.0.0.1":              "tcp 127.0.0.1:3306",
		"--mysql-host=::1":                    "tcp [::1]:3306",
		"--mysql-host=a,b --mysql-port=1,2":   "tcp a:1, tcp a:2, tcp b:1, tcp b:2",
		"--mysql-host=a --mysql-socket=/x,/y": "unix /x, unix /y",
		"--mysql-host=a,localhost --mysql-port=3307": "tcp a:3307, unix /the/socket",
	} {
		o, err := parseSynth(strings.Fields(args + " oltp_read_write run"))
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, target := range o.targets() {
			got = append(got, target.Network+" "+target.Address)
		}
		if strings.Join(got, ", ") != want {
			t.Errorf("%s: %s, want %s", args, strings.Join(got, ", "), want)
		}
	}
}

func TestSynthHelpNamesEveryOption(t *testing.T) {
	status, out, _ := runSynthCommand("--help")
	for _, option := range synthOptionList {
		if !strings.Contains(out, "  --"+option.name+"=") {
			t.Errorf("--help does not name --%s", option.name)
		}
	}
	if status != 0 {
		t.Errorf("--help: status %d", status)
	}
	if status, short, _ := runSynthCommand("-h"); status != 0 || short != out {
		t.Errorf("-h: status %d and %q, want what --help gives", status, short)
	}
	if status, out, _ := runSynthCommand("--version"); status != 0 || !strings.HasPrefix(out, "sysbench 1.0.20") {
		t.Errorf("--version: status %d, %q", status, out)
	}
}

// prepare, run and cleanup as a user would, with the run recorded: the file is the owner's alone and holds no password.
func TestSynthCommand(t *testing.T) {
	s := mysqltest.Start(t)
	schema := s.Schema(t)
	file := filepath.Join(t.TempDir(), "run.rdt")
	args := append(mysqltest.SysbenchArgs(s.Addr, schema), "oltp_read_write", "--tables=2", "--table-size=500", "--threads=2", "--events=30", "--time=0")
	for _, command := range []string{"prepare", "run", "cleanup"} {
		given := append(args, command)
		if command == "run" {
			given = append(given, "--out="+file)
		}
		status, out, errOut := runSynthCommand(given...)
		if status != 0 {
			t.Fatalf("%s: status %d\n%s%s", command, status, out, errOut)
		}
		if command != "run" {
			continue
		}
		if report, err := mysqltest.ParseReport(out); err != nil || report.Events != 30 {
			t.Errorf("run reports %d events, %v; want 30", report.Events, err)
		}
		if want := "recorded in " + file + ": "; !strings.Contains(errOut, want) {
			t.Errorf("run says %q, want %q", errOut, want)
		}
	}
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v; want 0600", info.Mode(), err)
	}
	reader := capture.NewReader(bytes.NewReader(data), file)
	header, err := reader.Header()
	if err != nil || header.Producer != "synth" || header.Backend != s.Addr || header.Settings["threads"] != "2" || header.Settings["test"] != "oltp_read_write" {
		t.Errorf("header %+v, %v", header, err)
	}
	for name, value := range header.Settings {
		if strings.Contains(value, mysqltest.Password) {
			t.Errorf("the header has the password, as %s", name)
		}
	}
	ended := uint64(0)
	for reader.Next() {
		if reader.Record().Kind == capture.KindStatement && string(reader.Record().Statement.Text) == "COMMIT" && reader.Record().Statement.RunsSQL() {
			ended++
		}
	}
	if reader.Err() != nil || ended != 30 {
		t.Errorf("%d commits in the capture, %v; want 30", ended, reader.Err())
	}
	if status, _, errOut := runSynthCommand(append(args, "run", "--out="+file)...); status != 1 || !strings.Contains(errOut, "exists already") {
		t.Errorf("a file that is there: status %d, %q", status, errOut)
	}
}
