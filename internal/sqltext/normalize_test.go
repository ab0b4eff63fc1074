package sqltext_test

import (
	"testing"

	"redrive/internal/sqltext"
)

func TestNormalize(t *testing.T) {
	tests := []struct{ name, text, want string }{
		{"point select", "SELECT c FROM sbtest1 WHERE id=5024", "select c from sbtest1 where id = ?"},
		{"prepared", "SELECT c FROM sbtest1 WHERE id=?", "select c from sbtest1 where id = ?"},
		{"increment", "UPDATE sbtest1 SET k=k+1 WHERE id=7", "update sbtest1 set k = k + ? where id = ?"},
		{"layout", "select\n  c\tfrom sbtest1\r\nwhere ( id = 5 ) ;", "select c from sbtest1 where (id = ?)"},
		{"in, one", "SELECT 1 FROM t WHERE a IN (1)", "select ? from t where a in (?+)"},
		{"in, three", "SELECT 1 FROM t WHERE a IN(1, 'x',?)", "select ? from t where a in (?+)"},
		{"in, tuples", "SELECT a FROM t WHERE (a,b) IN ((1,2),(3,4))", "select a from t where (a, b) in ((?, ?)+)"},
		{"in, one tuple", "SELECT a FROM t WHERE (a,b) IN ((1,2))", "select a from t where (a, b) in ((?, ?)+)"},
		{"in, names", "SELECT a FROM t WHERE a IN (b, 1, 2, c, 3)", "select a from t where a in (b, ?+, c)"},
		{"in, calls", "SELECT a FROM t WHERE a IN (f(1), 2)", "select a from t where a in (f(?), ?+)"},
		{"in, introduced", "SELECT a FROM t WHERE a IN (_binary'x', _binary 'y')", "select a from t where a in (?+)"},
		{"in, subquery", "SELECT a FROM t WHERE a IN (SELECT b FROM u)", "select a from t where a in (select b from u)"},
		{"row", "INSERT INTO t VALUES (1,'x')", "insert into t values (?, ?)+"},
		{"rows", "INSERT INTO t VALUES(1,'x'), (2,'y')", "insert into t values (?, ?)+"},
		{"value", "INSERT INTO t(a) VALUE (1),(2)", "insert into t(a) values (?)+"},
		{"rows with a function", "INSERT INTO t VALUES (1,NOW()),(2,NOW())", "insert into t values (?, now())+"},
		{
			"rows of two shapes", "INSERT INTO t VALUES (1,NOW()),(2,3),(3,NOW()),(DEFAULT,1),(2,3)",
			"insert into t values (?, now())+, (?, ?)+, (default, ?)+",
		},
		{
			"on duplicate key", "INSERT INTO t (a,b) VALUES (1,2),(3,4) ON DUPLICATE KEY UPDATE b=VALUES(b), a=GREATEST(VALUES(a),1)",
			"insert into t(a, b) values (?, ?)+ on duplicate key update b = values (b), a = greatest(values (a), ?)",
		},
		{"values statement", "VALUES ROW(1,2), ROW(3,4)", "values row(?, ?)+"},
		{"table of values", "SELECT * FROM (VALUES (1),(2)) t", "select * from (values (?)+) t"},
		{"null in rows", "INSERT INTO t VALUES (1,NULL),(2,TRUE)", "insert into t values (?, ?)+"},
		{"signs", "SELECT a=-5, b=3-5, c=+7, d=(-5), e=- 5", "select a = ?, b = ? - ?, c = ?, d = (?), e = ?"},
		{"sign of a name", "SELECT -a, 1 - -b", "select -a, ? - -b"},
		{"two signs", "SELECT - -5, a - -5", "select ?, a - ?"},
		{"sign of a placeholder", "SELECT -?", "select ?"},
		{"sign in between", "SELECT 1 FROM t WHERE a BETWEEN -3 AND -1", "select ? from t where a between ? and ?"},
		{"hexadecimal", "SELECT 0xFF, x'0F', X'0f', b'1', 0b01, B'0'", "select ?, ?, ?, ?, ?, ?"},
		{"0X is a name", "SELECT 0XFF", "select 0xff"},
		{"numbers", "SELECT .5, 1., 1.5, 1e5, 1E-5, 1.5e+3", "select ?, ?, ?, ?, ?, ?"},
		{"dashes without blank", "SELECT a FROM t WHERE a=1--1", "select a from t where a = ? - ?"},
		{
			"comments", "/* app:x's */ SELECT 1 -- it's\n, 2 # \"\n, /* 'a */ 3",
			"select ?, ?, ?",
		},
		{"hint", "SELECT /*+ MAX_EXECUTION_TIME(1000) NO_MERGE(`a`) */ c FROM t", "select /*+ max_execution_time(?) no_merge(a) */ c from t"},
		{"version comment", "CREATE TABLE t (a INT) /*!40100 ENGINE=InnoDB */", "create table t(a int) engine = innodb"},
		{"MariaDB's", "SELECT /*M!100100 1, */ a", "select ?, a"},
		{"backticks", "SELECT `a`.`b`, `A` FROM `db`.`t`", "select a.b, a from db.t"},
		{"needed backticks", "SELECT `order`, `a b`, `1`, t.`order` FROM t", "select `order`, `a b`, `1`, t.order from t"},
		{"digits in names", "SELECT db1.t, utf8mb4, t2024_01, x1y, 2024_sales, t.1a, t.5", "select db1.t, utf8mb4, t2024_01, x1y, 2024_sales, t.1a, t.5"},
		{"limit", "SELECT a FROM t LIMIT 10", "select a from t limit ?"},
		{"limit with a comma", "SELECT a FROM t LIMIT 5,10", "select a from t limit ? offset ?"},
		{"limit with offset", "SELECT a FROM t LIMIT 10 OFFSET 5", "select a from t limit ? offset ?"},
		{"null as a value", "UPDATE t SET a=NULL WHERE b IS NULL AND c IS NOT NULL", "update t set a = ? where b is null and c is not null"},
		{"null in DDL", "CREATE TABLE t (a INT NOT NULL, b INT NULL DEFAULT NULL)", "create table t(a int not null, b int null default null)"},
		{"true", "SELECT a=TRUE, b IS TRUE", "select a = ?, b is true"},
		{"asc", "SELECT a FROM t ORDER BY a ASC, b DESC", "select a from t order by a, b desc"},
		{"doubled quotes", `SELECT 'it''s', "c""d", 'a\'b'`, "select ?, ?, ?"},
		{"concatenation", "SELECT 'a' 'b', N'c'", "select ?, ?"},
		{"unterminated", "SELECT 'secret", "select ?"},
		{"cut in a row", "INSERT INTO t VALUES (1,2),(3,'se", "insert into t values (?, ?)+, (?, ?"},
		{"NUL in a literal", "SELECT 'a\x00b', c", "select ?, c"},
		{"two statements", "SELECT 1; SELECT 2;;", "select ?; select ?"},
		{"variables", "SET @A=1, @@session.x=2, @@GLOBAL.y=3", "set @a = ?, @@session.x = ?, @@global.y = ?"},
		{"account", "CREATE USER 'u'@'h' IDENTIFIED BY 'secret'", "create user ? @? identified by ?"},
		{"json", "SELECT j->'$.a', j->>'$.b'", "select j -> ?, j ->> ?"},
		{"div and mod", "SELECT 5 DIV 2, 5 MOD 2", "select ? div ?, ? mod ?"},
		{"star", "SELECT COUNT(*), t.*, a*b FROM t", "select count(*), t.*, a * b from t"},
		{"function with a blank", "SELECT COUNT (c), IF (a,1,2)", "select count(c), if(a, ?, ?)"},
		{"force index", "SELECT a FROM t FORCE INDEX (i1)", "select a from t force index (i1)"},
		{"call", "CALL p(1,'x',@a)", "call p(?, ?, @a)"},
		{"introducer", "SELECT _utf8mb4'a', _latin1 x'4D', _mine, _latin1", "select ?, ?, _mine, _latin1"},
		{"beyond ASCII", "SELECT `имя` FROM naïve WHERE a='ключ'", "select имя from naïve where a = ?"},
		{"empty", "  -- nothing", ""},
	}
	for _, test := range tests {
		if got := string(sqltext.Normalize(nil, []byte(test.text))); got != test.want {
			t.Errorf("%s: Normalize(%q)\n got %q\nwant %q", test.name, test.text, got, test.want)
		}
	}
}
