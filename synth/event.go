package synth

import (
	"bytes"
	"strconv"
	"strings"

	"redrive/internal/oltp"
)

// A Kind is a statement of sysbench's, by what it is for.
type Kind byte

const (
	Begin Kind = iota
	Commit
	PointSelect
	SimpleRange
	SumRange
	OrderRange
	DistinctRange
	IndexUpdate
	NonIndexUpdate
	Delete
	Insert
	kindCount
)

var kindTypes = [kindCount]oltp.Type{
	oltp.Begin, oltp.Commit, oltp.PointSelect, oltp.SimpleRange, oltp.SumRange, oltp.OrderRange, oltp.DistinctRange,
	oltp.IndexUpdate, oltp.NonIndexUpdate, oltp.Delete, oltp.Insert,
}

// String is the kind's name in tables.
func (k Kind) String() string { return kindTypes[k].Name }

// HasTable reports whether there is one such statement for each table.
func (k Kind) HasTable() bool { return k != Begin && k != Commit }

// Text is the statement on table N, with ? for values.
func (k Kind) Text(table int) string {
	return strings.Replace(kindTypes[k].Text, "sbtestN", tableName(table), 1)
}

func tableName(table int) string { return "sbtest" + strconv.Itoa(table) }

// An Arg is a value of a statement: Text, or Int where Text is nil.
type Arg struct {
	Int  int64
	Text []byte
}

// A Statement is one statement to send.
type Statement struct {
	Kind  Kind
	Table int   // N of sbtestN; 0 for kinds without a table
	Args  []Arg // one for each ?
}

var mark = []byte("?")

// AppendSQL appends the statement with its values in place of the ? of text, its Kind's Text: integers bare, strings in
// quotes, which hold nothing that needs escaping.
func (s *Statement) AppendSQL(dst, text []byte) []byte {
	for _, arg := range s.Args {
		before, after, _ := bytes.Cut(text, mark)
		dst = append(dst, before...)
		if arg.Text == nil {
			dst = strconv.AppendInt(dst, arg.Int, 10)
		} else {
			dst = append(append(append(dst, '\''), arg.Text...), '\'')
		}
		text = after
	}
	return append(dst, text...)
}

// An Event is one run of a workload's unit of work: statements in order. Its buffers are used again after Reset, and
// with them all that its statements hold.
type Event struct {
	Statements []Statement
	args       []Arg
	text       []byte
}

// Reset empties the event.
func (e *Event) Reset() {
	e.Statements, e.args, e.text = e.Statements[:0], e.args[:0], e.text[:0]
}

// Add appends a statement.
func (e *Event) Add(kind Kind, table int, args ...Arg) {
	first := len(e.args)
	e.args = append(e.args, args...)
	e.Statements = append(e.Statements, Statement{kind, table, e.args[first:len(e.args):len(e.args)]})
}

// Digits is a value of so many groups of random digits.
func (e *Event) Digits(r *Random, groups int) Arg {
	first := len(e.text)
	e.text = r.AppendDigits(e.text, groups)
	return Arg{Text: e.text[first:len(e.text):len(e.text)]}
}

// Int is a whole number as a value.
func Int(n int) Arg { return Arg{Int: int64(n)} }
