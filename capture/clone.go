package capture

import (
	"slices"
)

// Clone is a copy that shares no memory with r.
func (r *Record) Clone() *Record {
	c := new(Record)
	c.copy(r)
	return c
}

// Clone is a copy that shares no memory with s.
func (s *Statement) Clone() *Statement {
	c := new(Statement)
	c.copy(s)
	return c
}

// copy makes r a copy of from, in its own memory as far as that suffices. Only what goes with the kind is copied.
func (r *Record) copy(from *Record) {
	r.Kind = from.Kind
	switch r.Kind {
	case KindStatement, KindBegin:
		r.Statement.copy(&from.Statement)
	case KindSessionStart:
		r.Start = from.Start
		r.Start.Attributes = slices.Clone(from.Start.Attributes)
		r.Start.Prepared = slices.Clone(from.Start.Prepared)
	case KindSessionEnd:
		r.End = from.End
	case KindGap:
		r.Gap = from.Gap
	}
}

func (s *Statement) copy(from *Statement) {
	old := *s
	*s = *from
	s.Schema = copyBytes(old.Schema, from.Schema)
	s.Text = copyBytes(old.Text, from.Text)
	s.Attributes = copyBytes(old.Attributes, from.Attributes)
	s.Params.Nulls = copyBytes(old.Params.Nulls, from.Params.Nulls)
	s.Params.Types = copyBytes(old.Params.Types, from.Params.Types)
	s.Params.Values = copyBytes(old.Params.Values, from.Params.Values)
	s.Params.Long = copyBytes(old.Params.Long, from.Params.Long)
	s.File = copyBytes(old.File, from.File)
	state, was, is := &s.Outcome.State, &old.Outcome.State, &from.Outcome.State
	state.Schema = copyBytes(was.Schema, is.Schema)
	state.GTIDs = copyBytes(was.GTIDs, is.GTIDs)
	state.Transaction = copyBytes(was.Transaction, is.Transaction)
}

// copyBytes is a copy of from, nil being nil, in buf's memory if that suffices.
func copyBytes(buf, from []byte) []byte {
	if from == nil {
		return nil
	}
	return append(buf[:0], from...)
}
