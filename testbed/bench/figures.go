package bench

import (
	"fmt"
	"io"
	"sort"
)

// Figure is what one work measured in one folder, once.
type Figure struct {
	Work  string  `json:"work"`
	Unit  string  `json:"unit"`
	Dir   string  `json:"dir"`
	Round int     `json:"round"`
	Value float64 `json:"value"`
}

// Table prints the medians, a row a work and a column a folder, with each
// folder's ratio to the first.
func Table(w io.Writer, dirs []string, figures []Figure) {
	type key struct{ work, unit string }
	var order []key
	values := map[key]map[string][]float64{}
	for _, f := range figures {
		k := key{f.Work, f.Unit}
		if values[k] == nil {
			values[k] = map[string][]float64{}
			order = append(order, k)
		}
		values[k][f.Dir] = append(values[k][f.Dir], f.Value)
	}
	fmt.Fprintf(w, "\n%-34s", "median")
	for _, d := range dirs {
		fmt.Fprintf(w, " %24s", shorten(d, 24))
	}
	fmt.Fprintln(w)
	for _, k := range order {
		fmt.Fprintf(w, "%-34s", k.work+", "+k.unit)
		first := median(values[k][dirs[0]])
		for i, d := range dirs {
			v := median(values[k][d])
			if i == 0 {
				fmt.Fprintf(w, " %24.1f", v)
				continue
			}
			fmt.Fprintf(w, " %15.1f (%5.2fx)", v, v/first)
		}
		fmt.Fprintln(w)
	}
}

func shorten(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return "…" + s[len(s)-n+1:]
}

func median(v []float64) float64 {
	if len(v) == 0 {
		return 0
	}
	s := append([]float64(nil), v...)
	sort.Float64s(s)
	if len(s)%2 == 1 {
		return s[len(s)/2]
	}
	return (s[len(s)/2-1] + s[len(s)/2]) / 2
}
