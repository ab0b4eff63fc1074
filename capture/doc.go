// Package capture reads and writes capture files. In go statements, one at a time, from a proxy, a replay or a
// generator; out come the same statements in the order they were done, or started. FORMAT.md describes the bytes.
package capture
