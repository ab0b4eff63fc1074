// Package mysqltest gives tests the peers they need: a private MariaDB server, the real sysbench with its report
// read, and a scripted peer that says anything on demand. A missing program fails the test with the name of the
// Debian package it comes in; nothing is skipped.
//
// Nothing outlives the test process: children are killed when it dies, however it dies (on Linux), and what they
// wrote lies in temporary folders that Stop removes.
package mysqltest
