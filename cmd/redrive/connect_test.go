package main

import (
	"bytes"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"redrive/internal/client"
)

// connectWith is what flags, MYSQL_PWD and an option file come to.
func connectWith(t *testing.T, file, env string, args ...string) (client.Config, string, error) {
	t.Helper()
	home := t.TempDir()
	t.Setenv("HOME", home)
	t.Setenv("MYSQL_PWD", env)
	if file != "" {
		if err := os.WriteFile(filepath.Join(home, ".my.cnf"), []byte(file), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	set := pflag.NewFlagSet("test", pflag.ContinueOnError)
	var o connectOptions
	o.addFlags(set)
	if err := set.Parse(args); err != nil {
		t.Fatal(err)
	}
	var warnings bytes.Buffer
	c, err := o.config(&warnings)
	return c, warnings.String(), err
}

func TestConnectAddress(t *testing.T) {
	dir := t.TempDir()
	socket := filepath.Join(dir, "default.sock")
	listener, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	defer func(paths []string) { socketPaths = paths }(socketPaths)
	socketPaths = []string{filepath.Join(dir, "none.sock"), socket}
	tests := []struct {
		file, args, want string
	}{
		{"", "", "unix " + socket},
		{"", "--host localhost", "unix " + socket},
		{"", "--host db1", "tcp db1:3306"},
		{"", "--host db1 --port 3307", "tcp db1:3307"},
		{"", "--host ::1 --port 3307", "tcp [::1]:3307"},
		{"", "--host localhost --port 3307", "tcp localhost:3307"},
		{"", "--port 3307", "tcp localhost:3307"},
		{"", "--socket /tmp/s", "unix /tmp/s"},
		{"", "--host localhost --socket /tmp/s", "unix /tmp/s"},
		{"[client]\nhost=db2\nport=3310\n", "", "tcp db2:3310"},
		{"[client]\nhost=db2\nport=3310\n", "--host db1", "tcp db1:3310"},
		{"[client]\nhost=db2\n", "--socket /tmp/s", "unix /tmp/s"},
		{"[client]\nsocket=/run/a\n", "", "unix /run/a"},
		{"[client]\nsocket=/run/a\nport=3310\n", "", "unix /run/a"},
		{"[client]\nsocket=/run/a\n", "--host db1", "tcp db1:3306"},
		{"[client]\nsocket=/run/a\n", "--port 3307", "tcp localhost:3307"},
		{"[client]\nport=3310\n", "", "tcp localhost:3310"},
	}
	for _, tt := range tests {
		c, _, err := connectWith(t, tt.file, "", strings.Fields(tt.args)...)
		if got := c.Network + " " + c.Address; err != nil || got != tt.want {
			t.Errorf("%q over %q = %s, %v, want %s", tt.args, tt.file, got, err, tt.want)
		}
	}
	socketPaths = socketPaths[:1]
	if _, _, err := connectWith(t, "", ""); err == nil || !strings.Contains(err.Error(), "--host 127.0.0.1") {
		t.Errorf("without any socket: %v, want a hint at --host 127.0.0.1", err)
	}
}

func TestConnectAccount(t *testing.T) {
	const file = "[mysqld]\nuser=mysql\n[client]\nuser = 'fil\"e'\npassword=\"se#cret\" # not part of it\ndatabase=shop\nssl_mode=REQUIRED\n"
	tests := []struct {
		file, env, args                string
		user, password, schema, tlsMod string
	}{
		{file, "", "", `fil"e`, "se#cret", "shop", "required"},
		{file, "env", "", `fil"e`, "env", "shop", "required"},
		{file, "env", "--user u@t#c --password flag --database d --ssl-mode VERIFY_IDENTITY", "u@t#c", "flag", "d", "verify-identity"},
		{"", "", "--user u", "u", "", "", "preferred"},
		{"", "", "--user u --ssl-mode disabled", "u", "", "", "disabled"},
	}
	for _, tt := range tests {
		c, _, err := connectWith(t, tt.file, tt.env, append(strings.Fields(tt.args), "--host=h")...)
		if err != nil || c.User != tt.user || c.Password != tt.password || c.Schema != tt.schema || c.TLSMode.String() != tt.tlsMod {
			t.Errorf("%q, MYSQL_PWD=%q over %q = %q, %q, %q, %v, %v; want %q, %q, %q, %s", tt.args, tt.env, tt.file,
				c.User, c.Password, c.Schema, c.TLSMode, err, tt.user, tt.password, tt.schema, tt.tlsMod)
		}
	}
}

func TestConnectMistakes(t *testing.T) {
	tests := []struct{ file, args, want string }{
		{"", "--host db1 --socket /tmp/s", "--socket and --host or --port name two servers: give one"},
		{"", "--host db1 --ssl-mode maybe", `--ssl-mode: TLS mode "maybe": want one of disabled`},
		{"", "--host db1 --ssl-ca /nonexistent", "--ssl-ca: open /nonexistent"},
		{"", "--host db1 --defaults-file /nonexistent", "read options: open /nonexistent"},
		{"[client]\nport=hush\n", "--host db1", `port "hush": want a number from 1 to 65535`},
		{"[client\npassword=hush", "--host db1", ".my.cnf:1: a group's name without its closing bracket"},
	}
	for _, tt := range tests {
		_, _, err := connectWith(t, tt.file, "", strings.Fields(tt.args)...)
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%q over %q fails with %v, want %q", tt.args, tt.file, err, tt.want)
		}
	}
}

func TestOptionFileIncludes(t *testing.T) {
	c, warnings, err := connectWith(t, "!includedir /etc/x\n[client]\nuser=u\n", "", "--host=h")
	if err != nil || c.User != "u" || !strings.Contains(warnings, ".my.cnf:1: included files are not read") {
		t.Errorf("an option file with !includedir gives user %q, error %v, warnings %q; want u, none, one of line 1", c.User, err, warnings)
	}
}

func TestOptionValues(t *testing.T) {
	tests := map[string]string{
		"a=b":             "b",
		"a = b c ":        "b c",
		"a='b c'":         "b c",
		`a="b#c"`:         "b#c",
		"a=b # c":         "b",
		`a=\s\tx\\n`:      " \tx\\n",
		"a=b=c":           "b=c",
		"a":               "",
		"a=x\na=y":        "y",
		"a=x\n;a=y\n#a=z": "x",
	}
	for text, want := range tests {
		options, _, err := readOptions(strings.NewReader("[client]\n"+text), "client")
		if got := options["a"]; err != nil || got != want {
			t.Errorf("%q = %q, %v, want %q", text, got, err, want)
		}
	}
}

func FuzzReadOptions(f *testing.F) {
	f.Add("[client]\nuser=u\npassword='p#q' # c\n!include x\n[mysqld]\nport=1\n")
	f.Add("[client")
	f.Fuzz(func(t *testing.T, text string) {
		options, _, err := readOptions(strings.NewReader(text), "client")
		if err == nil && len(options) > strings.Count(text, "\n")+1 {
			t.Errorf("%q has more options than lines: %q", text, options)
		}
	})
}
