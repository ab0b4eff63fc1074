package sqltext

import "bytes"

// maxDepth bounds the parentheses within which lists are folded; those in deeper ones are kept as they stand.
const maxDepth = 12

// maxShapes bounds the shapes kept of a list, so that no list makes a long digest text; further ones are left out.
const maxShapes = 32

type listKind uint8

const (
	noList  listKind = iota
	inList           // the elements within this level's parentheses, behind IN
	rowList          // the rows that follow one another at this level, behind VALUES
)

// A level is what is known of one depth of parentheses. Offsets are into the digest text.
type level struct {
	kind   listKind
	call   bool // the parentheses are a function's
	names  bool // the element at hand holds more than literals
	list   int  // where the list begins; of rows 0 until the first one
	elem   int  // where the element at hand begins, its separator included
	shapes int  // different elements so far
}

// level is the one at hand.
func (n *normalizer) level() *level {
	if n.depth < maxDepth {
		return &n.levels[n.depth]
	}
	n.deep = level{}
	return &n.deep
}

// word notes something at this level that is neither literal nor list; at is where it begins. It ends a list of rows,
// save for the ROW that a row may begin with.
func (l *level) word(isRow bool, at int) {
	l.names = true
	switch {
	case l.kind != rowList:
	case !isRow:
		l.kind = noList
	case l.list == 0:
		l.list, l.elem = at, at
	}
}

func (n *normalizer) open() {
	call := n.tight || n.last == aName
	if !call {
		n.space()
	}
	outer := n.level()
	if outer.kind == rowList && outer.list == 0 {
		outer.list, outer.elem = len(n.dst), len(n.dst)
	}
	isList := n.in && !n.subquery()
	n.dst = append(n.dst, '(')
	n.put(openParen)
	n.depth++
	inner := n.level()
	*inner = level{call: call, list: len(n.dst), elem: len(n.dst)}
	if isList {
		inner.kind = inList
	}
}

// subquery reports whether a query comes next.
func (n *normalizer) subquery() bool {
	ahead := n.lex
	t := ahead.next()
	for ahead.is(t, "(") {
		t = ahead.next()
	}
	return ahead.is(t, "select") || ahead.is(t, "with") || ahead.is(t, "values") || ahead.is(t, "table")
}

func (n *normalizer) close() {
	inner := *n.level()
	if inner.kind == inList {
		n.fold(n.level(), !inner.names)
	}
	n.dst = append(n.dst, ')')
	n.put(closeParen)
	if n.depth == 0 {
		return
	}
	n.depth--
	outer := n.level()
	outer.names = outer.names || inner.names || inner.call
	if outer.kind == rowList {
		n.fold(outer, true)
	}
}

func (n *normalizer) comma() {
	if n.limit == 2 { // LIMIT a, b
		n.dst = append(n.dst, " offset"...)
		n.put(operandKeyword)
		return
	}
	l := n.level()
	switch l.kind {
	case inList:
		n.fold(l, !l.names)
		l.names = false
		l.elem = len(n.dst)
	case rowList:
		l.elem = len(n.dst)
	}
	n.dst = append(n.dst, ',')
	n.put(aComma)
}

// fold ends the element at hand. One that stands for any number of its kind gets a +, and goes if its like is there.
func (n *normalizer) fold(l *level, repeats bool) {
	if !repeats || len(n.dst) == l.elem {
		return
	}
	n.dst = append(n.dst, '+')
	if l.elem > l.list && (l.shapes >= maxShapes || isIn(n.dst[l.list:l.elem], n.dst[l.elem:])) {
		n.dst = n.dst[:l.elem]
		return
	}
	l.shapes++
}

// isIn reports whether a list has the element already, which begins with its separator. The first and the last one
// are tried first: long lists are mostly of one shape.
func isIn(list, elem []byte) bool {
	return bytes.HasPrefix(list, elem[len(", "):]) || bytes.HasSuffix(list, elem) || bytes.Contains(list, elem)
}
