// Package sqltext reads the text of MySQL and MariaDB statements: in go bytes as a client sent them, out come tokens,
// verbs, what a statement may do (write, lock), and its digest text. It knows words, not grammar, so that it can say
// something of every text, however broken, and never fails.
package sqltext
