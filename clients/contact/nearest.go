package contact

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/geo-config/version"
	"cartwheel.dev/node/wire"
)

const (
	// unknown stands for the distance of a node of which nothing is known, at
	// another site; one at this site is taken to be next door.
	unknown   = time.Hour
	sitePrior = slack
	// slack is how much farther a node may be, at the least and as a share, and
	// still be taken because it stands at the client's own site; stay is the
	// same for the node that was nearest before, so that it does not change
	// with every sample.
	slack, slackShare = time.Millisecond, 10
	stay, stayShare   = time.Millisecond, 5
	// awayFor is how long a node that could not be reached comes last. It does
	// not grow.
	awayFor = 5 * time.Second
)

// Nearest returns all nodes, the nearest first: those on this machine, then by
// round trip, measured where that is recent and predicted from coordinates
// otherwise. The declared site decides between equals and stands in where
// nothing is known; the first stays first until another one is clearly nearer.
// Nodes that do not answer come last.
func (c *Cluster) Nearest() []ids.Node {
	c.mu.Lock()
	defer c.mu.Unlock()
	out := slices.Clone(c.order)
	c.sortLocked(out, c.chosen)
	if len(out) > 0 {
		c.chosen = out[0]
	}
	return out
}

// Near reports whether a node stands at the client's own site.
func (c *Cluster) Near(id ids.Node) bool {
	n, err := c.find(id)
	return err == nil && n.near.Load()
}

// Sharers returns the nodes of the client's own site that bring chunks for its
// clients and are not away, in no particular order.
func (c *Cluster) Sharers() []ids.Node {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.opt.Clock()
	var out []ids.Node
	for id, n := range c.nodes {
		if n.near.Load() && n.row.Feature >= version.SharedReads && n.away <= now {
			out = append(out, id)
		}
	}
	return out
}

// KeepSides returns those of some nodes that keep side logs.
func (c *Cluster) KeepSides(nodes []ids.Node) (out []ids.Node) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, id := range nodes {
		if n := c.nodes[id]; n != nil && n.row.Feature >= version.SideLogs {
			out = append(out, id)
		}
	}
	return out
}

// KeepCreates reports whether the programs of all these nodes let standbys keep creates.
func (c *Cluster) KeepCreates(nodes []ids.Node) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, id := range nodes {
		if n := c.nodes[id]; n == nil || n.row.Feature < version.PendingCreates {
			return false
		}
	}
	return true
}

// Sort orders nodes by nearness, in place.
func (c *Cluster) Sort(nodes []ids.Node) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.sortLocked(nodes, "")
}

// Closest returns the nearest of some nodes: usual, unless another one is
// clearly nearer or usual does not answer.
func (c *Cluster) Closest(usual ids.Node, nodes []ids.Node) ids.Node {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.standingLocked(usual, usual, c.opt.Clock()) == (standing{}) {
		return usual // none is nearer than that
	}
	order := []ids.Node{usual}
	for _, n := range nodes {
		if n != usual {
			order = append(order, n)
		}
	}
	c.sortLocked(order, usual)
	return order[0]
}

// Chain orders nodes behind the first one so that each is the nearest to the
// one before, as far as coordinates tell.
func (c *Cluster) Chain(nodes []ids.Node) {
	for i := 1; i < len(nodes); i++ {
		rest := nodes[i:]
		c.Sort(rest)
		slices.SortStableFunc(rest, func(a, b ids.Node) int {
			da, ok := c.near.Between(nodes[i-1], a)
			db, ok2 := c.near.Between(nodes[i-1], b)
			if !ok || !ok2 {
				return 0
			}
			return cmp.Compare(da, db)
		})
	}
}

// Avoid lets a node come last for a while: it kept somebody waiting.
func (c *Cluster) Avoid(id ids.Node) {
	c.answered(id, fault.E(fault.Unreachable, "contact.Avoid", string(id), ""))
}

// standing is what orders nodes: the lesser goes first.
type standing struct {
	away    bool
	far     time.Duration
	foreign bool // at another site than the client
}

func (s standing) compare(o standing) int {
	return cmp.Or(compareBool(s.away, o.away), cmp.Compare(s.far, o.far), compareBool(s.foreign, o.foreign))
}

func compareBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	}
	return 1
}

// sortLocked puts the nodes into the order in which to ask them. c.mu is held.
func (c *Cluster) sortLocked(nodes []ids.Node, chosen ids.Node) {
	now := c.opt.Clock()
	at := make(map[ids.Node]standing, len(nodes))
	for _, id := range nodes {
		at[id] = c.standingLocked(id, chosen, now)
	}
	slices.SortStableFunc(nodes, func(a, b ids.Node) int { return at[a].compare(at[b]) })
}

// standingLocked says what speaks for a node and against it. c.mu is held.
func (c *Cluster) standingLocked(id, chosen ids.Node, now time.Duration) standing {
	n, ok := c.nodes[id]
	if !ok {
		return standing{away: true, far: 2 * unknown, foreign: true}
	}
	ours := c.opt.Site != "" && n.row.Site == c.opt.Site
	s := standing{away: n.away > now, foreign: !ours}
	switch d := c.distance(id); {
	case d.How != Unknown:
		s.far = d.RTT
	case ours:
		s.far = sitePrior
	default:
		s.far = unknown
	}
	if s.far == unknown {
		return s
	}
	if ours {
		s.far -= max(slack, s.far/slackShare)
	}
	if id == chosen {
		s.far -= max(stay, s.far/stayShare)
	}
	s.far = max(s.far, 0)
	return s
}

// How says where a distance comes from.
type How uint8

// The sources of distances.
const (
	Unknown   How = iota
	Local         // a Unix socket of this machine
	Measured      // recently, the direct way
	Predicted     // from coordinates
	Around        // measured over a third node, because the direct way is broken
)

// Distance is how far a node is, and how that is known.
type Distance struct {
	RTT time.Duration
	How How
}

// String says it for people.
func (d Distance) String() string {
	rtt := fmt.Sprintf("%.1f ms", float64(d.RTT)/float64(time.Millisecond))
	switch d.How {
	case Local:
		return "on this machine"
	case Measured:
		return "measured " + rtt
	case Predicted:
		return "predicted " + rtt
	case Around:
		return "over a third node " + rtt
	}
	return "not known how far"
}

// Distance returns how far a node is.
func (c *Cluster) Distance(id ids.Node) Distance { return c.distance(id) }

func (c *Cluster) distance(id ids.Node) Distance {
	path, up := c.host.Path(string(id))
	switch {
	case up && path.Local:
		return Distance{0, Local}
	case up && path.Via != "" && path.RTT > 0:
		return Distance{path.RTT, Around}
	}
	e, ok := c.near.Estimate(id)
	switch {
	case !ok:
		return Distance{}
	case e.Measured:
		return Distance{e.RTT, Measured}
	}
	return Distance{e.RTT, Predicted}
}

// Why says why a node comes first among others, or what else speaks for it.
func (c *Cluster) Why(id ids.Node) string {
	d := c.distance(id)
	row, _ := c.Node(id)
	var parts []string
	if d.How == Measured || d.How == Predicted || d.How == Around {
		parts = append(parts, "nearest by "+d.String())
	} else if d.How == Local {
		parts = append(parts, d.String())
	}
	if c.opt.Site != "" && row.Site == c.opt.Site {
		parts = append(parts, "at this mount's site")
	}
	if len(parts) == 0 {
		return d.String()
	}
	return strings.Join(parts, ", ")
}

// answered notes whether a node could be reached.
func (c *Cluster) answered(id ids.Node, err error) {
	lost := err != nil && !wire.Answered(err) && fault.Is(err, fault.Unreachable)
	if err != nil && !lost {
		return
	}
	c.mu.Lock()
	if n, ok := c.nodes[id]; ok {
		n.away = 0
		if lost {
			n.away = c.opt.Clock() + awayFor
		}
	}
	c.mu.Unlock()
	if lost {
		c.lookElsewhere(id)
	}
}

// introductions is how many third nodes the client introduces itself to for one
// detour.
const introductions = 3

// relays lists nodes over which another one may be reached, those with the
// least round trip in all first. They pass on only for who said hello.
func (c *Cluster) relays(ctx context.Context, to string) []string {
	var nodes []ids.Node
	total := map[ids.Node]time.Duration{}
	for _, id := range c.Nearest() {
		if string(id) == to {
			continue
		}
		total[id] = unknown
		d := c.distance(id)
		if on, ok := c.near.Between(id, ids.Node(to)); ok && d.How != Unknown {
			total[id] = d.RTT + on
		}
		nodes = append(nodes, id)
	}
	slices.SortStableFunc(nodes, func(a, b ids.Node) int { return cmp.Compare(total[a], total[b]) })
	nodes = nodes[:min(len(nodes), introductions)]
	out := make([]string, len(nodes))
	var all sync.WaitGroup
	for i, id := range nodes {
		all.Go(func() {
			if c.met(ctx, id) {
				out[i] = string(id)
			}
		})
	}
	all.Wait()
	return slices.DeleteFunc(out, func(id string) bool { return id == "" })
}

// met introduces the client to a node, unless that is being done already: it
// may be waiting for this very detour.
func (c *Cluster) met(ctx context.Context, id ids.Node) bool {
	n, err := c.find(id)
	if err != nil || n.introduced() {
		return err == nil
	}
	select {
	case n.hello <- struct{}{}:
	default:
		return false
	}
	defer func() { <-n.hello }()
	return n.introduced() || c.hello(ctx, n, id) == nil
}

// Node returns what is known of a node.
func (c *Cluster) Node(id ids.Node) (geoconfig.Node, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	n, ok := c.nodes[id]
	if !ok {
		return geoconfig.Node{}, false
	}
	return n.row, true
}

// Nodes returns all that is known, in the order in which it became known.
func (c *Cluster) Nodes() []geoconfig.Node {
	c.mu.Lock()
	defer c.mu.Unlock()
	var out []geoconfig.Node
	for _, id := range c.order {
		out = append(out, c.nodes[id].row)
	}
	return out
}

// Sites returns the sites that the cluster has.
func (c *Cluster) Sites() []geoconfig.Site {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.sites)
}
