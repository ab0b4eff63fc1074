// Package replay re-drives captures. In go capture files and an account on a target server; out come the same
// statements, sent by as many sessions, in each session's order, at the captured pace or another, and a capture of what
// happened. A Scan says beforehand what a replay would do, a Gate whether it may.
package replay
