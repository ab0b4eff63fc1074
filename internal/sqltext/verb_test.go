package sqltext_test

import (
	"testing"

	"redrive/internal/sqltext"
)

func TestVerb(t *testing.T) {
	tests := []struct{ text, want string }{
		{"SELECT 1", "select"},
		{"  -- c\n/* c */ # c\n\tselect 1", "select"},
		{"(SELECT 1) UNION (SELECT 2)", "select"},
		{"((SELECT 1))", "select"},
		{"/*! SELECT */ 1", "select"},
		{"/*+ no hint here */ SELECT 1", "select"},
		{"WITH a AS (SELECT 1), b (x) AS (DELETE) SELECT * FROM a", "select"},
		{"WITH RECURSIVE a AS (SELECT 1) DELETE FROM t", "delete"},
		{"with a as (select 1) (select 2)", "select"},
		{"BEGIN", "begin"},
		{"BEGIN WORK", "begin"},
		{"START TRANSACTION READ ONLY", "begin"},
		{"start /* c */ transaction", "begin"},
		{"BEGIN NOT ATOMIC DELETE FROM t; END", "begin not atomic"},
		{"START SLAVE", "start"},
		{"COMMIT AND CHAIN", "commit"},
		{"ROLLBACK", "rollback"},
		{"ROLLBACK WORK", "rollback"},
		{"ROLLBACK TO s", "rollback to savepoint"},
		{"rollback work to savepoint s", "rollback to savepoint"},
		{"RELEASE SAVEPOINT s", "release savepoint"},
		{"SET autocommit=1", "set"},
		{"SET STATEMENT max_statement_time=1 FOR DELETE FROM t", "delete"},
		{"SET STATEMENT a=1; SELECT 1 FOR UPDATE", "set"},
		{"SET STATEMENT a=1 FOR SET STATEMENT b=2 FOR WITH c AS (SELECT 1) SELECT 1", "select"},
		{"CREATE TABLE t (a INT)", "create table"},
		{"CREATE OR REPLACE TEMPORARY TABLE t (a INT)", "create table"},
		{"CREATE UNIQUE INDEX i ON t (a)", "create index"},
		{"CREATE DEFINER=`u`@`h` SQL SECURITY INVOKER VIEW v AS SELECT 1", "create view"},
		{"CREATE SCHEMA s", "create database"},
		{"ALTER ONLINE TABLE t ADD INDEX i (a)", "alter table"},
		{"DROP TABLE IF EXISTS t", "drop table"},
		{"DESC t", "explain"},
		{"LOCK TABLES t READ", "lock tables"},
		{"UNLOCK TABLES", "unlock tables"},
		{"XA START 'a'", "xa"},
		{"FROBNICATE all", "frobnicate"},
		{"INSERT INTO t VALUES (1)", "insert"},
		{";;SELECT 1", "select"},
		{"'SELECT'", ""},
		{"", ""},
		{"-- nothing", ""},
	}
	for _, test := range tests {
		if got := sqltext.Verb([]byte(test.text)); got != test.want {
			t.Errorf("Verb(%q) = %q, want %q", test.text, got, test.want)
		}
	}
}

func TestWritesAndLocks(t *testing.T) {
	const (
		none  = 0
		locks = 1
		both  = 2 // what writes locks
	)
	tests := []struct {
		text string
		want int
	}{
		{"SELECT c FROM sbtest1 WHERE id=1", none},
		{"SELECT SUM(k), COUNT(*) FROM sbtest1 WHERE id BETWEEN ? AND ?", none},
		{"SELECT a FROM (SELECT 1 AS a) t WHERE (a, 1) IN ((1, 2)) AND EXISTS (SELECT 1)", none},
		{"SELECT CAST(a AS CHAR(10)), a FROM t USE INDEX (i) JOIN u USING (b)", none},
		{"SELECT ROW_NUMBER() OVER (PARTITION BY a) FROM t", none},
		{"SELECT 'INTO OUTFILE', `into` FROM t -- FOR UPDATE", none},
		{"SELECT 'a;DELETE FROM t'", none},
		{"SELECT @a := 1, 2 INTO @b, @c", none},
		{"SELECT c FROM t FOR UPDATE", locks},
		{"SELECT c FROM t for share skip locked", locks},
		{"SELECT c FROM t LOCK IN SHARE MODE", locks},
		{"SELECT GET_LOCK('a', 1)", locks},
		{"DO RELEASE_LOCK('a')", locks},
		{"LOCK TABLES t WRITE", locks},
		{"SELECT 1 INTO OUTFILE '/tmp/x'", both},
		{"SELECT 1 INTO v", both},
		{"SELECT f(1)", both},
		{"SELECT `count`(1)", both}, // a stored function may have this name
		{"SELECT COUNT (1)", both},  // and this, without IGNORE_SPACE
		{"SELECT ABS (1)", none},
		{"SELECT `f`(1)", both},
		{"SELECT db.count(1)", both},
		{"SELECT NEXT VALUE FOR s", both},
		{"SELECT NEXTVAL(s)", both},
		{"SELECT 'unterminated", both},
		{"WITH a AS (SELECT 1) SELECT * FROM a", none},
		{"WITH a AS (SELECT f(1)) SELECT * FROM a", both},
		{"WITH a AS (SELECT 1) DELETE FROM t", both},
		{"SELECT 1; SELECT 2;", none},
		{"SELECT 1; DELETE FROM t", both},
		{"SHOW TABLES; USE x", none},
		{"BEGIN", none},
		{"START TRANSACTION WITH CONSISTENT SNAPSHOT", none},
		{"COMMIT", none},
		{"ROLLBACK TO s", none},
		{"SAVEPOINT s", none},
		{"BEGIN NOT ATOMIC DELETE FROM t; END", both},
		{"SET NAMES utf8mb4", none},
		{"SET autocommit=0, @a = 1, SESSION x = @@GLOBAL.y, z = DEFAULT", none},
		{"SET GLOBAL x = 1", both},
		{"SET a = 1, @@global.x = 1", both},
		{"SET @@persist.x = 1", both},
		{"SET PASSWORD = 'x'", both},
		{"SET @a = f(1)", both},
		{"SET STATEMENT a=1 FOR SELECT 1", none},
		{"SET STATEMENT a=1 FOR UPDATE t SET b=1", both},
		{"SET STATEMENT a=1 FOR SET b=2", none},
		{"SET STATEMENT a=1 FOR SET GLOBAL b=2", both},
		{"SET STATEMENT a=1 FOR SET STATEMENT b=1 FOR SET PASSWORD = 'x'", both},
		{"SET STATEMENT a=1 FOR EXPLAIN ANALYZE DELETE FROM t", both},
		{"SET STATEMENT a=1; SET GLOBAL b=2", both},
		{"SHOW TABLES WHERE f(1)", both},
		{"SHOW COUNT(*) WARNINGS", none},
		{"EXPLAIN DELETE FROM t", none},
		{"EXPLAIN SELECT * FROM (SELECT f(1)) d", both}, // MariaDB calls f
		{"EXPLAIN SELECT COUNT(*) FROM (SELECT 1) d", none},
		{"EXPLAIN ANALYZE SELECT 1", none},
		{"EXPLAIN ANALYZE FORMAT=TREE DELETE FROM t", both},
		{"ANALYZE TABLE t", both},
		{"INSERT INTO t VALUES (1)", both},
		{"CALL p()", both},
		{"PREPARE s FROM 'DELETE FROM t'", none},
		{"EXECUTE s", both},
		{"LOAD DATA INFILE 'x' INTO TABLE t", both},
		{"CREATE TEMPORARY TABLE t (a INT)", both},
		{"KILL 5", both},
		{"XA COMMIT 'a'", both},
		{"/*!40101 SET NAMES utf8 */", none},
		{"SELECT 1 /*!50000 INTO OUTFILE 'x' */", both},
		{"/*!99999 SELECT 1; */ DELETE FROM t", both},
		{"/*!99999 SELECT */ DELETE FROM t", both},
		{`SELECT '\' INTO OUTFILE "x" -- '`, both}, // with NO_BACKSLASH_ESCAPES
		{"", none},
		{"-- nothing", none},
		{"SELEC 1", both},
	}
	for _, test := range tests {
		if got := sqltext.Writes([]byte(test.text)); got != (test.want == both) {
			t.Errorf("Writes(%q) = %t, want %t", test.text, got, test.want == both)
		}
		if got := sqltext.Locks([]byte(test.text)); got != (test.want != none) {
			t.Errorf("Locks(%q) = %t, want %t", test.text, got, test.want != none)
		}
	}
}
