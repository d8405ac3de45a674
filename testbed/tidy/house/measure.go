package house

import (
	"cmp"
	"slices"
)

// Measure reads the tree below root and returns its figures, by measure and
// then the largest first.
func Measure(root string) ([]Figure, error) {
	t, err := read(root)
	if err != nil {
		return nil, err
	}
	if err := t.resolve(); err != nil {
		return nil, err
	}
	docs, err := t.documents()
	if err != nil {
		return nil, err
	}
	figures := append(docs, t.names()...)
	for _, r := range t.rooms {
		for _, f := range r.files {
			figures = append(figures, t.sizes(r, f)...)
		}
		figures = append(figures, t.methods(r)...)
		figures = append(figures, t.references(r)...)
		figures = append(figures, t.walked(r)...)
		figures = append(figures, t.vocabulary(r)...)
		figures = append(figures, t.ops(r)...)
		figures = append(figures, t.tests(r)...)
	}
	for _, m := range []string{"vocabulary", "op", "test-long", "test-form"} {
		figures = append(figures, sum(m, figures)...)
	}
	slices.SortStableFunc(figures, func(a, b Figure) int {
		return cmp.Or(cmp.Compare(a.Measure, b.Measure), cmp.Compare(b.Value, a.Value), cmp.Compare(a.Subject, b.Subject))
	})
	return figures, nil
}

// sum is the figure of a measure in all packages. Its limit lets code move from
// one package to another.
func sum(measure string, figures []Figure) []Figure {
	all := Figure{Measure: measure, Subject: "all"}
	packages := 0
	for _, f := range figures {
		if f.Measure != measure {
			continue
		}
		all.Value += f.Value
		packages++
		if measure == "op" || measure == "test-long" {
			all.Places = append(all.Places, f.Places...)
		} else {
			all.Places = append(all.Places, f.Subject+": "+number(f.Value))
		}
	}
	if packages == 0 {
		return nil
	}
	all.Detail = "in " + counted(packages, "package")
	return []Figure{all}
}
