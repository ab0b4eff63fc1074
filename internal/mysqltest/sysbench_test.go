package mysqltest_test

import (
	"context"
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
		TotalTime: 2900 * time.Microsecond,
		Min:       1400 * time.Microsecond, Avg: 1420 * time.Microsecond, Max: 1440 * time.Microsecond,
		Percentile: 1430 * time.Microsecond, Sum: 2000250 * time.Microsecond,
	}
	got, err := mysqltest.ParseReport(printed)
	if err != nil || got != want {
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

func TestSysbenchEndsWithItsContext(t *testing.T) {
	peer := mysqltest.NewPeer(t, func(c *mysqltest.PeerConn) { c.ExpectHangUp() }) // never greets
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	if _, err := mysqltest.Sysbench(ctx, append(mysqltest.SysbenchArgs(peer.Addr, "x"), "oltp_point_select", "run")...); err == nil {
		t.Error("Sysbench without a server returned no error")
	}
}
