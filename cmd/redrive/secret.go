package main

import (
	"strings"
	"unsafe"
)

// passwordFlags are the flags whose values are secrets; with _ for - as sysbench's options allow.
var passwordFlags = []string{"--password", "--mysql-password"}

// hideSecrets returns a copy of args and overwrites the passwords in args itself. The runtime leaves the strings of
// os.Args where the system put them, so ps no longer shows the passwords. args must be writable memory, as os.Args is
// and string literals are not.
func hideSecrets(args []string) []string {
	copies := make([]string, len(args))
	for i, arg := range args {
		copies[i] = strings.Clone(arg)
	}
	for i, arg := range copies {
		name, value, inOne := strings.Cut(arg, "=")
		if !isPasswordFlag(name) {
			continue
		}
		switch {
		case inOne:
			overwrite(args[i], len(arg)-len(value))
		case i+1 < len(args) && strings.HasPrefix(name, "--password"): // sysbench has no such form
			overwrite(args[i+1], 0)
		}
	}
	return copies
}

func isPasswordFlag(name string) bool {
	plain := strings.ReplaceAll(name, "_", "-")
	for _, flag := range passwordFlags {
		if plain == flag {
			return true
		}
	}
	return false
}

// overwrite puts x over the string's bytes from an offset on.
func overwrite(s string, from int) {
	if from >= len(s) {
		return
	}
	b := unsafe.Slice(unsafe.StringData(s), len(s))
	for i := from; i < len(b); i++ {
		b[i] = 'x'
	}
}
