package house

import "slices"

// A graph holds the references between files: refs[i][j] is how often file i
// names something that file j declares. The diagonal is zero.
type graph struct {
	files []string
	refs  [][]int
}

func newGraph(files []string) *graph {
	g := &graph{files: files, refs: make([][]int, len(files))}
	for i := range g.refs {
		g.refs[i] = make([]int, len(files))
	}
	return g
}

// arrows counts the pairs of files with a reference from one to the other.
func (g *graph) arrows() int {
	n := 0
	for _, row := range g.refs {
		for _, refs := range row {
			if refs > 0 {
				n++
			}
		}
	}
	return n
}

// knot returns the largest strongly connected component, sorted; the first of
// equally large ones. A single file is none.
func (g *graph) knot() []int {
	reach := g.reach()
	var best []int
	for i := range g.files {
		var with []int
		for j := range g.files {
			if i == j || reach[i][j] && reach[j][i] {
				with = append(with, j)
			}
		}
		if len(with) > max(len(best), 1) {
			best = with
		}
	}
	return best
}

// reach is the transitive closure of the arrows.
func (g *graph) reach() [][]bool {
	n := len(g.files)
	out := make([][]bool, n)
	for i := range out {
		out[i] = make([]bool, n)
		for j, refs := range g.refs[i] {
			out[i][j] = refs > 0
		}
	}
	for k := range n {
		for i := range n {
			if !out[i][k] {
				continue
			}
			for j := range n {
				out[i][j] = out[i][j] || out[k][j]
			}
		}
	}
	return out
}

// order puts the files in an order that little runs against: the users first.
// cost says what an arrow with a number of references counts.
func (g *graph) order(cost func(refs int) int) []int {
	order := g.greedy(cost)
	for g.improve(order, cost) {
	}
	return order
}

// greedy is the heuristic of Eades, Lin and Smyth: it takes sinks to the end,
// sources to the front, and else the file whose arrows go out most.
func (g *graph) greedy(cost func(int) int) []int {
	left := make([]int, len(g.files))
	for i := range left {
		left[i] = i
	}
	var front, back []int
	for len(left) > 0 {
		pick, best, sink := 0, 0, false
		for at, i := range left {
			in, out := 0, 0
			for _, j := range left {
				in, out = in+cost(g.refs[j][i]), out+cost(g.refs[i][j])
			}
			if out == 0 {
				pick, sink = at, true
				break
			}
			if in == 0 {
				out = 1 << 30 // a source goes before all that are neither
			}
			if at == 0 || out-in > best {
				pick, best = at, out-in
			}
		}
		if sink {
			back = append(back, left[pick])
		} else {
			front = append(front, left[pick])
		}
		left = slices.Delete(left, pick, pick+1)
	}
	slices.Reverse(back)
	return append(front, back...)
}

// improve moves the first file that it helps to move, in place.
func (g *graph) improve(order []int, cost func(int) int) bool {
	for from := range order {
		moved := order[from]
		for _, step := range []int{-1, 1} {
			gain := 0
			for to := from + step; to >= 0 && to < len(order); to += step {
				passed := order[to]
				gain += step * (cost(g.refs[passed][moved]) - cost(g.refs[moved][passed]))
				if gain > 0 {
					copy(order, slices.Insert(slices.Delete(slices.Clone(order), from, from+1), to, moved))
					return true
				}
			}
		}
	}
	return false
}

// An arrow is a reference from one file to another.
type arrow struct {
	from, to int
	refs     int
}

// against returns the arrows that run against an order.
func (g *graph) against(order []int) []arrow {
	var out []arrow
	for at, to := range order {
		for _, from := range order[at+1:] {
			if g.refs[from][to] > 0 {
				out = append(out, arrow{from, to, g.refs[from][to]})
			}
		}
	}
	return out
}

// cut returns arrows without which no knot has more than limit files, with few
// references in all, the heaviest first.
func (g *graph) cut(limit int) []arrow {
	knot := g.knot()
	if len(knot) <= limit {
		return nil
	}
	rest := newGraph(g.files)
	for i := range g.refs {
		copy(rest.refs[i], g.refs[i])
	}
	out := g.against(g.order(func(refs int) int { return refs }))
	slices.SortStableFunc(out, func(a, b arrow) int { return b.refs - a.refs })
	for _, a := range out {
		rest.refs[a.from][a.to] = 0
	}
	// An arrow may stay where the knots stay small with it.
	return slices.DeleteFunc(out, func(a arrow) bool {
		rest.refs[a.from][a.to] = a.refs
		if len(rest.knot()) <= limit {
			return true
		}
		rest.refs[a.from][a.to] = 0
		return false
	})
}

// one counts every arrow alike.
func one(refs int) int { return min(refs, 1) }
