package analyze

import (
	"cmp"

	"redrive/capture"
	"redrive/internal/oltp"
	"redrive/internal/sqltext"
	"redrive/internal/wire"
)

// What stands for the type of statements that have none.
const (
	kindUnknown = "prepared before the capture"
	kindEmpty   = "empty"
)

// A class is what the summary must know of a text: all texts of a class count as one.
type class struct {
	kind  int    // index into the classifier's kinds
	group *group // where it is counted
	verb  verb
}

// verb tells apart what sysbench's view is interested in.
type verb uint8

const (
	otherVerb verb = iota
	beginVerb
	commitVerb
	bulkVerb
)

// maxCached bounds the texts whose class is remembered, and maxCachedText their length.
const (
	maxCached     = 20_000
	maxCachedText = 4096
)

// A classifier finds the class of statements. Prepared texts and digest texts are remembered, so that most statements
// cost a look-up.
type classifier struct {
	byDigest bool
	kinds    []string // names of the types
	kindOf   map[string]int
	classes  map[classKey]*class
	groupOf  map[uint64]*group // by digest
	groups   []*group
	cache    map[string]*class
	digest   []byte // scratch
}

type classKey struct {
	kind   int
	digest uint64 // 0 where types are the groups
}

func newClassifier(byDigest bool) *classifier {
	return &classifier{
		byDigest: byDigest, kindOf: map[string]int{}, classes: map[classKey]*class{},
		groupOf: map[uint64]*group{}, cache: map[string]*class{},
	}
}

// class returns the class of a statement that runs SQL.
func (c *classifier) class(st *capture.Statement, mode sqltext.Mode) *class {
	if st.Flags.Has(capture.TextUnknown) {
		return c.named(kindUnknown, nil)
	}
	if found := c.cache[string(st.Text)]; found != nil && mode == 0 {
		return found
	}
	c.digest = append(c.digest[:0], st.Text...)
	if !st.Flags.Has(capture.Masked) { // a masked text is its digest text already
		c.digest = mode.Normalize(c.digest[:0], st.Text)
	}
	if found := c.cache[string(c.digest)]; found != nil {
		return found
	}
	return c.fresh(st, mode)
}

// fresh finds the class of a text whose digest text is at hand.
func (c *classifier) fresh(st *capture.Statement, mode sqltext.Mode) *class {
	t, ok := oltp.Recognise(st.Text, c.digest)
	name := t.Name
	if !ok {
		name = cmp.Or(sqltext.Verb(st.Text), kindEmpty)
	}
	found := c.named(name, c.digest)
	if t == oltp.Insert || t == oltp.BulkInsert { // their digest text may be the same
		return found
	}
	c.remember(c.digest, found)
	if prepared := st.Command != wire.ComQuery; prepared && mode == 0 {
		c.remember(st.Text, found)
	}
	return found
}

func (c *classifier) remember(text []byte, found *class) {
	if len(text) <= maxCachedText && len(c.cache) < maxCached {
		c.cache[string(text)] = found
	}
}

// named is the class of a type or, grouped by digest, of a digest text within a type.
func (c *classifier) named(name string, digest []byte) *class {
	key := classKey{kind: c.kind(name)}
	if c.byDigest && len(digest) > 0 {
		key.digest = sqltext.Digest(digest)
	}
	found := c.classes[key]
	if found == nil {
		found = &class{key.kind, c.group(key, name, digest), verbOf(name)}
		c.classes[key] = found
	}
	return found
}

func (c *classifier) kind(name string) int {
	kind, ok := c.kindOf[name]
	if !ok {
		kind = len(c.kinds)
		c.kinds = append(c.kinds, name)
		c.kindOf[name] = kind
	}
	return kind
}

// group is the group of a new class: of its own, or that of its digest.
func (c *classifier) group(key classKey, name string, digest []byte) *group {
	g := c.groupOf[key.digest]
	if g != nil && key.digest != 0 {
		return g
	}
	g = &group{name: name, digest: key.digest}
	if key.digest != 0 {
		g.name = string(digest)
		c.groupOf[key.digest] = g
	}
	c.groups = append(c.groups, g)
	return g
}

func verbOf(name string) verb {
	switch name {
	case oltp.Begin.Name:
		return beginVerb
	case oltp.Commit.Name:
		return commitVerb
	case oltp.BulkInsert.Name:
		return bulkVerb
	}
	return otherVerb
}
