package sqltext

// Verb is what a statement does, in lower case: select, insert, begin, commit, set, "create table", "rollback to
// savepoint" … It looks through comments, parentheses, WITH and MariaDB's SET STATEMENT … FOR. START TRANSACTION is
// begin, DESCRIBE is explain. Of several statements it is the first one's; without any word it is empty.
func Verb(text []byte) string {
	l := NewLexer(text, 0)
	return l.verb()
}

// verb reads on to the verb of the statement at hand; the lexer is left somewhere behind it.
func (l *Lexer) verb() string {
	word := l.firstWord()
	for word == "set" && l.is(l.peek(), "statement") {
		if !l.toStatementFor() {
			return word
		}
		word = l.firstWord()
	}
	switch word {
	case "with":
		return l.verbAfterWith()
	case "create", "alter", "drop":
		return l.verbOfObject(word)
	}
	return l.verbOfTwo(word)
}

// firstWord reads the word that the statement at hand begins with, "" if it begins with something else.
func (l *Lexer) firstWord() string {
	t := l.next()
	for l.is(t, "(") || l.is(t, ";") {
		t = l.next()
	}
	if t.Kind != Word {
		return ""
	}
	return l.known(t)
}

// toStatementFor reads on behind the FOR of SET STATEMENT a=1, b=2 FOR …. It reports false if there is none.
func (l *Lexer) toStatementFor() bool {
	for t := l.next(); t.Kind != End && !l.is(t, ";"); t = l.next() {
		if l.is(t, "for") {
			return true
		}
	}
	return false
}

// next is the next token that is no hint.
func (l *Lexer) next() Token {
	t := l.Next()
	for t.Kind == Hint {
		t = l.Next()
	}
	return t
}

// peek is the token after the one just read.
func (l *Lexer) peek() Token {
	ahead := *l
	return ahead.next()
}

// is reports whether t is the operator op or, in any case, the bare word op.
func (l *Lexer) is(t Token, op string) bool {
	if t.Kind != Operator && t.Kind != Word || t.Stop-t.Start != len(op) {
		return false
	}
	for i, c := range l.Bytes(t) {
		if lowerByte(c) != op[i] {
			return false
		}
	}
	return true
}

// known is the word in lower case, as one of the strings above where it is known, so that nothing is allocated.
func (l *Lexer) known(t Token) string {
	var buf [maxWord]byte
	word := lower(&buf, l.Bytes(t))
	if s, ok := verbs[string(word)]; ok {
		return s
	}
	return string(word)
}

// verbAfterWith finds the verb behind a WITH's common tables. Only a SELECT may stand in parentheses there.
func (l *Lexer) verbAfterWith() string {
	depth := 0
	for t := l.next(); t.Kind != End && !l.is(t, ";"); t = l.next() {
		switch {
		case l.is(t, "("):
			depth++
		case l.is(t, ")"):
			depth--
		case depth == 0 && t.Kind == Word:
			switch word := l.known(t); word {
			case "select", "insert", "replace", "update", "delete", "values", "table":
				return word
			}
		}
	}
	return "select"
}

// verbOfObject adds what is created, altered or dropped, whatever stands between: OR REPLACE, TEMPORARY, DEFINER=….
func (l *Lexer) verbOfObject(verb string) string {
	for range 32 {
		t := l.next()
		if t.Kind == End {
			break
		}
		var buf [maxWord]byte
		if t.Kind != Word {
			continue
		}
		if object := objects[string(lower(&buf, l.Bytes(t)))]; object != "" {
			return joined[verb+" "+object]
		}
	}
	return verb
}

// verbOfTwo names the verbs whose second word makes a difference.
func (l *Lexer) verbOfTwo(word string) string {
	second := l.peek()
	switch {
	case word == "start" && l.is(second, "transaction"):
		return "begin"
	case word == "begin" && l.is(second, "not"): // BEGIN NOT ATOMIC … END, a block of statements
		return "begin not atomic"
	case word == "rollback":
		return l.verbOfRollback()
	case word == "release" && l.is(second, "savepoint"):
		return "release savepoint"
	case word == "lock" && (l.is(second, "tables") || l.is(second, "table")):
		return "lock tables"
	case word == "unlock" && (l.is(second, "tables") || l.is(second, "table")):
		return "unlock tables"
	}
	return word
}

func (l *Lexer) verbOfRollback() string {
	t := l.next()
	if l.is(t, "work") {
		t = l.next()
	}
	if l.is(t, "to") {
		return "rollback to savepoint"
	}
	return "rollback"
}

var verbs = func() map[string]string {
	m := map[string]string{"describe": "explain", "desc": "explain"}
	for w := range set(`alter analyze begin binlog call change check checksum commit create deallocate delete do drop
		execute explain flush get grant handler help insert install kill load lock optimize prepare purge release rename
		repair replace reset resignal revoke rollback savepoint select set show shutdown signal start stop table truncate
		uninstall unlock update use values with xa`) {
		m[w] = w
	}
	return m
}()

// objects are what CREATE, ALTER and DROP work on.
var objects = func() map[string]string {
	m := map[string]string{"schema": "database"}
	for w := range set(`database event function index instance package procedure role sequence server table tablespace
		trigger user view`) {
		m[w] = w
	}
	return m
}()

var joined = func() map[string]string {
	m := map[string]string{}
	for _, verb := range []string{"create", "alter", "drop"} {
		for _, object := range objects {
			m[verb+" "+object] = verb + " " + object
		}
	}
	return m
}()
