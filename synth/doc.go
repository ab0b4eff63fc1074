// Package synth sends sysbench's OLTP workloads to a server and measures them. A Workload makes events, one at a time,
// out of a stream of random numbers; Run drives them from many threads, in a closed loop or on a schedule, and prints
// what sysbench would print, with a table per statement type behind it. Every statement can go to a capture.
package synth
