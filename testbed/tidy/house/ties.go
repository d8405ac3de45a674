package house

import (
	"fmt"
	"io"
	"strings"
)

// explain prints a package's files, its knot, and the arrows whose removal
// would make the knot small.
func explain(out io.Writer, t *tree, r *room, limit int) {
	g, what := t.between(r)
	knot := g.knot()
	in := map[string]bool{}
	for _, i := range knot {
		in[g.files[i]] = true
	}
	fmt.Fprintf(out, "%s: %s, %d in the knot (marked *)\n", r.dir, counted(len(r.code()), "file"), len(knot))
	for _, f := range r.code() {
		name := f.path[strings.LastIndex(f.path, "/")+1:]
		mark := " "
		if in[name] {
			mark = "*"
		}
		fmt.Fprintf(out, "%s %5d  %s\n", mark, f.lines, name)
	}
	cut, refs := g.cut(limit), 0
	for _, a := range cut {
		refs += a.refs
	}
	fmt.Fprintf(out, "without these %s (%s) no knot has more than %d files:\n", counted(len(cut), "arrow"), counted(refs, "reference"), limit)
	for _, a := range cut {
		names := often(what[[2]int{a.from, a.to}])
		if len(names) > 6 {
			names = append(names[:6], "...")
		}
		fmt.Fprintf(out, "%5d  %s -> %s: %s\n", a.refs, g.files[a.from], g.files[a.to], strings.Join(names, " "))
	}
}
