package whatif

import (
	"fmt"
	"time"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
)

// Kind says what a change does.
type Kind string

// The kinds of changes.
const (
	// LoseSite takes all nodes of Site away at once.
	LoseSite Kind = "lose_site"
	// LoseNode takes Node away.
	LoseNode Kind = "lose_node"
	// AddSite adds Nodes nodes at a new Site, RTT away from the sites that the
	// map names.
	AddSite Kind = "add_site"
	// MoveActive hands Slice over to its member at Site.
	MoveActive Kind = "move_active"
	// SetLevel gives Slice another number of replicas, Level.
	SetLevel Kind = "set_level"
	// SetHome gives Slice another home, Site.
	SetHome Kind = "set_home"
	// DrainNode has Node left by its slices, and DrainSite all nodes of Site.
	DrainNode Kind = "drain_node"
	DrainSite Kind = "drain_site"
)

// Change is one thing that somebody thinks of doing, or that may happen. The
// fields that its kind does not name are not looked at.
type Change struct {
	Kind  Kind      `json:"kind"`
	Site  ids.Site  `json:"site,omitempty"`
	Node  ids.Node  `json:"node,omitempty"`
	Slice ids.Slice `json:"slice,omitempty"`
	Level int       `json:"level,omitempty"`
	Nodes int       `json:"nodes,omitempty"`
	// RTT are round trips from the new site to others. Where a site is not
	// named, its coordinates tell.
	RTT map[ids.Site]time.Duration `json:"rtt_ns,omitempty"`
}

// Limits of a change.
const (
	// MaxLevel is the most replicas that a slice may have here.
	MaxLevel = 16
	// MaxNewNodes bounds the nodes of an added site.
	MaxNewNodes = 1000
	// MaxRTT bounds a round trip to an added site.
	MaxRTT = 10 * time.Second
)

// apply makes one change to the cluster as it is imagined.
func (c *cluster) apply(x Change) error {
	switch x.Kind {
	case LoseSite:
		return c.loseSite(x.Site)
	case LoseNode:
		return c.loseNode(x.Node)
	case AddSite:
		return c.addSite(x)
	case MoveActive:
		return c.moveActive(x.Slice, x.Site)
	case SetLevel:
		return c.setLevel(x.Slice, x.Level)
	case SetHome:
		return c.setHome(x.Slice, x.Site)
	case DrainNode:
		return c.drain(string(x.Node), func(n Node) bool { return n.ID == x.Node })
	case DrainSite:
		return c.drain(string(x.Site), func(n Node) bool { return n.Site == x.Site })
	}
	return fault.Errorf(fault.Invalid, opPredict, string(x.Kind), "is no kind of change; the kinds are %s, %s, %s, %s, %s, %s, %s and %s",
		LoseSite, LoseNode, AddSite, MoveActive, SetLevel, SetHome, DrainNode, DrainSite)
}

// drain marks nodes as those that slices are to leave.
func (c *cluster) drain(name string, which func(Node) bool) error {
	found := false
	for i := range c.nodes {
		if which(c.nodes[i]) {
			c.nodes[i].Draining, found = true, true
		}
	}
	if !found {
		return fault.E(fault.NotFound, opPredict, name, "is no node, and no site with nodes")
	}
	return nil
}

func (c *cluster) setHome(id ids.Slice, site ids.Site) error {
	row, err := c.row(id)
	if err != nil {
		return err
	}
	if !c.hasSite(site) {
		return fault.Errorf(fault.NotFound, opPredict, string(site), "is no site; the sites are %s", list(c.sites()))
	}
	row.Policy.Home, row.moves = site, true
	return nil
}

func (c *cluster) loseSite(site ids.Site) error {
	if !c.hasSite(site) {
		return fault.Errorf(fault.NotFound, opPredict, string(site), "is no site; the sites are %s", list(c.sites()))
	}
	for i := range c.nodes {
		if c.nodes[i].Site == site {
			c.nodes[i].Away = true
		}
	}
	return nil
}

func (c *cluster) loseNode(id ids.Node) error {
	n := c.node(id)
	if n == nil {
		return fault.E(fault.NotFound, opPredict, string(id), "is no node")
	}
	n.Away = true
	return nil
}

func (c *cluster) addSite(x Change) error {
	switch {
	case x.Site == "":
		return fault.E(fault.Invalid, opPredict, "", "the new site needs a name")
	case c.hasSite(x.Site):
		return fault.E(fault.Exists, opPredict, string(x.Site), "is there already; choose another name for the new site")
	case x.Nodes < 1 || x.Nodes > MaxNewNodes:
		return fault.Errorf(fault.Invalid, opPredict, string(x.Site), "%d nodes; between 1 and %d", x.Nodes, MaxNewNodes)
	case len(x.RTT) == 0:
		return fault.Errorf(fault.Invalid, opPredict, string(x.Site), "needs a round trip to at least one of %s", list(c.sites()))
	}
	for site, rtt := range x.RTT {
		if !c.hasSite(site) {
			return fault.Errorf(fault.NotFound, opPredict, string(site), "is no site; the sites are %s", list(c.sites()))
		}
		if rtt <= 0 || rtt > MaxRTT {
			return fault.Errorf(fault.Invalid, opPredict, string(site), "a round trip of %v; above 0 and at most %v", rtt, MaxRTT)
		}
	}
	c.distances.addSite(x.Site, x.RTT, c.nodes)
	for i := range x.Nodes {
		n := Node{Node: geoconfig.Node{ID: ids.Node(fmt.Sprintf("%s-%d", x.Site, i+1)), Site: x.Site, Incarnation: 1}}
		if c.node(n.ID) != nil {
			return fault.E(fault.Exists, opPredict, string(n.ID), "is a node already; choose another name for the new site")
		}
		c.addNode(n)
	}
	return nil
}

func (c *cluster) moveActive(id ids.Slice, site ids.Site) error {
	row, err := c.row(id)
	if err != nil {
		return err
	}
	if !c.hasSite(site) {
		return fault.Errorf(fault.NotFound, opPredict, string(site), "is no site; the sites are %s", list(c.sites()))
	}
	for _, m := range row.Members {
		n := c.node(m.Node)
		if n == nil || n.Site != site || m.State != geoconfig.Normal {
			continue
		}
		if n.Away {
			return fault.Errorf(fault.Unreachable, opPredict, string(site), "has the member of slice %d that is away", id)
		}
		row.Active = m.Node
		return nil
	}
	return fault.Errorf(fault.NotFound, opPredict, string(site), "has no whole copy of slice %d, whose members are at %s; only these can become its active",
		id, list(c.sitesOf(row)))
}

func (c *cluster) setLevel(id ids.Slice, level int) error {
	row, err := c.row(id)
	if err != nil {
		return err
	}
	if level < 1 || level > MaxLevel {
		return fault.Errorf(fault.Invalid, opPredict, fmt.Sprint("slice ", id), "a level of %d; between 1 and %d", level, MaxLevel)
	}
	row.Policy.Level = level
	return nil
}
