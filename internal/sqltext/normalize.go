package sqltext

import "bytes"

// Normalize appends the digest text of a statement to dst: words and names in lower case, comments and needless
// backticks out, one way of spacing, and every literal, with its sign and character set, as ?. Lists that differ in
// nothing but their length become one: in (?+) for a list of literals, (?, ?)+ for the rows of VALUES, whose other
// shapes follow once each. LIMIT a, b is limit ? offset ?. Hints stay, version comments are opened, IS NULL stays. It
// does not fail: what is not understood is kept, word by word, without its literals.
func Normalize(dst, text []byte) []byte { return Mode(0).Normalize(dst, text) }

// Normalize is the function Normalize for a session that reads its text in mode m.
func (m Mode) Normalize(dst, text []byte) []byte {
	n := normalizer{lex: NewLexer(text, m), dst: dst, sign: -1}
	n.run()
	return n.dst
}

// Digest is the hash of a digest text (FNV-1a, 64 bits). It is shown as 16 hexadecimal digits.
func Digest(normalized []byte) uint64 {
	h := uint64(14695981039346656037)
	for _, c := range normalized {
		h = (h ^ uint64(c)) * 1099511628211
	}
	return h
}

// class is what the last token was, as far as the next one's spacing and meaning depend on it.
type class uint8

const (
	atStart        class = iota
	aLiteral             // or a placeholder
	aName                // or a word that is not reserved
	aKeyword             // reserved
	operandKeyword       // reserved, and a value follows
	openParen
	closeParen
	aDot
	aComma
	aSign // + - in front of a value, ~ and !
	anOperator
)

type normalizer struct {
	lex    Lexer
	dst    []byte
	last   class
	tight  bool // last was a reserved function or type: ( touches it
	text   bool // last was a string: another one continues it
	not    bool // last was NOT: a NULL behind it is no value
	in     bool // last was IN: ( opens a list
	sign   int  // where the signs in front of the next literal begin in dst, -1 if there are none
	limit  int  // 1 behind LIMIT, 2 behind its first literal
	ends   bool // a semicolon is due if anything follows
	depth  int
	levels [maxDepth]level
	deep   level // stands for all levels beyond
}

func (n *normalizer) run() {
	for t := n.lex.Next(); t.Kind != End; t = n.lex.Next() {
		n.token(t)
	}
}

func (n *normalizer) token(t Token) {
	if n.ends && !n.lex.is(t, ";") {
		n.dst = append(n.dst, ';')
		n.put(anOperator)
		n.ends, n.depth, n.levels[0] = false, 0, level{}
	}
	switch t.Kind {
	case Word:
		n.word(n.lex.Bytes(t))
	case Name:
		n.name(n.lex.Bytes(t))
	case String, Number, Placeholder, Unterminated:
		n.literal(t.Kind == String)
	case UserVariable, SystemVariable:
		n.variable(n.lex.Bytes(t))
	case Hint:
		n.hint(n.lex.Bytes(t))
	case Operator:
		n.operator(n.lex.Bytes(t))
	}
}

// space separates the next token from the last one.
func (n *normalizer) space() {
	switch n.last {
	case atStart, openParen, aDot, aSign:
	default:
		n.dst = append(n.dst, ' ')
	}
}

// put notes what was just appended.
func (n *normalizer) put(c class) {
	n.last = c
	n.tight, n.text, n.not, n.in = false, false, false, false
	n.sign, n.limit = -1, 0
}

// wantsValue reports whether a value, rather than an operator, must come next.
func (n *normalizer) wantsValue() bool {
	switch n.last {
	case atStart, operandKeyword, openParen, aComma, aSign, anOperator:
		return true
	}
	return false
}

func (n *normalizer) word(word []byte) {
	var buf [maxWord]byte
	low := lower(&buf, word)
	kind := classOf(low)
	switch {
	case n.last == aDot:
		kind = 0
	case string(low) == "asc":
		return
	case n.isValue(low):
		n.literal(false)
		return
	case n.opensRows(low):
		n.rows()
		return
	}
	n.space()
	n.level().word(string(low) == "row", len(n.dst))
	n.dst = appendLower(n.dst, word)
	switch {
	case kind == 0:
		n.put(aName)
	case kind&operand != 0:
		n.put(operandKeyword)
	default:
		n.put(aKeyword)
	}
	n.tight = kind&tight != 0
	switch string(low) {
	case "not":
		n.not = true
	case "in":
		n.in = kind != 0
	case "limit":
		n.limit = int(kind & reserved)
	}
}

// isValue reports whether a NULL, TRUE or FALSE here is a value: it is none in IS NULL, NOT NULL and DEFAULT NULL.
func (n *normalizer) isValue(word []byte) bool {
	switch string(word) {
	case "null", "true", "false":
		return n.wantsValue() && !n.not
	}
	return false
}

// opensRows reports whether the word is the VALUES or VALUE in front of rows, and not the function VALUES(c), which
// stands where a value does.
func (n *normalizer) opensRows(word []byte) bool {
	switch string(word) {
	case "values":
		switch n.last {
		case atStart, aName, aKeyword, closeParen:
			return true
		}
		return n.last == openParen && !n.level().call
	case "value":
		ahead := n.lex
		return (n.last == aName || n.last == closeParen) && ahead.is(ahead.next(), "(")
	}
	return false
}

func (n *normalizer) rows() {
	n.space()
	n.dst = append(n.dst, "values"...)
	n.put(aKeyword)
	call := n.level().call
	*n.level() = level{kind: rowList, call: call, names: true}
}

// name is a name in quotes, which go if it could do without.
func (n *normalizer) name(quoted []byte) {
	n.space()
	n.level().word(false, 0)
	name := quoted[1 : len(quoted)-1]
	if quoted[0] == '`' && n.isPlain(name) {
		quoted = name
	}
	n.dst = appendLower(n.dst, quoted)
	n.put(aName)
}

func (n *normalizer) isPlain(name []byte) bool {
	digits := true
	for _, c := range name {
		if !isName(c) {
			return false
		}
		digits = digits && isDigit(c)
	}
	var buf [maxWord]byte
	return !digits && (n.last == aDot || classOf(lower(&buf, name)) == 0)
}

func (n *normalizer) literal(text bool) {
	if text && n.text {
		return
	}
	limit := n.limit
	if n.sign >= 0 {
		n.dst = n.dst[:n.sign]
	} else {
		n.space()
	}
	n.dst = append(n.dst, '?')
	n.put(aLiteral)
	n.text = text
	if limit == 1 {
		n.limit = 2
	}
}

func (n *normalizer) variable(v []byte) {
	n.space()
	n.level().word(false, 0)
	switch {
	case len(v) > 1 && (v[1] == '\'' || v[1] == '"'):
		n.dst = append(n.dst, "@?"...)
	default:
		n.dst = appendLower(n.dst, v)
	}
	n.put(aName)
}

func (n *normalizer) hint(hint []byte) {
	n.space()
	inner := bytes.TrimSuffix(hint[len("/*+"):], []byte("*/"))
	n.dst = append(n.dst, "/*+ "...)
	sub := normalizer{lex: NewLexer(inner, n.lex.mode|skipHints), dst: n.dst, sign: -1}
	sub.run()
	n.dst = append(sub.dst, " */"...)
	if n.last == atStart {
		n.last = aKeyword
	}
}

func (n *normalizer) operator(op []byte) {
	switch op[0] {
	case '(':
		n.open()
		return
	case ')':
		n.close()
		return
	case ',':
		n.comma()
		return
	case ';':
		n.ends = n.last != atStart
		return
	case '.':
		n.dst = append(n.dst, '.')
		n.put(aDot)
		return
	}
	n.level().word(false, 0)
	value := n.wantsValue()
	switch {
	case op[0] == '*' && (value || n.last == aDot || n.last == aKeyword):
		n.space()
		n.dst = append(n.dst, '*')
		n.put(aName)
	case len(op) == 1 && value && (op[0] == '-' || op[0] == '+'):
		n.signed(op[0])
	default:
		n.space()
		n.dst = append(n.dst, op...)
		n.put(anOperator)
		if len(op) == 1 && (op[0] == '~' || op[0] == '!') {
			n.last = aSign
		}
	}
}

// signed appends the sign of a value, and remembers where it is: if the value is a literal the sign goes with it.
func (n *normalizer) signed(op byte) {
	n.space()
	at := len(n.dst)
	if n.sign >= 0 {
		at = n.sign
	}
	n.dst = append(n.dst, op)
	n.put(aSign)
	n.sign = at
}

func appendLower(dst, b []byte) []byte {
	for _, c := range b {
		dst = append(dst, lowerByte(c))
	}
	return dst
}
