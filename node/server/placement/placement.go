// Package placement decides where a slice's replicas go and which slice a new
// object belongs to (docs/design.md, 4.11 and 4.12). It is pure: it knows only
// what it is told, changes nothing, and asks nobody but by the functions that it is
// given. All of it may be called from anywhere.
package placement

import (
	"slices"
	"sort"
	"time"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
)

// Candidate is a node that could hold a replica.
type Candidate struct {
	Node ids.Node
	Site ids.Site
	// Load orders nodes of one site: the fewer the better.
	Load int
	// Away nodes do not answer now; they are taken last.
	Away bool
	// Silent nodes did not answer a probe just now: they are taken where all others
	// are away.
	Silent bool
	// Leaving nodes are drained: they take no replica, and the ones that they
	// have count for nothing.
	Leaving bool
	// Filling says that the node's disk is above its low mark, High that it is above the
	// high one, and Full that it has no room. Nodes above their high mark come after
	// others where distance and load alone would decide, and full ones come last.
	Filling, High, Full bool
	// Gives is the slice of which the node gives its copy away, and to whom.
	Gives geoconfig.Giving
	// Domain numbers what fails together: Domains says which nodes do.
	Domain int
	// RTT is how far the node is from the slice's active, for Extend; Choose
	// asks for it. 0: not known.
	RTT time.Duration

	shares *sharing // of the whole cluster; nil: as if no two nodes shared a slice
}

// Candidates lists nodes with their loads and failure domains. A member counts
// one for its node, an active two. The function away says which nodes do not
// answer now.
func Candidates(nodes []geoconfig.Node, rows []geoconfig.SliceRow, away func(geoconfig.Node) bool) []Candidate {
	load := map[ids.Node]int{}
	for i := range rows {
		for _, m := range rows[i].Members {
			load[m.Node]++
		}
		load[rows[i].Active]++
	}
	var out []Candidate
	domains, shares := Domains(nodes), &sharing{rows: rows, width: ScatterWidth}
	for _, n := range nodes {
		c := Candidate{Node: n.ID, Site: n.Site, Load: load[n.ID], Domain: domains[n.ID], Away: away(n), Leaving: n.Draining, shares: shares,
			Filling: n.Fill != geoconfig.Roomy, High: n.Fill == geoconfig.High, Full: n.Fill == geoconfig.Full}
		if n.Giving != nil {
			c.Gives = *n.Giving
		}
		out = append(out, c)
	}
	return out
}

// Choose picks the members of a new slice, the active first. The active is
// prefer where that stands at the home site, else the least-loaded node there,
// else, where the home site can take none, a node elsewhere. A node above the high
// mark of its disk comes after the others of its site, and a full one last. The others are
// spread over as many sites as the policy asks for; where there are fewer
// sites than replicas, the home site gets the first extra one. No two are in
// one failure domain where that can be avoided, and of what is left the nearest
// to the active are taken, by measurement where there is a probe. Fewer nodes than
// replicas give fewer members.
func Choose(p geoconfig.Policy, candidates []Candidate, prefer ids.Node, apart Distance, probe Probe) ([]ids.Node, error) {
	const op fault.Op = "placement.Choose"
	active, ok := chooseActive(p.Home, candidates, prefer)
	if !ok {
		return nil, fault.E(fault.Unreachable, op, string(p.Home), "no node can take a new slice now")
	}
	members := []ids.Node{active}
	for len(members) < p.Level {
		next, ok := lasting(active, candidates, apart, probe, func(c []Candidate, apart Distance) (ids.Node, bool) {
			return oneMore(p, c, members, active, apart)
		})
		if !ok {
			break
		}
		members = append(members, next)
	}
	return members, nil
}

func chooseActive(home ids.Site, candidates []Candidate, prefer ids.Node) (ids.Node, bool) {
	candidates = slices.DeleteFunc(slices.Clone(candidates), func(c Candidate) bool { return c.Leaving })
	best, found := Candidate{}, false
	rank := func(c Candidate) int {
		switch {
		case c.Away:
			return 6
		case c.Full:
			return 5
		case c.Site != home:
			return 4
		case c.Node == prefer && !c.High:
			return 0
		case !c.High:
			return 1
		case c.Node == prefer:
			return 2
		}
		return 3
	}
	for _, c := range candidates {
		if !found || rank(c) < rank(best) || rank(c) == rank(best) && less(c, best) {
			best, found = c, true
		}
	}
	return best.Node, found && !best.Away
}

// Compare orders nodes by which of them is to have more: those that answer before the
// others, then those whose disks are not above the high mark, then the least loaded.
func Compare(a, b Candidate) int {
	switch {
	case less(a, b):
		return -1
	case less(b, a):
		return 1
	}
	return 0
}

func less(a, b Candidate) bool {
	if a.Away != b.Away {
		return b.Away
	}
	if a.Silent != b.Silent {
		return b.Silent
	}
	if a.crowded() != b.crowded() {
		return a.crowded() < b.crowded()
	}
	if a.Load != b.Load {
		return a.Load < b.Load
	}
	return a.Node < b.Node
}

// crowded ranks how much a disk speaks against a node: 0 up to its high mark, so that
// nodes below it are chosen by load alone.
func (c *Candidate) crowded() int {
	switch {
	case c.Full:
		return 2
	case c.High:
		return 1
	}
	return 0
}

// Extend adds members to those that a slice has until the policy's level is
// met or the nodes run out, and returns all of them. A member is added at a
// site that has the fewest, the home site first among equals once every site
// has one; sites beyond the policy's number are left alone. Far enough to fail
// apart comes before that: a node of a failure domain that has no member yet;
// near enough to acknowledge comes after: the least round trip to the active, in
// steps. Within one, nodes that share slices with the members come first, once one
// of the two shares them with ScatterWidth others, and then the load decides.
func Extend(p geoconfig.Policy, candidates []Candidate, members []ids.Node, active ids.Node, apart Distance) []ids.Node {
	candidates = measured(candidates, active, apart)
	out := append([]ids.Node(nil), members...)
	taken := map[ids.Node]bool{}
	for _, m := range members {
		taken[m] = true
	}
	perSite, all := map[ids.Site]int{}, map[ids.Site]bool{}
	home := p.Home
	for _, c := range candidates {
		if !c.Leaving {
			all[c.Site] = true
		}
		if taken[c.Node] {
			perSite[c.Site]++
		}
		if c.Node == active {
			home = c.Site // where the active is counts, should home have none
		}
	}
	spread := min(p.WantedSites(), len(all))
	for len(out) < p.Level {
		next, ok := nextMember(candidates, taken, perSite, home, spread)
		if !ok {
			break
		}
		taken[next.Node] = true
		perSite[next.Site]++
		out = append(out, next.Node)
	}
	return out
}

// oneMore picks the node that Extend adds next to some members.
func oneMore(p geoconfig.Policy, candidates []Candidate, members []ids.Node, active ids.Node, apart Distance) (ids.Node, bool) {
	p.Level = len(members) + 1
	all := Extend(p, candidates, members, active, apart)
	if len(all) == len(members) {
		return "", false
	}
	return all[len(members)], true
}

// Missing picks the node for the next member of a slice that has fewer members
// than its policy asks for, the nearer by measurement of two that are as good
// otherwise, where there is a probe. Members on nodes that are drained do not
// count. It returns false where nothing is missing, or where no node can take a
// replica.
func Missing(row *geoconfig.SliceRow, candidates []Candidate, apart Distance, probe Probe) (ids.Node, bool) {
	var members []ids.Node
	for _, m := range row.Members {
		if !leaves(candidates, m.Node) {
			members = append(members, m.Node)
		}
	}
	if len(members) >= row.Policy.Level {
		return "", false
	}
	return lasting(row.Active, candidates, apart, probe, func(c []Candidate, apart Distance) (ids.Node, bool) {
		return oneMore(row.Policy, c, members, row.Active, apart)
	})
}

// leaves reports whether a node is drained.
func leaves(candidates []Candidate, id ids.Node) bool {
	return slices.ContainsFunc(candidates, func(c Candidate) bool { return c.Node == id && c.Leaving })
}

// Domains numbers the failure domains of nodes: those of one site fail together
// unless one measured the other far away, and so do those of which one measured
// the other under a millisecond away, whatever sites they name.
func Domains(nodes []geoconfig.Node) map[ids.Node]int {
	domain := make(map[ids.Node]int, len(nodes))
	at := make(map[ids.Node]geoconfig.Node, len(nodes))
	for _, n := range nodes {
		at[n.ID] = n
	}
	together := func(a, b geoconfig.Node) bool {
		if a.Site == b.Site {
			return !slices.Contains(a.Apart, b.ID) && !slices.Contains(b.Apart, a.ID)
		}
		return slices.Contains(a.Together, b.ID) || slices.Contains(b.Together, a.ID)
	}
	next := 0
	for _, n := range nodes {
		if _, done := domain[n.ID]; done {
			continue
		}
		next++
		for open := []ids.Node{n.ID}; len(open) > 0; open = open[1:] {
			if _, done := domain[open[0]]; done {
				continue
			}
			domain[open[0]] = next
			for _, o := range nodes {
				if _, done := domain[o.ID]; !done && together(at[open[0]], o) {
					open = append(open, o.ID)
				}
			}
		}
	}
	return domain
}

func nextMember(candidates []Candidate, taken map[ids.Node]bool, perSite map[ids.Site]int, home ids.Site, spread int) (Candidate, bool) {
	var open []Candidate
	used := 0
	for _, n := range perSite {
		if n > 0 {
			used++
		}
	}
	for _, c := range candidates {
		fresh := perSite[c.Site] == 0
		if !c.Leaving && !taken[c.Node] && (used < spread && fresh || used >= spread && !fresh) {
			open = append(open, c)
		}
	}
	if !slices.ContainsFunc(open, func(c Candidate) bool { return !c.Away && !c.Silent && !c.Full }) {
		// No node with room answers where the policy wants one: any other is better than
		// none, and a slice with a member whose disk is full takes no content.
		for _, c := range candidates {
			if !c.Leaving && !taken[c.Node] {
				open = append(open, c)
			}
		}
	}
	inDomain, strangers := map[int]int{}, map[ids.Node]int{}
	for _, c := range candidates {
		if taken[c.Node] {
			inDomain[c.Domain]++
		}
	}
	for _, c := range open {
		strangers[c.Node] = c.shares.strangers(c.Node, taken)
	}
	sort.Slice(open, func(i, j int) bool {
		a, b := open[i], open[j]
		if a.Away != b.Away {
			return b.Away
		}
		if a.Silent != b.Silent {
			return b.Silent
		}
		if a.Full != b.Full {
			return b.Full
		}
		if inDomain[a.Domain] != inDomain[b.Domain] {
			return inDomain[a.Domain] < inDomain[b.Domain]
		}
		if perSite[a.Site] != perSite[b.Site] {
			return perSite[a.Site] < perSite[b.Site]
		}
		if (a.Site == home) != (b.Site == home) {
			return a.Site == home
		}
		if a.crowded() != b.crowded() {
			return a.crowded() < b.crowded()
		}
		if step(a.RTT) != step(b.RTT) {
			return step(a.RTT) < step(b.RTT)
		}
		if strangers[a.Node] != strangers[b.Node] {
			return strangers[a.Node] < strangers[b.Node]
		}
		return less(a, b)
	})
	if len(open) == 0 || open[0].Away {
		return Candidate{}, false
	}
	return open[0], true
}

// Open returns the open slice of equal policy whose active is the given node,
// the one with the highest ID where there are several.
func Open(rows []geoconfig.SliceRow, p geoconfig.Policy, node ids.Node) (ids.Slice, bool) {
	var best ids.Slice
	for i := range rows {
		r := &rows[i]
		if r.Active == node && !r.Closed && r.ID > best && r.Policy.Equal(p) {
			best = r.ID
		}
	}
	return best, best != 0
}
