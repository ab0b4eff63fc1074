package replay

import (
	"bytes"

	"redrive/internal/sqltext"
)

// between are words that stand between a statement's verb and the table it writes to.
var between = map[string]bool{
	"into": true, "from": true, "table": true, "tables": true, "database": true, "schema": true, "view": true,
	"low_priority": true, "delayed": true, "high_priority": true, "quick": true, "ignore": true, "only": true,
	"or": true, "replace": true, "temporary": true, "unique": true, "fulltext": true, "spatial": true,
	"if": true, "not": true, "exists": true, "data": true, "local": true, "concurrent": true,
	"procedure": true, "function": true, "trigger": true, "event": true, "user": true, "online": true, "offline": true,
}

// tableOf is the first name behind a statement's verb, which is the table it writes to in most, cut at 80 bytes: for
// people to see what is meant, not for decisions.
func tableOf(text []byte) string {
	l := sqltext.NewLexer(text, 0)
	verb := l.Next()
	for verb.Kind == sqltext.Hint || verb.Kind == sqltext.Operator {
		verb = l.Next()
	}
	for t := l.Next(); t.Kind != sqltext.End; t = l.Next() {
		word := string(bytes.ToLower(l.Bytes(t)))
		switch {
		case t.Kind == sqltext.Word && word == "index":
			skipTo(&l, "on")
		case t.Kind == sqltext.Hint || t.Kind == sqltext.Word && between[word]:
		case t.Kind == sqltext.Word || t.Kind == sqltext.Name:
			return qualified(&l, t)
		default:
			return ""
		}
	}
	return ""
}

func skipTo(l *sqltext.Lexer, want string) {
	for t := l.Next(); t.Kind != sqltext.End; t = l.Next() {
		if t.Kind == sqltext.Word && bytes.EqualFold(l.Bytes(t), []byte(want)) {
			return
		}
	}
}

// qualified is the name that t begins, with what follows a dot.
func qualified(l *sqltext.Lexer, t sqltext.Token) string {
	name := string(l.Bytes(t))
	if dot := l.Next(); dot.Kind == sqltext.Operator && string(l.Bytes(dot)) == "." {
		name += "." + string(l.Bytes(l.Next()))
	}
	return name[:min(len(name), 80)]
}
