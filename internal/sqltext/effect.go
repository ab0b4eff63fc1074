package sqltext

import "bytes"

// Writes reports whether a text may change what the server keeps: data, schema, global variables, other sessions,
// files. It is false only where the statement surely cannot: plain reads, SHOW, session variables, transaction
// control. A call of a function that is not built in may write, as may everything unknown. All statements of the text
// count, and a text that reads differently with other sql_modes or on another version must be harmless either way.
// Views are taken to be harmless.
func Writes(text []byte) bool { return effectOf(text).writes }

// Locks reports whether a text may take locks that other sessions wait for: it writes, reads FOR UPDATE or in share
// mode, or takes table or named locks.
func Locks(text []byte) bool {
	e := effectOf(text)
	return e.writes || e.locks
}

type effect struct{ writes, locks bool }

func (e *effect) add(o effect) {
	e.writes = e.writes || o.writes
	e.locks = e.locks || o.locks
}

// effectOf takes every way in which a server could read the text.
func effectOf(text []byte) effect {
	modes := []Mode{0}
	if bytes.IndexByte(text, '\\') >= 0 {
		modes = append(modes, NoBackslashEscapes)
	}
	if bytes.Contains(text, []byte("/*!")) || bytes.Contains(text, []byte("/*M!")) {
		for _, m := range modes {
			modes = append(modes, m|skipVersioned)
		}
	}
	var e effect
	for _, m := range modes {
		l := NewLexer(text, m)
		e.add(l.effect())
	}
	return e
}

// effect is that of all statements to come.
func (l *Lexer) effect() effect {
	var e effect
	for {
		t := l.peek()
		switch {
		case t.Kind == End:
			return e
		case l.is(t, ";"):
			l.next()
		default:
			e.add(l.statementEffect())
		}
	}
}

// statementEffect is that of the statement at hand; it reads up to the semicolon or the end.
func (l *Lexer) statementEffect() effect {
	l.skipSetStatement()
	ahead := *l
	verb := ahead.verb()
	switch verb {
	case "select", "values", "table", "do", "handler", "show": // SHOW … WHERE may call functions
		return l.readEffect()
	case "explain":
		return l.explainEffect()
	case "set":
		return l.setEffect()
	case "lock tables":
		l.toEnd()
		return effect{locks: true}
	case "begin", "checksum", "commit", "deallocate", "get", "help", "prepare", "release savepoint", "rollback",
		"rollback to savepoint", "savepoint", "unlock tables", "use":
		l.toEnd()
		return effect{}
	}
	l.toEnd()
	return effect{writes: true}
}

// skipSetStatement passes over MariaDB's SET STATEMENT … FOR, which sets session variables for one statement, and to
// nothing that a function or subquery gives.
func (l *Lexer) skipSetStatement() {
	for ahead := *l; ahead.firstWord() == "set" && ahead.is(ahead.peek(), "statement") && ahead.toStatementFor(); {
		*l = ahead
	}
}

func (l *Lexer) toEnd() {
	for t := l.peek(); t.Kind != End && !l.is(t, ";"); t = l.peek() {
		l.next()
	}
}

// readEffect looks for what can be more than a read within one: INTO, locking clauses, functions, sequences.
func (l *Lexer) readEffect() effect {
	var e effect
	var last, before Token // the token in front, and the one in front of that
	for t := l.peek(); t.Kind != End && !l.is(t, ";"); t = l.peek() {
		l.next()
		switch {
		case l.is(t, "(") && (last.Kind == Word || last.Kind == Name):
			e.add(l.callEffect(last, l.is(before, "."), last.Stop < t.Start))
		case l.is(t, "into") && l.peek().Kind != UserVariable,
			l.is(t, "next") && l.is(l.peek(), "value"),
			t.Kind == Unterminated:
			e.writes = true
		case l.is(t, "for") && (l.is(l.peek(), "update") || l.is(l.peek(), "share")),
			l.is(t, "lock") && l.is(l.peek(), "in"):
			e.locks = true
		}
		last, before = t, last
	}
	return e
}

// callEffect is that of name(…). Only what is known to be harmless is: keywords, types and built-in functions. In quotes,
// or some of them with a space behind (gap), these names may mean stored functions.
func (l *Lexer) callEffect(name Token, qualified, gap bool) effect {
	var buf [maxWord]byte
	word := lower(&buf, l.Bytes(name))
	switch {
	case qualified, name.Kind == Name, gap && spaceless[string(word)]:
		return effect{writes: true}
	case lockFunctions[string(word)]:
		return effect{locks: true}
	case builtins[string(word)], classOf(word) != 0:
		return effect{}
	}
	return effect{writes: true}
}

// explainEffect: EXPLAIN ANALYZE runs the statement. EXPLAIN alone may run the subqueries in it, and the functions that
// these call.
func (l *Lexer) explainEffect() effect {
	l.next()
	if !l.is(l.peek(), "analyze") {
		return l.readEffect()
	}
	l.next()
	if l.is(l.peek(), "format") { // FORMAT = TREE
		l.next()
		l.next()
		l.next()
	}
	return l.statementEffect()
}

// setEffect: a SET is harmless as long as each assignment is to the session.
func (l *Lexer) setEffect() effect {
	ahead := *l
	e := ahead.readEffect() // functions and subqueries on the right
	l.next()
	depth, first := 0, true
	for t := l.peek(); t.Kind != End && !l.is(t, ";"); t = l.peek() {
		l.next()
		if first && l.setsMore(t) {
			e.writes = true
		}
		switch {
		case l.is(t, "("):
			depth++
		case l.is(t, ")"):
			depth--
		}
		first = depth == 0 && l.is(t, ",")
	}
	return e
}

// setsMore reports whether an assignment that begins with t reaches beyond the session.
func (l *Lexer) setsMore(t Token) bool {
	for _, scope := range []string{"global", "persist", "persist_only", "password", "default", "resource"} {
		if l.is(t, scope) {
			return true
		}
		if t.Kind == SystemVariable && bytes.EqualFold(l.Bytes(t)[2:], []byte(scope)) {
			return true
		}
	}
	return false
}
