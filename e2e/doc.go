// Package e2e holds the end-to-end tests: the built binary as a user runs it, stock sysbench as its client, a real
// MariaDB behind it.
package e2e
