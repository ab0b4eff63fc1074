package main

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"strings"
)

// readOptionFile reads the [client] group of a MySQL option file. Directives that include other files are not followed
// but warned of. A file that is not there is an os.ErrNotExist.
func readOptionFile(name string, warn io.Writer) (map[string]string, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, fmt.Errorf("read options: %w", err)
	}
	defer f.Close()
	options, warnings, err := readOptions(f, "client")
	for _, w := range warnings {
		fmt.Fprintf(warn, "redrive: %s:%s\n", name, w)
	}
	if err != nil {
		return nil, fmt.Errorf("read options: %s:%w", name, err)
	}
	return options, nil
}

// readOptions reads one group: names with dashes, the last of several values. Warnings and errors begin with a line
// number and never show what the line holds, which may be a password.
func readOptions(r io.Reader, group string) (options map[string]string, warnings []string, err error) {
	options = make(map[string]string)
	lines := bufio.NewScanner(r)
	ours := false
	number := 0
	for lines.Scan() {
		number++
		line := strings.TrimSpace(lines.Text())
		switch {
		case line == "" || line[0] == '#' || line[0] == ';':
		case line[0] == '!':
			warnings = append(warnings, fmt.Sprintf("%d: included files are not read", number))
		case line[0] == '[':
			name, _, closed := strings.Cut(line[1:], "]")
			if !closed {
				return nil, warnings, fmt.Errorf("%d: a group's name without its closing bracket", number)
			}
			ours = strings.TrimSpace(name) == group
		case ours:
			name, value, _ := strings.Cut(cutComment(line), "=")
			name = strings.ReplaceAll(strings.TrimSpace(name), "_", "-")
			options[name] = optionValue(strings.TrimSpace(value))
		}
	}
	if err := lines.Err(); err != nil {
		return nil, warnings, fmt.Errorf("%d: %w", number+1, err)
	}
	return options, warnings, nil
}

// cutComment cuts off a comment that begins within a line, outside quotes.
func cutComment(line string) string {
	var quote byte
	for i := 0; i < len(line); i++ {
		switch c := line[i]; {
		case c == '\\':
			i++
		case quote != 0:
			if c == quote {
				quote = 0
			}
		case c == '\'' || c == '"':
			quote = c
		case c == '#':
			return line[:i]
		}
	}
	return line
}

var optionEscapes = strings.NewReplacer(`\b`, "\b", `\t`, "\t", `\n`, "\n", `\r`, "\r", `\s`, " ", `\\`, `\`)

// optionValue takes the quotes off a value and opens its escapes.
func optionValue(v string) string {
	if n := len(v); n >= 2 && (v[0] == '\'' || v[0] == '"') && v[n-1] == v[0] {
		v = v[1 : n-1]
	}
	return optionEscapes.Replace(v)
}
