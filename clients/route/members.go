package route

import (
	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/ids"
)

// others are the members besides the active, the nearest first, then the
// active itself.
func (r *Router) others(row geoconfig.SliceRow) []ids.Node {
	var out []ids.Node
	for _, m := range row.Members {
		if m.Node != row.Active {
			out = append(out, m.Node)
		}
	}
	r.cluster.Sort(out)
	return append(out, row.Active)
}

// beside are the normal members but the active, the nearest first.
func (r *Router) beside(row geoconfig.SliceRow) []ids.Node {
	nodes := r.copies(row)
	return nodes[:len(nodes)-1]
}

// copies are the normal members, the nearest first and the active last.
func (r *Router) copies(row geoconfig.SliceRow) []ids.Node {
	var out []ids.Node
	for _, n := range row.Normals() {
		if n != row.Active {
			out = append(out, n)
		}
	}
	r.cluster.Sort(out)
	return append(out, row.Active)
}
