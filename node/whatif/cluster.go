package whatif

import (
	"fmt"
	"slices"
	"strings"
	"time"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/server/placement"
)

// cluster is the cluster as it is imagined: a copy of the State that changes and
// the nodes' own reactions are made to. One goroutine owns it.
//
// Invariants: index maps the ID of each node to its place in nodes, and nothing
// else. candidates lists the nodes in the same order, once prepare has run.
type cluster struct {
	nodes      []Node
	index      map[ids.Node]int
	slices     []Slice
	bySlice    map[ids.Slice]int
	distances  *distances
	candidates []placement.Candidate
	// ways has what fromSite found; -1: not known. It is empty until all nodes
	// are as they stay.
	ways map[way]time.Duration
}

func newCluster(s *State) *cluster {
	c := &cluster{index: map[ids.Node]int{}, bySlice: map[ids.Slice]int{}, distances: newDistances(s), ways: map[way]time.Duration{}}
	for _, n := range s.Nodes {
		c.addNode(n)
	}
	for i := range s.Slices {
		row := s.Slices[i]
		row.SliceRow = row.Clone()
		c.bySlice[row.ID] = len(c.slices)
		c.slices = append(c.slices, row)
	}
	return c
}

// copy returns a cluster that shares nothing that changes with c.
func (c *cluster) copy() *cluster {
	d := *c
	d.nodes = slices.Clone(c.nodes)
	d.slices = slices.Clone(c.slices)
	for i := range d.slices {
		d.slices[i].SliceRow = d.slices[i].Clone()
	}
	d.candidates, d.ways = nil, map[way]time.Duration{}
	return &d
}

func (c *cluster) addNode(n Node) {
	c.index[n.ID] = len(c.nodes)
	c.nodes = append(c.nodes, n)
	c.distances.addNode(n.Node)
}

// node returns the node to read or change, nil if there is none.
func (c *cluster) node(id ids.Node) *Node {
	if i, ok := c.index[id]; ok {
		return &c.nodes[i]
	}
	return nil
}

// lost reports whether a node does not answer, or is not known at all.
func (c *cluster) lost(id ids.Node) bool {
	n := c.node(id)
	return n == nil || n.Away
}

func (c *cluster) siteOf(id ids.Node) ids.Site {
	if n := c.node(id); n != nil {
		return n.Site
	}
	return ""
}

func (c *cluster) row(id ids.Slice) (*Slice, error) {
	if i, ok := c.bySlice[id]; ok {
		return &c.slices[i], nil
	}
	return nil, fault.E(fault.NotFound, opPredict, fmt.Sprint("slice ", id), "is no slice; `cartwheel slice ls` lists them")
}

// sites lists the sites that have nodes, by name.
func (c *cluster) sites() []ids.Site {
	var out []ids.Site
	for _, n := range c.nodes {
		out = append(out, n.Site)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

func (c *cluster) hasSite(site ids.Site) bool {
	return slices.ContainsFunc(c.nodes, func(n Node) bool { return n.Site == site })
}

// sitesOf lists the sites of a slice's members, in the row's order.
func (c *cluster) sitesOf(row *Slice) []ids.Site {
	var out []ids.Site
	for _, m := range row.Members {
		if s := c.siteOf(m.Node); !slices.Contains(out, s) {
			out = append(out, s)
		}
	}
	return out
}

// list writes names for people.
func list(names []ids.Site) string {
	var out []string
	for _, n := range names {
		out = append(out, string(n))
	}
	return strings.Join(out, ", ")
}

// prepare lists the candidates for new replicas, as the nodes would.
func (c *cluster) prepare() {
	rows := make([]geoconfig.SliceRow, len(c.slices))
	for i := range c.slices {
		rows[i] = c.slices[i].SliceRow
	}
	nodes := make([]geoconfig.Node, len(c.nodes))
	for i := range c.nodes {
		nodes[i] = c.nodes[i].Node
	}
	c.candidates = placement.Candidates(nodes, rows, func(n geoconfig.Node) bool { return c.lost(n.ID) })
}
