package synth_test

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"redrive/synth"
)

// texts are an event's statements as text, with table numbers, values and digits made alike.
func texts(w synth.Workload, r *synth.Random) (texts, raw []string) {
	var e synth.Event
	w.Event(r, &e)
	table := regexp.MustCompile(`sbtest\d+`)
	digits := regexp.MustCompile(`'[\d-]{119}'`)
	pad := regexp.MustCompile(`'[\d-]{59}'`)
	number := regexp.MustCompile(`\b\d+\b`)
	for i := range e.Statements {
		s := &e.Statements[i]
		text := string(s.AppendSQL(nil, []byte(s.Kind.Text(s.Table))))
		raw = append(raw, text)
		text = pad.ReplaceAllString(digits.ReplaceAllString(text, "C"), "P")
		texts = append(texts, number.ReplaceAllString(table.ReplaceAllString(text, "t"), "N"))
	}
	return texts, raw
}

const (
	point    = "SELECT c FROM t WHERE id=N"
	simple   = "SELECT c FROM t WHERE id BETWEEN N AND N"
	sum      = "SELECT SUM(k) FROM t WHERE id BETWEEN N AND N"
	order    = "SELECT c FROM t WHERE id BETWEEN N AND N ORDER BY c"
	distinct = "SELECT DISTINCT c FROM t WHERE id BETWEEN N AND N ORDER BY c"
	index    = "UPDATE t SET k=k+N WHERE id=N"
	nonIndex = "UPDATE t SET c=C WHERE id=N"
	remove   = "DELETE FROM t WHERE id=N"
	insert   = "INSERT INTO t (id, k, c, pad) VALUES (N, N, C, P)"
)

func times(n int, statement string) []string { return slices.Repeat([]string{statement}, n) }

func TestEventSequences(t *testing.T) {
	ten := times(10, point)
	with := func(change func(*synth.Settings)) synth.Settings {
		s := synth.Defaults()
		change(&s)
		return s
	}
	tests := []struct {
		name, script string
		settings     synth.Settings
		want         [][]string
	}{
		{"point select", "oltp_point_select", synth.Defaults(), [][]string{{point}}},
		{"point select has one whatever is asked for", "oltp_point_select", with(func(s *synth.Settings) { s.PointSelects = 5 }), [][]string{{point}}},
		{"read only", "oltp_read_only", synth.Defaults(), [][]string{{"BEGIN"}, ten, {simple, sum, order, distinct}, {"COMMIT"}}},
		{
			"read write", "oltp_read_write", synth.Defaults(),
			[][]string{{"BEGIN"}, ten, {simple, sum, order, distinct, index, nonIndex, remove, insert}, {"COMMIT"}},
		},
		{
			"skip_trx", "oltp_read_write", with(func(s *synth.Settings) { s.SkipTrx = true }),
			[][]string{ten, {simple, sum, order, distinct, index, nonIndex, remove, insert}},
		},
		{"no ranges", "oltp_read_only", with(func(s *synth.Settings) { s.RangeSelects = false }), [][]string{{"BEGIN"}, ten, {"COMMIT"}}},
		{"counts", "oltp_read_write", with(func(s *synth.Settings) {
			s.PointSelects, s.SimpleRanges, s.SumRanges, s.OrderRanges, s.DistinctRanges = 1, 2, 0, 3, 1
			s.IndexUpdates, s.NonIndexUpdates, s.DeleteInserts = 2, 3, 2
		}), [][]string{{"BEGIN", point}, times(2, simple), times(3, order), {distinct}, times(2, index), times(3, nonIndex), {remove, insert, remove, insert, "COMMIT"}}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			w, err := synth.NewWorkload(test.script, test.settings)
			if err != nil {
				t.Fatal(err)
			}
			got, _ := texts(w, synth.NewRandom(1, "test", 0, synth.Special))
			if want := slices.Concat(test.want...); !slices.Equal(got, want) {
				t.Errorf("event:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
			}
		})
	}
	if _, err := synth.NewWorkload("oltp_nothing", synth.Defaults()); err == nil || !strings.Contains(err.Error(), "oltp_nothing") {
		t.Errorf("unknown workload: %v, want it named", err)
	}
}

// A group draws its table once; groups differ. A range is as wide as asked for, and a row comes back under its id.
func TestEventValues(t *testing.T) {
	settings := synth.Defaults()
	settings.Tables, settings.TableSize, settings.RangeSize = 50, 1000, 7
	w, err := synth.NewWorkload("oltp_read_write", settings)
	if err != nil {
		t.Fatal(err)
	}
	r := synth.NewRandom(1, "test", 0, synth.Uniform)
	tables := map[synth.Kind]map[int]bool{}
	var e synth.Event
	differ := false
	for range 200 {
		e.Reset()
		w.Event(r, &e)
		ofKind := map[synth.Kind]int{}
		for i, s := range e.Statements {
			if before, ok := ofKind[s.Kind]; ok && before != s.Table {
				t.Fatalf("two %ss of one event use tables %d and %d", s.Kind, before, s.Table)
			}
			ofKind[s.Kind] = s.Table
			if tables[s.Kind] == nil {
				tables[s.Kind] = map[int]bool{}
			}
			tables[s.Kind][s.Table] = true
			switch s.Kind {
			case synth.SumRange:
				if from, to := s.Args[0].Int, s.Args[1].Int; from < 1 || from > 1000 || to != from+6 {
					t.Fatalf("range %d…%d, want 7 wide from 1…1000", from, to)
				}
			case synth.Insert:
				gone := e.Statements[i-1]
				if gone.Kind != synth.Delete || gone.Table != s.Table || gone.Args[0].Int != s.Args[0].Int {
					t.Fatalf("insert of %d into table %d after %s of %d from %d", s.Args[0].Int, s.Table, gone.Kind, gone.Args[0].Int, gone.Table)
				}
				if len(s.Args[2].Text) != 119 || len(s.Args[3].Text) != 59 {
					t.Fatalf("c of %d and pad of %d characters, want 119 and 59", len(s.Args[2].Text), len(s.Args[3].Text))
				}
			}
		}
		differ = differ || ofKind[synth.PointSelect] != ofKind[synth.SimpleRange]
	}
	if !differ {
		t.Error("groups never differ in their tables")
	}
	if n := len(tables[synth.PointSelect]); n < 45 { // 200 draws miss one of 50 tables with a chance of 1.8 %
		t.Errorf("200 events used %d of 50 tables", n)
	}
}

func TestKinds(t *testing.T) {
	count := func(script string, change func(*synth.Settings)) (withTable, without int) {
		settings := synth.Defaults()
		change(&settings)
		w, err := synth.NewWorkload(script, settings)
		if err != nil {
			t.Fatal(err)
		}
		for _, kind := range w.Kinds() {
			if kind.HasTable() {
				withTable++
			} else {
				without++
			}
		}
		return withTable, without
	}
	tests := []struct {
		script             string
		change             func(*synth.Settings)
		withTable, without int
	}{
		{"oltp_point_select", func(*synth.Settings) {}, 1, 0},
		{"oltp_read_only", func(*synth.Settings) {}, 5, 2},
		{"oltp_read_write", func(*synth.Settings) {}, 9, 2},
		{"oltp_read_write", func(s *synth.Settings) { s.SkipTrx = true }, 9, 0},
		{"oltp_read_write", func(s *synth.Settings) { s.RangeSelects = false }, 5, 2},
	}
	for _, test := range tests {
		if a, b := count(test.script, test.change); a != test.withTable || b != test.without {
			t.Errorf("%s prepares %d per table and %d, want %d and %d", test.script, a, b, test.withTable, test.without)
		}
	}
}

func BenchmarkEvent(b *testing.B) {
	w, err := synth.NewWorkload("oltp_read_write", synth.Defaults())
	if err != nil {
		b.Fatal(err)
	}
	r := synth.NewRandom(1, "bench", 0, synth.Special)
	var e synth.Event
	b.ReportAllocs()
	for b.Loop() {
		e.Reset()
		w.Event(r, &e)
	}
}
