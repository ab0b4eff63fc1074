package mysqltest_test

import (
	"context"
	"reflect"
	"strings"
	"testing"
	"time"

	"redrive/internal/mysqltest"
)

const printed = `sysbench 1.0.20 (using system LuaJIT 2.1.0-beta3)

Threads started!

[ 1s ] thds: 2 tps: 10.99 qps: 219.83 (r/w/o: 153.88/43.97/21.98) lat (ms,95%): 0.56 err/s: 0.00 reconn/s: 0.00
SQL statistics:
    queries performed:
        read:                            14
        write:                           4
        other:                           2
        total:                           20
    transactions:                        1      (310.49 per sec.)
    queries:                             20     (6209.80 per sec.)
    ignored errors:                      3      (0.00 per sec.)
    reconnects:                          5      (0.00 per sec.)

General statistics:
    total time:                          0.0029s
    total number of events:              7

Latency (ms):
         min:                                    1.40
         avg:                                    1.42
         max:                                    1.44
         99th percentile:                        1.43
         sum:                                 2000.25

Threads fairness:
    events (avg/stddev):           1.0000/0.00
    execution time (avg/stddev):   0.0014/0.00
`

func TestParseReport(t *testing.T) {
	want := mysqltest.Report{
		Output: printed,
		Read:   14, Write: 4, Other: 2, Total: 20, Transactions: 1, IgnoredErrors: 3, Reconnects: 5, Events: 7,
		TotalTime: 2900 * time.Microsecond, QueryRate: 6209.80,
		Min: 1400 * time.Microsecond, Avg: 1420 * time.Microsecond, Max: 1440 * time.Microsecond,
		Percentile: 1430 * time.Microsecond, Sum: 2000250 * time.Microsecond,
	}
	got, err := mysqltest.ParseReport(printed)
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("ParseReport = %+v, %v\nwant %+v", got, err, want)
	}
	const disabled = "SQL statistics:\n         percentile stats:               disabled\n"
	if got, err := mysqltest.ParseReport(disabled); err != nil || got.Percentile != 0 {
		t.Errorf("ParseReport without percentiles = %+v, %v", got, err)
	}
	if _, err := mysqltest.ParseReport("SQL statistics:\n read: many\n"); err == nil {
		t.Error("ParseReport of a count that is no number: no error")
	}
}

func TestParseReportWithCheckpoint(t *testing.T) {
	first := strings.NewReplacer("20", "99", "1.4", "5.6").Replace(printed)
	got, err := mysqltest.ParseReport("[ 1s ] Checkpoint report:\n" + first + printed)
	if err != nil || got.Total != 20 || got.Min != 1400*time.Microsecond {
		t.Errorf("ParseReport of a checkpoint and an end = %+v, %v; want the end's total of 20 and min of 1.4ms", got, err)
	}
}

// printedHistogram is from a run of oltp_read_write with 60 events, whose report said: 95th percentile: 4.65.
const printedHistogram = `Latency histogram (values are in milliseconds)
       value  ------------- distribution ------------- count
       2.347 |********                                 1
       2.433 |********                                 1
       2.477 |************************                 3
       2.522 |****************                         2
       2.568 |****************                         2
       2.662 |********                                 1
       2.710 |**************************************** 5
       2.760 |********                                 1
       2.810 |****************                         2
       2.861 |********************************         4
       2.966 |********                                 1
       3.020 |****************                         2
       3.075 |********************************         4
       3.130 |********************************         4
       3.187 |************************                 3
       3.245 |**************************************** 5
       3.304 |****************                         2
       3.425 |********                                 1
       3.488 |********                                 1
       3.551 |********                                 1
       3.615 |****************                         2
       3.816 |************************                 3
       3.885 |********                                 1
       3.956 |********                                 1
       4.101 |********                                 1
       4.176 |****************                         2
       4.652 |****************                         2
       5.090 |********                                 1
       6.318 |                                         1
 
`

func TestHistogram(t *testing.T) {
	r, err := mysqltest.ParseReport(printedHistogram + printed)
	if err != nil || len(r.Histogram) != 29 || r.Histogram.Events() != 60 || r.Total != 20 {
		t.Fatalf("histogram of %d lines and %d events, total %d, %v; want 29, 60 and 20", len(r.Histogram), r.Histogram.Events(), r.Total, err)
	}
	for q, want := range map[float64]time.Duration{
		0: 2347 * time.Microsecond, 0.50: 3130 * time.Microsecond, 0.95: 4652 * time.Microsecond, 0.99: 6318 * time.Microsecond, 1: 6318 * time.Microsecond,
	} {
		if got := r.Histogram.Quantile(q); got != want {
			t.Errorf("Quantile(%v) = %v, want %v", q, got, want)
		}
	}
	if got := (mysqltest.LatencyHistogram{}).Quantile(0.5); got != 0 {
		t.Errorf("Quantile of no event = %v, want 0", got)
	}
	for _, line := range []string{"x |* 1", "0.1 |* y"} {
		if _, err := mysqltest.ParseReport("Latency histogram (values are in milliseconds)\n" + line + "\n" + printed); err == nil {
			t.Errorf("ParseReport of a histogram's line %q: no error", line)
		}
	}
}

// What sysbench computes itself bears out what is read from its histogram; the checkpoint divides the counts.
func TestWarmSysbench(t *testing.T) {
	s := mysqltest.Shared(t)
	args := append(mysqltest.SysbenchArgs(s.Addr, s.Schema(t)), "--table-size=100", "--threads=4", "--percentile=95", "oltp_point_select")
	if _, err := mysqltest.Sysbench(t.Context(), append(args, "prepare")...); err != nil {
		t.Fatal(err)
	}
	var name string
	var warm uint64 // rows sent
	var warmErr error
	before := s.Status(t, "Rows_sent")
	r, err := mysqltest.WarmSysbench(t.Context(), time.Second, time.Second, func() {
		warmErr = s.DB().QueryRow("SHOW GLOBAL STATUS LIKE 'Rows_sent'").Scan(&name, &warm)
	}, append(args, "run")...)
	if err != nil {
		t.Fatal(err)
	}
	after := s.Status(t, "Rows_sent")
	if all := after["Rows_sent"] - before["Rows_sent"]; r.Total == 0 || r.Total >= all {
		t.Errorf("%d queries reported, want some of the %d in all", r.Total, all)
	}
	if warmErr != nil || warm <= before["Rows_sent"] || warm >= after["Rows_sent"] {
		t.Errorf("rows sent: %v before, %d when warm (%v), %v at the end: want them to grow", before, warm, warmErr, after)
	}
	if off := r.Histogram.Quantile(0.95) - r.Percentile; off.Abs() > 10*time.Microsecond {
		t.Errorf("95th percentile from the histogram is off sysbench's %v by %v", r.Percentile, off)
	}
	if r.QueryRate <= 0 || r.Histogram.Events() > r.Events {
		t.Errorf("rate %v, %d of %d events in the histogram", r.QueryRate, r.Histogram.Events(), r.Events)
	}
}

func TestSysbenchEndsWithItsContext(t *testing.T) {
	peer := mysqltest.NewPeer(t, func(c *mysqltest.PeerConn) { c.ExpectHangUp() }) // never greets
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	if _, err := mysqltest.Sysbench(ctx, append(mysqltest.SysbenchArgs(peer.Addr, "x"), "oltp_point_select", "run")...); err == nil {
		t.Error("Sysbench without a server returned no error")
	}
}
