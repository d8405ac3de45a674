package house

import (
	"fmt"
	"math"
	"strconv"
)

// A Figure is one measured value.
type Figure struct {
	Measure string   `json:"measure"`
	Subject string   `json:"subject"` // what was measured: a type, a package, a file
	Value   float64  `json:"value"`
	Where   string   `json:"where,omitempty"`  // the file
	Line    int      `json:"line,omitempty"`   // in it
	Detail  string   `json:"detail,omitempty"` // what the value is of
	Places  []string `json:"places,omitempty"` // each thing that was counted
}

// String says in one line what a figure is of and where.
func (f Figure) String() string {
	text := f.Subject
	if f.Line > 0 && f.Where == f.Subject {
		text = fmt.Sprintf("%s:%d", f.Where, f.Line)
	} else if f.Line > 0 {
		text += fmt.Sprintf(" (%s:%d)", f.Where, f.Line)
	}
	if f.Detail != "" {
		text += ", " + f.Detail
	}
	return text
}

// counted writes a number with its noun.
func counted(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// number writes a value as the limits do.
func number(v float64) string { return strconv.FormatFloat(v, 'f', -1, 64) }

// tenths rounds to one decimal, as the limits are written.
func tenths(v float64) float64 { return math.Round(v*10) / 10 }
