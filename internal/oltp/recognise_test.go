package oltp_test

import (
	"strings"
	"testing"

	"redrive/internal/oltp"
	"redrive/internal/sqltext"
)

func recognise(text string) string {
	t, ok := oltp.Recognise([]byte(text), sqltext.Normalize(nil, []byte(text)))
	if !ok {
		return ""
	}
	return t.Name
}

func TestRecognise(t *testing.T) {
	const c = "'68487932199-96439406143-93774651418'"
	tests := []struct{ text, want string }{
		{"SELECT c FROM sbtest7 WHERE id=5024", "point select"},
		{"SELECT c FROM sbtest WHERE id=5024", "point select"},
		{"SELECT c FROM sbtest1 WHERE id BETWEEN 1 AND 100", "simple range"},
		{"SELECT SUM(K) FROM sbtest12 WHERE id BETWEEN 1 AND 100", "sum range"},
		{"SELECT c FROM sbtest1 WHERE id BETWEEN 1 AND 100 ORDER BY c", "order range"},
		{"SELECT DISTINCT c FROM sbtest1 WHERE id BETWEEN 1 AND 100 ORDER BY c", "distinct range"},
		{"\n  SELECT id, k, c, pad\n    FROM sbtest1\n    WHERE k IN (1, 2,\n 3)\n", "random points"},
		{"SELECT id, k, c, pad FROM sbtest1 WHERE k IN (?)", "random points"},
		{"SELECT count(k)\n FROM sbtest1\n WHERE k BETWEEN 1 AND 5", "random ranges"},
		{"SELECT count(k) FROM sbtest1 WHERE k BETWEEN ? AND ?" + strings.Repeat(" OR k BETWEEN ? AND ?", 99), "random ranges"},
		{"UPDATE sbtest1 SET k=k+1 WHERE id=-7", "index update"},
		{"UPDATE sbtest1 SET c=" + c + " WHERE id=7", "non-index update"},
		{"DELETE FROM sbtest1 WHERE id=7", "delete"},
		{"INSERT INTO sbtest1 (id, k, c, pad) VALUES (-7, 1, " + c + ", 'a),(b')", "insert"},
		{"INSERT INTO sbtest1 (id, k, c, pad) VALUES (?, ?, ?, ?)", "insert"},
		{"INSERT INTO sbtest3 VALUES(1,1)", "bulk insert"},
		{"INSERT INTO sbtest3 VALUES(1,1),(2,2),(3,3)", "bulk insert"},
		{"INSERT INTO sbtest3(k, c, pad) VALUES(26, " + c + ", 'a'),(31, " + c + ", 'b')", "bulk insert"},
		{"INSERT INTO sbtest3(id, k, c, pad) VALUES(1, 26, 'a', 'b'),(2, 31, 'c', 'd')", "bulk insert"},
		{"BEGIN", "begin"},
		{"start transaction", "begin"},
		{"COMMIT", "commit"},
		{"ROLLBACK", ""},
		{"SELECT c FROM other1 WHERE id=5024", ""},
		{"SELECT c FROM sbtest1 WHERE id=1 OR k BETWEEN 1 AND 2", ""},
		{"SELECT c FROM sbtest1x WHERE id=5024", ""},
		{"SELECT k FROM sbtest1 WHERE id=5024", ""},
		{"INSERT INTO sbtest1 VALUES (1,2,3)", ""},
		{"", ""},
	}
	for _, test := range tests {
		if got := recognise(test.text); got != test.want {
			t.Errorf("%s is %q, want %q", test.text, got, test.want)
		}
	}
}

func TestEveryTypeIsItself(t *testing.T) {
	for _, want := range oltp.Types {
		if got := recognise(strings.ReplaceAll(want.Text, "sbtestN", "sbtest42")); got != want.Name {
			t.Errorf("%s is %q, want %q", want.Text, got, want.Name)
		}
	}
}
