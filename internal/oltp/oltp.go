// Package oltp names the statements that sysbench's OLTP scripts send: synth makes them, analyze recognises them.
package oltp

// A Type is one kind of statement of sysbench's scripts.
type Type struct {
	Name string // in tables and JSON
	Text string // prepared text; sbtestN stands for any table sbtest1, sbtest2, …
}

// The types, by the names tables print. Lists of values (bulk insert, random points, random ranges) stand for lists of
// any length.
var (
	PointSelect    = Type{"point select", "SELECT c FROM sbtestN WHERE id=?"}
	SimpleRange    = Type{"simple range", "SELECT c FROM sbtestN WHERE id BETWEEN ? AND ?"}
	SumRange       = Type{"sum range", "SELECT SUM(k) FROM sbtestN WHERE id BETWEEN ? AND ?"}
	OrderRange     = Type{"order range", "SELECT c FROM sbtestN WHERE id BETWEEN ? AND ? ORDER BY c"}
	DistinctRange  = Type{"distinct range", "SELECT DISTINCT c FROM sbtestN WHERE id BETWEEN ? AND ? ORDER BY c"}
	RandomPoints   = Type{"random points", "SELECT id, k, c, pad FROM sbtestN WHERE k IN (?)"}
	RandomRanges   = Type{"random ranges", "SELECT count(k) FROM sbtestN WHERE k BETWEEN ? AND ? OR k BETWEEN ? AND ?"}
	IndexUpdate    = Type{"index update", "UPDATE sbtestN SET k=k+1 WHERE id=?"}
	NonIndexUpdate = Type{"non-index update", "UPDATE sbtestN SET c=? WHERE id=?"}
	Delete         = Type{"delete", "DELETE FROM sbtestN WHERE id=?"}
	Insert         = Type{"insert", "INSERT INTO sbtestN (id, k, c, pad) VALUES (?, ?, ?, ?)"}
	BulkInsert     = Type{"bulk insert", "INSERT INTO sbtestN VALUES(?, ?)"}
	Begin          = Type{"begin", "BEGIN"}
	Commit         = Type{"commit", "COMMIT"}
)

// Types lists them all in the order a read-write event sends them.
var Types = []Type{
	PointSelect, SimpleRange, SumRange, OrderRange, DistinctRange, RandomPoints, RandomRanges,
	IndexUpdate, NonIndexUpdate, Delete, Insert, BulkInsert, Begin, Commit,
}
