package oltp

import (
	"bytes"

	"redrive/internal/sqltext"
)

// variants are other texts of some types: what prepare sends, and what means the same.
var variants = map[string]Type{
	"INSERT INTO sbtestN (k, c, pad) VALUES (?, ?, ?)": BulkInsert,
	"START TRANSACTION": Begin,
}

const (
	table       = "sbtest"
	anyTable    = "sbtestn"
	moreRanges  = " or k between ? and ?"
	longestText = 128
)

var byDigest = func() map[string]Type {
	m := map[string]Type{}
	add := func(text string, t Type) { m[string(trimRanges(sqltext.Normalize(nil, []byte(text))))] = t }
	for _, t := range Types {
		add(t.Text, t)
	}
	for text, t := range variants {
		add(text, t)
	}
	return m
}()

// Recognise returns the type of a statement of sysbench's scripts, text or prepared, on any table sbtestN, in any
// layout, with lists of any length; false for all other SQL. digest is the statement's sqltext.Normalize.
func Recognise(text, digest []byte) (Type, bool) {
	digest = trimRanges(digest)
	if len(digest) > longestText {
		return Type{}, false
	}
	var buf [longestText + len(anyTable)]byte
	t, ok := byDigest[string(appendAnyTable(buf[:0], digest))]
	if ok && t == Insert && severalRows(text) { // prepare with auto_inc=off
		t = BulkInsert
	}
	return t, ok
}

// trimRanges cuts the further ranges of random ranges off.
func trimRanges(digest []byte) []byte {
	if !bytes.HasPrefix(digest, []byte("select count(k) from "+table)) {
		return digest
	}
	for bytes.HasSuffix(digest, []byte(moreRanges)) {
		digest = digest[:len(digest)-len(moreRanges)]
	}
	return digest
}

// appendAnyTable appends the digest text with the number of its first sbtest table as N.
func appendAnyTable(dst, digest []byte) []byte {
	i := bytes.Index(digest, []byte(table))
	if i < 0 {
		return append(dst, digest...)
	}
	dst = append(append(dst, digest[:i]...), anyTable...)
	rest := digest[i+len(table):]
	return append(dst, bytes.TrimLeft(rest, "0123456789n")...)
}

// severalRows reports whether the text's VALUES have more than one row.
func severalRows(text []byte) bool {
	l := sqltext.NewLexer(text, 0)
	rows := false
	for t := l.Next(); t.Kind != sqltext.End; t = l.Next() {
		switch token := l.Bytes(t); {
		case t.Kind == sqltext.Word:
			rows = rows || bytes.EqualFold(token, []byte("values"))
		case rows && t.Kind == sqltext.Operator && token[0] == ')':
			t = l.Next()
			return t.Kind == sqltext.Operator && l.Bytes(t)[0] == ','
		}
	}
	return false
}
