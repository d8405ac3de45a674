package house

import (
	"fmt"
	"io"
	"strings"
)

// measures are the lines of the table, in its order.
var measures = []struct{ name, what string }{
	{"methods", "methods of a type"},
	{"facade", "methods of a facade"},
	{"fields", "fields of a struct"},
	{"knot", "files of a package in one knot"},
	{"back", "percent of arrows that run back up"},
	{"returns", "returns of a call's walk"},
	{"name", "packages of one name"},
	{"vocabulary", "geoconfig.X names of numbers and texts"},
	{"op", "op constants that name another function"},
	{"function", "lines of a function"},
	{"file", "lines of a file"},
	{"test-long", "tests with names of over 50 letters"},
	{"test-form", "tests not TestSubject_Behaviour"},
	{"doc-mean", "words of a document's mean sentence"},
	{"doc-long", "sentences of over 30 words"},
	{"short", "lines of a file under 30"},
}

// table prints the largest figure of each measure, or with all every one that
// is above what is to be reached.
func table(out io.Writer, figures []Figure, limits *Limits, all bool) {
	const form = "%-10s %-40s %8s %6s %6s  %s\n"
	fmt.Fprintf(out, form, "measure", "what", "worst", "reach", "above", "the worst")
	for _, m := range measures {
		var of, above []Figure
		for _, f := range figures {
			if f.Measure != m.name {
				continue
			}
			of = append(of, f)
			if limit, ok := limits.of(f); !ok && m.name == "short" || ok && f.Value > limit.Reach {
				above = append(above, f)
			}
		}
		if len(of) == 0 {
			continue
		}
		reach := "-"
		if limit, ok := limits.of(of[0]); ok {
			reach = number(limit.Reach)
		}
		fmt.Fprintf(out, form, m.name, m.what, number(of[0].Value), reach, fmt.Sprint(len(above)), of[0].String())
		for _, f := range above {
			if all {
				fmt.Fprintf(out, "    %6s  %s\n", number(f.Value), f.String())
			}
		}
	}
}

// complain prints a figure that is over its limit, with each thing that was
// counted and the line that would permit it.
func complain(out io.Writer, f Figure, l Limit) {
	fmt.Fprintf(out, "%s: %s: %s, the limit is %s, to reach is %s\n", f.Measure, f.String(), number(f.Value), number(l.Most), number(l.Reach))
	for _, p := range f.Places {
		fmt.Fprintf(out, "    %s\n", p)
	}
	l.Subject, l.Most = f.Subject, f.Value
	fmt.Fprintf(out, "    to permit it: %s\n", strings.Join(strings.Fields(l.String()), " "))
}
