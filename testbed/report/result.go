package report

import (
	"encoding/json"
	"math"
	"strconv"
)

// Result is what an experiment found.
type Result struct {
	Title string `json:"title"`
	// SetUp says in a sentence or two what was run, for whoever reads only the
	// table.
	SetUp string `json:"set_up"`
	// Void says why the figures do not count, such as an emulator that was late;
	// empty: they do.
	Void string `json:"void,omitempty"`
	// Earlier says why the attempts before this one were void, in order: their
	// figures were thrown away, and the experiment was made again.
	Earlier []string `json:"void_before,omitempty"`
	Notes   []string `json:"notes,omitempty"`
	Tables  []Table  `json:"tables"`
	Plots   []Plot   `json:"plots,omitempty"`
	// Figures is whatever else was measured, every sample where there is room.
	Figures any `json:"figures,omitempty"`
}

// Table is rows of cells below named columns.
type Table struct {
	Name    string   `json:"name"`
	Title   string   `json:"title"`
	Columns []Column `json:"columns"`
	Rows    [][]Cell `json:"rows"`
}

// Column is one column. A column of others' figures names where they were
// published: they stand there for comparison and were not measured in this run.
type Column struct {
	Name   string `json:"name"`
	Unit   string `json:"unit,omitempty"`
	Source string `json:"source,omitempty"`
}

// Add appends a row.
func (t *Table) Add(cells ...Cell) { t.Rows = append(t.Rows, cells) }

// Cell is a text, a number, or nothing.
type Cell struct {
	text   string
	number float64
	is     cellKind
}

type cellKind uint8

const (
	isNothing cellKind = iota
	isText
	isNumber
)

// Text is a cell of words.
func Text(s string) Cell { return Cell{text: s, is: isText} }

// Number is a cell of a figure; shown with three significant digits, kept
// whole in the JSON. What is not finite is nothing.
func Number(v float64) Cell {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return Cell{}
	}
	return Cell{number: v, is: isNumber}
}

// Count is a cell of a whole number.
func Count[T int | int64 | uint64](n T) Cell {
	return Cell{number: float64(n), text: strconv.FormatInt(int64(n), 10), is: isNumber}
}

// None is a cell that holds nothing.
func None() Cell { return Cell{} }

// String is the cell as people read it.
func (c Cell) String() string {
	switch {
	case c.is == isNothing:
		return "-"
	case c.text != "" || c.is == isText:
		return c.text
	}
	return format(c.number)
}

// format shows three significant digits, and never fewer than the integer has.
func format(v float64) string {
	a := math.Abs(v)
	switch {
	case a == 0:
		return "0"
	case a >= 100:
		return strconv.FormatFloat(v, 'f', 0, 64)
	case a >= 10:
		return strconv.FormatFloat(v, 'f', 1, 64)
	case a >= 1:
		return strconv.FormatFloat(v, 'f', 2, 64)
	}
	return strconv.FormatFloat(v, 'g', 3, 64)
}

// MarshalJSON writes a number, a string or null.
func (c Cell) MarshalJSON() ([]byte, error) {
	switch c.is {
	case isNumber:
		return json.Marshal(c.number)
	case isText:
		return json.Marshal(c.text)
	}
	return []byte("null"), nil
}

// UnmarshalJSON reads what MarshalJSON wrote.
func (c *Cell) UnmarshalJSON(data []byte) error {
	var v any
	if err := json.Unmarshal(data, &v); err != nil {
		return err
	}
	switch v := v.(type) {
	case float64:
		*c = Number(v)
	case string:
		*c = Text(v)
	default:
		*c = None()
	}
	return nil
}

// Values are figures of which some may be missing (NaN): null in the JSON, and
// left out of plots.
type Values []float64

// MarshalJSON writes null for what is not finite.
func (v Values) MarshalJSON() ([]byte, error) {
	out := make([]*float64, len(v))
	for i := range v {
		if finite(v[i]) {
			out[i] = &v[i]
		}
	}
	return json.Marshal(out)
}

// UnmarshalJSON reads what MarshalJSON wrote.
func (v *Values) UnmarshalJSON(data []byte) error {
	var in []*float64
	if err := json.Unmarshal(data, &in); err != nil {
		return err
	}
	*v = make(Values, len(in))
	for i, p := range in {
		if (*v)[i] = math.NaN(); p != nil {
			(*v)[i] = *p
		}
	}
	return nil
}
