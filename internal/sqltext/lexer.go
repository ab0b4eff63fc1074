package sqltext

import "bytes"

// A Kind says what a token is.
type Kind uint8

const (
	End            Kind = iota // of the text
	Word                       // keyword or bare name
	Name                       // name in backticks (or, with AnsiQuotes, in double quotes)
	String                     // 'a', "a", N'a'
	Number                     // 1, .5, 1e-3, 0xFF, x'FF', b'01', \N
	Introducer                 // _utf8mb4 in front of a literal
	Placeholder                // ?
	UserVariable               // @a, @'a', @`a`
	SystemVariable             // @@a; a scope and a dot may follow as tokens of their own
	Operator                   // one to three characters, parentheses and commas included
	Hint                       // /*+ … */
	Unterminated               // a quote that does not close: the rest of the text
)

// A Token is a piece of the text: text[Start:Stop].
type Token struct {
	Kind        Kind
	Start, Stop int
}

// A Mode is how the session reads its text: the parts of sql_mode that change where tokens end. The zero Mode is the
// servers' default.
type Mode uint8

const (
	NoBackslashEscapes Mode = 1 << iota // a backslash in a string is a character as any other
	AnsiQuotes                          // "a" is a name
	skipVersioned                       // /*! … */ is a comment as any other
	skipHints                           // so is /*+ … */
)

// A Lexer cuts a text into tokens. Comments are left out, but version comments are opened: what stands in /*! … */ are
// tokens as any others. It allocates nothing; a copy of it continues where the original stands.
type Lexer struct {
	text   []byte
	mode   Mode
	pos    int
	opened int // version comments we are within
	name   int // where the last name ended: a dot that touches it belongs to it
	dot    int // where that dot ended: what touches it is a name, even if it begins with a digit
}

// NewLexer returns a lexer at the start of text, which must not change while the lexer is in use.
func NewLexer(text []byte, mode Mode) Lexer {
	return Lexer{text: text, mode: mode, name: -1, dot: -1}
}

// Bytes is the text of a token; it aliases the lexer's text.
func (l *Lexer) Bytes(t Token) []byte { return l.text[t.Start:t.Stop] }

// Next returns the next token; at the end of the text, End, again and again.
func (l *Lexer) Next() Token {
	l.skip()
	start := l.pos
	if start >= len(l.text) {
		return Token{End, start, start}
	}
	switch c := l.text[start]; {
	case isDigit(c) && l.dot != start:
		return l.number()
	case isName(c):
		return l.word()
	case c == '\'' || c == '"' && l.mode&AnsiQuotes == 0:
		return l.quoted(start, String)
	case c == '`' || c == '"':
		return l.quoted(start, Name)
	case c == '@':
		return l.variable()
	case c == '.' && isDigit(l.at(start+1)) && l.name != start:
		return l.number()
	case c == '?':
		return l.take(Placeholder, 1)
	case c == '\\' && l.at(start+1) == 'N':
		return l.take(Number, 2)
	case c == '/' && l.at(start+1) == '*': // skip leaves only hints
		return l.take(Hint, l.blockEnd(start)-start)
	}
	t := l.take(Operator, l.operatorLength())
	if l.text[start] == '.' {
		l.dot = t.Stop
	}
	return t
}

// at is the byte at i, 0 beyond the end.
func (l *Lexer) at(i int) byte {
	if i < len(l.text) {
		return l.text[i]
	}
	return 0
}

func (l *Lexer) take(kind Kind, n int) Token {
	start := l.pos
	l.pos = min(start+n, len(l.text))
	return Token{kind, start, l.pos}
}

// skip moves to the next token, over white space and comments.
func (l *Lexer) skip() {
	for l.pos < len(l.text) {
		c := l.text[l.pos]
		switch {
		case isSpace(c):
			l.pos++
		case c == '#', c == '-' && l.at(l.pos+1) == '-' && l.dashesEnd():
			l.skipLine()
		case c == '/' && l.at(l.pos+1) == '*':
			if !l.skipBlock() {
				return
			}
		case c == '*' && l.opened > 0 && l.at(l.pos+1) == '/':
			l.opened--
			l.pos += 2
		default:
			return
		}
	}
}

// dashesEnd reports whether the two dashes here begin a comment: only before white space, a control character or the
// end, so that 1--1 is a difference.
func (l *Lexer) dashesEnd() bool {
	return l.pos+2 >= len(l.text) || l.text[l.pos+2] <= ' ' || l.text[l.pos+2] == 0x7F
}

func (l *Lexer) skipLine() {
	if n := bytes.IndexByte(l.text[l.pos:], '\n'); n >= 0 {
		l.pos += n + 1
		return
	}
	l.pos = len(l.text)
}

// skipBlock skips a block comment, or only the opening of a version comment. It reports false at a hint.
func (l *Lexer) skipBlock() bool {
	head := l.pos + 2
	if l.at(head) == '+' && l.mode&skipHints == 0 {
		return false
	}
	if l.at(head) == 'M' && l.at(head+1) == '!' { // MariaDB's own
		head++
	}
	if l.at(head) != '!' || l.mode&skipVersioned != 0 {
		l.pos = l.blockEnd(l.pos)
		return true
	}
	l.opened++
	for l.pos = head + 1; isDigit(l.at(l.pos)) && l.pos <= head+6; l.pos++ {
	}
	return true
}

// blockEnd is where the block comment that begins at start ends.
func (l *Lexer) blockEnd(start int) int {
	body := start + 2
	if n := bytes.Index(l.text[body:], []byte("*/")); n >= 0 {
		return body + n + 2
	}
	return len(l.text)
}

// word reads a keyword or bare name, or what one letter in front of a quote makes a literal of.
func (l *Lexer) word() Token {
	start := l.pos
	end := start + 1
	for end < len(l.text) && isName(l.text[end]) {
		end++
	}
	if end == start+1 && l.at(end) == '\'' && l.dot != start {
		switch l.text[start] {
		case 'x', 'X', 'b', 'B':
			return l.quoted(end, Number)
		case 'n', 'N':
			return l.quoted(end, String)
		}
	}
	kind := Word
	if l.text[start] == '_' && l.dot != start && isCharset(l.text[start+1:end]) && l.literalAt(end) {
		kind = Introducer
	}
	l.pos, l.name = end, end
	return Token{kind, start, end}
}

// literalAt reports whether a string or a hexadecimal or bit literal follows at i, perhaps after blanks.
func (l *Lexer) literalAt(i int) bool {
	for isSpace(l.at(i)) {
		i++
	}
	switch l.at(i) {
	case '\'', '"':
		return true
	case '0':
		return l.at(i+1) == 'x' || l.at(i+1) == 'b'
	case 'x', 'X', 'b', 'B':
		return l.at(i+1) == '\''
	}
	return false
}

// number reads a number. Digits that run into letters are a name, as in 2024_sales.
func (l *Lexer) number() Token {
	start := l.pos
	if end := l.radixEnd(start); end > 0 {
		return l.take(Number, end-start)
	}
	end := l.digits(start)
	switch c := l.at(end); {
	case c == '.':
		end = l.digits(end + 1)
		end = max(end, l.exponentEnd(end))
	case c == 'e' || c == 'E':
		if exponent := l.exponentEnd(end); exponent > 0 {
			end = exponent
			break
		}
		return l.word()
	case isName(c):
		return l.word()
	}
	return l.take(Number, end-start)
}

func (l *Lexer) digits(i int) int {
	for isDigit(l.at(i)) {
		i++
	}
	return i
}

// exponentEnd is where the exponent that begins at i ends, 0 if none does.
func (l *Lexer) exponentEnd(i int) int {
	if c := l.at(i); c != 'e' && c != 'E' {
		return 0
	}
	i++
	if c := l.at(i); c == '+' || c == '-' {
		i++
	}
	if !isDigit(l.at(i)) {
		return 0
	}
	return l.digits(i)
}

// radixEnd is where the 0x… or 0b… that begins at i ends, 0 if none does. As in the server the letter is a small one.
func (l *Lexer) radixEnd(i int) int {
	if l.at(i) != '0' || l.at(i+1) != 'x' && l.at(i+1) != 'b' {
		return 0
	}
	binary := l.text[i+1] == 'b'
	end := i + 2
	for c := l.at(end); isHex(c) && (!binary || c == '0' || c == '1'); c = l.at(end) {
		end++
	}
	if end == i+2 || isName(l.at(end)) {
		return 0
	}
	return end
}

// quoted reads from the token's start (where the lexer stands) to the end of the quotes that open at open. A doubled
// quote stands for itself; a backslash escapes in strings only.
func (l *Lexer) quoted(open int, kind Kind) Token {
	start, quote := l.pos, l.text[open]
	escapes := kind == String && l.mode&NoBackslashEscapes == 0
	for i := open + 1; i < len(l.text); i++ {
		switch c := l.text[i]; {
		case c == '\\' && escapes:
			i++
		case c == quote && l.at(i+1) == quote:
			i++
		case c == quote:
			l.pos = i + 1
			if kind == Name {
				l.name = l.pos
			}
			return Token{kind, start, l.pos}
		}
	}
	l.pos = len(l.text)
	return Token{Unterminated, start, l.pos}
}

// variable reads @name, @'name' or @@name.
func (l *Lexer) variable() Token {
	start, kind := l.pos, UserVariable
	end := start + 1
	if l.at(end) == '@' {
		kind = SystemVariable
		end++
	}
	if c := l.at(end); c == '\'' || c == '"' || c == '`' {
		t := l.quoted(end, String)
		if t.Kind != Unterminated {
			t.Kind = kind
			l.name = t.Stop
		}
		return t
	}
	for end < len(l.text) && (isName(l.text[end]) || kind == UserVariable && l.text[end] == '.') {
		end++
	}
	l.pos, l.name = end, end
	return Token{kind, start, end}
}

// operatorLength is how many bytes the operator here has; what is no operator counts as one of one byte.
func (l *Lexer) operatorLength() int {
	switch next := l.at(l.pos + 1); l.text[l.pos] {
	case '<':
		if next == '=' && l.at(l.pos+2) == '>' {
			return 3
		}
		if next == '=' || next == '>' || next == '<' {
			return 2
		}
	case '-':
		if next == '>' && l.at(l.pos+2) == '>' {
			return 3
		}
		if next == '>' {
			return 2
		}
	case '>':
		if next == '=' || next == '>' {
			return 2
		}
	case '!', ':':
		if next == '=' {
			return 2
		}
	case '|', '&':
		if next == l.text[l.pos] {
			return 2
		}
	}
	return 1
}

func isSpace(c byte) bool { return c == ' ' || c >= '\t' && c <= '\r' }
func isDigit(c byte) bool { return c >= '0' && c <= '9' }
func isHex(c byte) bool   { return isDigit(c) || c|0x20 >= 'a' && c|0x20 <= 'f' }

// isName reports whether c may be part of a bare name: letters, digits, _, $ and everything beyond ASCII.
func isName(c byte) bool { return nameByte[c] }

var nameByte = func() (table [256]bool) {
	for c := range table {
		b := byte(c)
		table[c] = isDigit(b) || b|0x20 >= 'a' && b|0x20 <= 'z' || b == '_' || b == '$' || b >= 0x80
	}
	return table
}()
