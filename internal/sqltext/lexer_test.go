package sqltext_test

import (
	"slices"
	"testing"

	"redrive/internal/sqltext"
)

// tokens are the token texts, without their kinds.
func tokens(text string, mode sqltext.Mode) []string {
	var all []string
	l := sqltext.NewLexer([]byte(text), mode)
	for t := l.Next(); t.Kind != sqltext.End; t = l.Next() {
		all = append(all, string(l.Bytes(t)))
	}
	return all
}

func TestTokens(t *testing.T) {
	tests := []struct {
		text string
		mode sqltext.Mode
		want []string
	}{
		{`'a\'b' c`, 0, []string{`'a\'b'`, "c"}},
		{`'a\' b`, sqltext.NoBackslashEscapes, []string{`'a\'`, "b"}},
		{`"a\" b" c`, sqltext.AnsiQuotes, []string{`"a\"`, "b", `" c`}},
		{"`a\\` b", 0, []string{"`a\\`", "b"}},
		{"`a``b` c", 0, []string{"`a``b`", "c"}},
		{"a<=>b>=c<>d!=e:=f||g&&h<<i", 0, []string{"a", "<=>", "b", ">=", "c", "<>", "d", "!=", "e", ":=", "f", "||", "g", "&&", "h", "<<", "i"}},
		{"@a.b @'c d' @@x @@global.y", 0, []string{"@a.b", "@'c d'", "@@x", "@@global", ".", "y"}},
		{"t.1a t .5 a.5.6", 0, []string{"t", ".", "1a", "t", ".5", "a", ".", "5", ".", "6"}},
		{"1e5 1e 1e+ 2x 0x 0xg 0x1g", 0, []string{"1e5", "1e", "1e", "+", "2x", "0x", "0xg", "0x1g"}},
		{"a--b -- c\n--\td\nd--", 0, []string{"a", "-", "-", "b", "d"}},
		{"a /*b*/ c /* d", 0, []string{"a", "c"}},
		{"/*!50003 a /* b */ c */ d */", 0, []string{"a", "c", "d", "*", "/"}},
		{"/*!123456789 a*/", 0, []string{"789", "a"}},
		{`\N _utf8 'a' _utf8 b`, 0, []string{`\N`, "_utf8", "'a'", "_utf8", "b"}},
		{"/*+ h */ /*+ i", 0, []string{"/*+ h */", "/*+ i"}},
	}
	for _, test := range tests {
		if got := tokens(test.text, test.mode); !slices.Equal(got, test.want) {
			t.Errorf("tokens of %s\n got %q\nwant %q", test.text, got, test.want)
		}
	}
}

func TestEveryPrefixIsRead(t *testing.T) {
	const text = "SELECT /*+ h(1) */ `a`, @b, @@c, 'd''e', x'0F', 1.5e-3 /*! , 2 */ FROM t WHERE (a,b) IN ((1,2),(3,4)) LIMIT 5,6; VALUES ROW(1)"
	for i := range len(text) {
		check(t, []byte(text[:i]))
		check(t, []byte(text[i:]))
	}
}

// check holds for every text: tokens follow one another without overlapping, and normalising neither fails nor lets a
// quoted string through.
func check(t *testing.T, text []byte) {
	t.Helper()
	for _, mode := range []sqltext.Mode{0, sqltext.NoBackslashEscapes, sqltext.AnsiQuotes} {
		l := sqltext.NewLexer(text, mode)
		last := 0
		for tok := l.Next(); tok.Kind != sqltext.End; tok = l.Next() {
			if tok.Start < last || tok.Stop <= tok.Start || tok.Stop > len(text) {
				t.Fatalf("text %q: token %v after offset %d", text, tok, last)
			}
			last = tok.Stop
		}
		normal := mode.Normalize(nil, text)
		again := sqltext.NewLexer(normal, mode)
		for tok := again.Next(); tok.Kind != sqltext.End; tok = again.Next() {
			if tok.Kind == sqltext.String {
				t.Fatalf("Normalize(%q) = %q, with the string %q", text, normal, again.Bytes(tok))
			}
		}
	}
	sqltext.Verb(text)
	if sqltext.Writes(text) && !sqltext.Locks(text) {
		t.Fatalf("%q writes, but takes no locks", text)
	}
}

func FuzzText(f *testing.F) {
	for _, seed := range []string{
		"SELECT c FROM sbtest1 WHERE id IN (1,2) LIMIT 1,2", "INSERT INTO t(a) VALUES (1,'x'),(2,NOW())",
		"SET STATEMENT a=1 FOR SELECT /*+ x(1) */ - -5", "/*!50000 a /* b */ */ -- c\n`d`.1e5 @'e' @@global.f x'0' _utf8 'g'",
		"WITH a AS (VALUES ROW(1)) SELECT IN(((1,2),(3,(4)))) ;; `", "'\\", "\"\\\"'", "@`", "/*+",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) { check(t, text) })
}

// readWrite are the statements of one read-write event of sysbench, as text.
var readWrite = []string{
	"SELECT c FROM sbtest1 WHERE id=50024",
	"SELECT c FROM sbtest1 WHERE id BETWEEN 4983 AND 5082",
	"SELECT SUM(k) FROM sbtest1 WHERE id BETWEEN 4983 AND 5082",
	"SELECT c FROM sbtest1 WHERE id BETWEEN 4983 AND 5082 ORDER BY c",
	"SELECT DISTINCT c FROM sbtest1 WHERE id BETWEEN 4983 AND 5082 ORDER BY c",
	"UPDATE sbtest1 SET k=k+1 WHERE id=5012",
	"UPDATE sbtest1 SET c='68487932199-96439406143-93774651418-41631865787-96406072701' WHERE id=5012",
	"DELETE FROM sbtest1 WHERE id=4992",
	"INSERT INTO sbtest1 (id, k, c, pad) VALUES (4992, 5000, '68487932199-96439406143', '67847967377-48000963322')",
}

func BenchmarkNormalize(b *testing.B) {
	texts := make([][]byte, len(readWrite))
	for i, s := range readWrite {
		texts[i] = []byte(s)
	}
	var dst []byte
	b.ReportAllocs()
	n := 0
	for b.Loop() {
		dst = sqltext.Normalize(dst[:0], texts[n%len(texts)])
		n++
	}
	b.ReportMetric(float64(n)/b.Elapsed().Seconds(), "statements/s")
}
