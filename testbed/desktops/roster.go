package desktops

import (
	"cmp"
	"slices"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/server/allocation"
)

// roster is the cluster's configuration: nodes in the order of their IDs, which is
// that of the desktops, and slices in the order of theirs, from 1.
type roster struct {
	nodes []geoconfig.Node
	sites []geoconfig.Site
	rows  []geoconfig.SliceRow
}

var _ allocation.Roster = (*roster)(nil)

// index is the number of a node's desktop.
func (r *roster) index(id ids.Node) int {
	i, _ := slices.BinarySearchFunc(r.nodes, id, func(n geoconfig.Node, id ids.Node) int { return cmp.Compare(n.ID, id) })
	return i
}

// Node implements allocation.Roster.
func (r *roster) Node(id ids.Node) (geoconfig.Node, bool) {
	if i := r.index(id); i < len(r.nodes) && r.nodes[i].ID == id {
		return r.nodes[i], true
	}
	return geoconfig.Node{}, false
}

// Nodes implements allocation.Roster. The caller changes nothing.
func (r *roster) Nodes() []geoconfig.Node { return r.nodes }

// Slice implements allocation.Roster.
func (r *roster) Slice(id ids.Slice) (geoconfig.SliceRow, bool) {
	if id < 1 || int(id) > len(r.rows) {
		return geoconfig.SliceRow{}, false
	}
	return r.rows[id-1], true
}

// Slices implements allocation.Roster. The caller changes nothing.
func (r *roster) Slices() []geoconfig.SliceRow { return r.rows }
