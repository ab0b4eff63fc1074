package analyze

import (
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

// width is what tables of sysbench's statements fit in, and what long texts are wrapped to.
const width = 100

// A table prints rows in columns: the first one to the left, figures to the right.
type table struct {
	rows  [][]string
	notes []string // by row: a long text that stands below it, if any
}

func (t *table) add(cells ...string) { t.addWithNote("", cells...) }

func (t *table) addWithNote(note string, cells ...string) {
	t.rows = append(t.rows, cells)
	t.notes = append(t.notes, note)
}

// width is that of the longest row, notes left out.
func (t *table) width() int {
	sum := 0
	for _, w := range t.widths() {
		sum += w + 2
	}
	return sum - 2
}

func (t *table) widths() []int {
	var widths []int
	for _, row := range t.rows {
		for i, cell := range row {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	return widths
}

func (t *table) write(w io.Writer) {
	widths := t.widths()
	for i, row := range t.rows {
		var line strings.Builder
		for j, cell := range row {
			line.WriteString(pad(cell, widths[j], j == 0))
		}
		fmt.Fprintln(w, strings.TrimRight(line.String(), " "))
		for _, part := range wrap(t.notes[i], width-noteIndent, noteLines) {
			fmt.Fprintln(w, strings.Repeat(" ", noteIndent)+part)
		}
	}
}

// noteIndent is how far notes are indented, noteLines how many lines they may take.
const (
	noteIndent = 4
	noteLines  = 4
)

func pad(cell string, width int, left bool) string {
	blanks := strings.Repeat(" ", width-utf8.RuneCountInString(cell))
	if left {
		return cell + blanks
	}
	return "  " + blanks + cell
}

// wrap cuts a text into at most max lines at blanks where it can, the last one ending in … if something is left out.
func wrap(text string, width, limit int) []string {
	var lines []string
	rest := []rune(text)
	for len(rest) > 0 {
		if len(lines) == limit {
			last := []rune(lines[limit-1])
			lines[limit-1] = string(last[:min(len(last), width-2)]) + " …"
			break
		}
		n := lineLength(rest, width)
		lines = append(lines, strings.TrimRight(string(rest[:n]), " "))
		rest = []rune(strings.TrimLeft(string(rest[n:min(len(rest), n+width*limit)]), " "))
	}
	return lines
}

// lineLength is how many runes go on a line: up to the last blank that fits, or as many as fit.
func lineLength(text []rune, width int) int {
	if len(text) <= width {
		return len(text)
	}
	for n := width; n > width/2; n-- {
		if text[n] == ' ' {
			return n
		}
	}
	return width
}
