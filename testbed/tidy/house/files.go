package house

import (
	"maps"
	"path"
	"slices"
	"sort"
)

// firstRoom is the number of files from which a package has a figure of back:
// in a small one a single arrow is many percent.
const firstRoom = 10

// references measures how a package's files refer to each other.
func (t *tree) references(r *room) []Figure {
	g, _ := t.between(r)
	var out []Figure
	if knot := g.knot(); len(knot) > 0 {
		f := Figure{Measure: "knot", Subject: r.dir, Value: float64(len(knot)), Where: r.dir, Detail: counted(len(g.files), "file")}
		for _, i := range knot {
			f.Places = append(f.Places, g.files[i])
		}
		out = append(out, f)
	}
	if all := g.arrows(); len(g.files) >= firstRoom && all > 0 {
		back := g.against(g.order(one))
		f := Figure{
			Measure: "back", Subject: r.dir, Value: tenths(100 * float64(len(back)) / float64(all)), Where: r.dir,
			Detail: counted(len(back), "arrow") + " of " + counted(all, "arrow"),
		}
		for _, a := range back {
			f.Places = append(f.Places, g.files[a.from]+" -> "+g.files[a.to])
		}
		out = append(out, f)
	}
	return out
}

// between builds the graph of the references between a package's files. It
// covers those that Linux builds and that nothing generated.
func (t *tree) between(r *room) (*graph, map[[2]int]map[string]int) {
	var files []*file
	var names []string
	index := map[string]int{}
	for _, f := range r.code() {
		if r.uses != nil && r.uses.built[f.path] {
			index[f.path] = len(files)
			files, names = append(files, f), append(names, path.Base(f.path))
		}
	}
	g, what := newGraph(names), map[[2]int]map[string]int{}
	if r.uses == nil {
		return g, what
	}
	for id, object := range r.uses.info.Uses {
		if !object.Pos().IsValid() {
			continue
		}
		from, _ := t.at(id.Pos())
		to, _ := t.at(object.Pos())
		i, mine := index[from]
		j, known := index[to]
		if !mine || !known || i == j {
			continue
		}
		g.refs[i][j]++
		if what[[2]int{i, j}] == nil {
			what[[2]int{i, j}] = map[string]int{}
		}
		what[[2]int{i, j}][object.Name()]++
	}
	return g, what
}

// often lists names, the most frequent first.
func often(names map[string]int) []string {
	out := slices.Sorted(maps.Keys(names))
	sort.SliceStable(out, func(i, j int) bool { return names[out[i]] > names[out[j]] })
	return out
}
