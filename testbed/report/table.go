package report

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// head is a column's first line: its name, its unit, and the mark of its source.
func (t Table) head(i int, marks map[string]int) string {
	c := t.Columns[i]
	s := c.Name
	if c.Unit != "" {
		s += ", " + c.Unit
	}
	if c.Source != "" {
		s += fmt.Sprintf(" [%d]", marks[c.Source])
	}
	return s
}

// sources numbers the sources of a table's columns, in their order.
func (t Table) sources() (marks map[string]int, order []string) {
	marks = map[string]int{}
	for _, c := range t.Columns {
		if c.Source != "" && marks[c.Source] == 0 {
			order = append(order, c.Source)
			marks[c.Source] = len(order)
		}
	}
	return marks, order
}

// cell is what stands in a row at column i; a short row ends in nothing.
func cell(row []Cell, i int) Cell {
	if i < len(row) {
		return row[i]
	}
	return None()
}

// text is everything in plain characters, columns aligned.
func (f *Folder) text(r Result) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n%s\n\n", r.Title, strings.Repeat("=", utf8.RuneCountInString(r.Title)))
	for _, l := range f.preamble(r) {
		fmt.Fprintf(&b, "%s\n", l)
	}
	for _, t := range r.Tables {
		b.WriteByte('\n')
		t.text(&b)
	}
	for _, n := range r.Notes {
		fmt.Fprintf(&b, "\nNote: %s", n)
	}
	if len(r.Notes) > 0 {
		b.WriteByte('\n')
	}
	return b.String()
}

func (t Table) text(b *strings.Builder) {
	marks, order := t.sources()
	width := make([]int, len(t.Columns))
	for i := range t.Columns {
		width[i] = utf8.RuneCountInString(t.head(i, marks))
		for _, row := range t.Rows {
			width[i] = max(width[i], utf8.RuneCountInString(cell(row, i).String()))
		}
	}
	if t.Title != "" {
		fmt.Fprintf(b, "%s\n", t.Title)
	}
	line := func(at func(i int) (string, bool)) {
		parts := make([]string, len(t.Columns))
		for i := range t.Columns {
			s, left := at(i)
			parts[i] = pad(s, width[i], left)
		}
		fmt.Fprintf(b, "%s\n", strings.TrimRight(strings.Join(parts, "  "), " "))
	}
	line(func(i int) (string, bool) { return t.head(i, marks), t.words(i) })
	line(func(i int) (string, bool) { return strings.Repeat("-", width[i]), true })
	for _, row := range t.Rows {
		line(func(i int) (string, bool) { return cell(row, i).String(), t.words(i) })
	}
	for i, s := range order {
		fmt.Fprintf(b, "[%d] not measured here: %s\n", i+1, s)
	}
}

// words tells whether a column holds texts, which stand on the left.
func (t Table) words(i int) bool {
	for _, row := range t.Rows {
		if cell(row, i).is == isText {
			return true
		}
	}
	return false
}

func pad(s string, width int, left bool) string {
	fill := strings.Repeat(" ", max(0, width-utf8.RuneCountInString(s)))
	if left {
		return s + fill
	}
	return fill + s
}

// preamble says what was run, when, on what, and whether it counts.
func (f *Folder) preamble(r Result) []string {
	var lines []string
	if r.Void != "" {
		lines = append(lines, "VOID, these figures do not count: "+r.Void)
	}
	for i, void := range r.Earlier {
		lines = append(lines, fmt.Sprintf("Made again: attempt %d was %s", i+1, void))
	}
	if r.SetUp != "" {
		lines = append(lines, r.SetUp)
	}
	v := f.run.Versions
	lines = append(lines, fmt.Sprintf("Seed %d, %s, %s, %s %s, %d CPUs, load %.1f before and %.1f after, took %.0f s.",
		f.run.Seed, v.Cartwheel, v.Go, v.Kernel, v.Machine, v.CPUs, f.run.LoadBefore, f.run.LoadAfter, f.run.Seconds))
	if len(f.run.Arguments) > 0 {
		lines = append(lines, "Repeat: "+strings.Join(f.run.Arguments, " "))
	}
	return lines
}

// markdown is the same for a page, with the plots in it.
func (f *Folder) markdown(r Result) string {
	var b strings.Builder
	fmt.Fprintf(&b, "# %s\n\n", r.Title)
	for _, l := range f.preamble(r) {
		fmt.Fprintf(&b, "%s\n\n", l)
	}
	for _, t := range r.Tables {
		t.markdown(&b)
	}
	for _, n := range r.Notes {
		fmt.Fprintf(&b, "Note: %s\n\n", n)
	}
	for _, p := range r.Plots {
		fmt.Fprintf(&b, "![%s](%s.svg)\n\n", p.Title, p.Name)
	}
	return b.String()
}

func (t Table) markdown(b *strings.Builder) {
	marks, order := t.sources()
	if t.Title != "" {
		fmt.Fprintf(b, "**%s**\n\n", t.Title)
	}
	escape := strings.NewReplacer("|", "\\|", "\n", " ")
	row := func(at func(i int) string) {
		b.WriteByte('|')
		for i := range t.Columns {
			fmt.Fprintf(b, " %s |", at(i))
		}
		b.WriteByte('\n')
	}
	row(func(i int) string { return escape.Replace(t.head(i, marks)) })
	row(func(i int) string {
		if t.words(i) {
			return "---"
		}
		return "---:"
	})
	for _, r := range t.Rows {
		row(func(i int) string { return escape.Replace(cell(r, i).String()) })
	}
	b.WriteByte('\n')
	for i, s := range order {
		fmt.Fprintf(b, "[%d] not measured here: %s\n\n", i+1, s)
	}
}
