package placement

import (
	"slices"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/ids"
)

// Step is the next thing that an active does about the members of a slice. At most
// one field is set; none: the members are as they should be, or nothing can be
// done now.
type Step struct {
	// Add is a node that becomes a member. Remove is a member that leaves.
	Add, Remove ids.Node
	// HandOver is the member that becomes the active.
	HandOver ids.Node
}

// Next says how a slice comes nearer to its policy, and away from nodes that are
// drained. A copy is made before another one leaves: a member leaves only where
// as many normal members stay as the policy asks for. Members that failed are
// not replaced here, since only time shows whether they come back. A node that is
// added is measured before, where there is a probe. A slice that lacks nothing also
// leaves the node that gives it away.
func Next(row *geoconfig.SliceRow, candidates []Candidate, apart Distance, probe Probe) Step {
	if step, given := give(row, candidates); given {
		return step
	}
	g := newGroup(row, candidates)
	if leaves(candidates, row.Active) {
		if to, ok := g.successor(row.Active); ok {
			return Step{HandOver: to}
		}
	}
	if add, ok := Missing(row, candidates, apart, probe); ok {
		return Step{Add: add}
	}
	if len(g.normal) < row.Policy.Level {
		return Step{}
	}
	for _, m := range row.Members {
		if leaves(candidates, m.Node) && m.Node != row.Active {
			return Step{Remove: m.Node}
		}
	}
	if len(g.staying) == row.Policy.Level && len(g.normal) == len(g.staying) {
		add, ok := lasting(row.Active, candidates, apart, probe, func(c []Candidate, apart Distance) (ids.Node, bool) {
			return newGroup(row, c).misplaced(apart)
		})
		if ok {
			return Step{Add: add}
		}
	}
	return g.surplus()
}

// group is a slice's members, as far as they stay. It is for one decision.
type group struct {
	row        *geoconfig.SliceRow
	candidates []Candidate
	staying    []Candidate // members on nodes that are not drained
	normal     []Candidate // those of them that are normal
	junior     bool        // one of them is catching up
	failed     ids.Node    // one of them that failed, if any
}

func newGroup(row *geoconfig.SliceRow, candidates []Candidate) *group {
	g := &group{row: row, candidates: candidates}
	for _, m := range row.Members {
		i := slices.IndexFunc(candidates, func(c Candidate) bool { return c.Node == m.Node })
		if i < 0 || candidates[i].Leaving {
			continue
		}
		g.staying = append(g.staying, candidates[i])
		switch {
		case m.State == geoconfig.Normal:
			g.normal = append(g.normal, candidates[i])
		case m.State.Junior():
			g.junior = true
		default:
			g.failed = m.Node
		}
	}
	return g
}

// successor picks the member that becomes the active: one at the home site before
// the others, then the least loaded.
func (g *group) successor(instead ids.Node) (ids.Node, bool) {
	var best *Candidate
	for i := range g.normal {
		c := &g.normal[i]
		if c.Node == instead || c.Away {
			continue
		}
		home := c.Site == g.row.Policy.Home
		if best == nil || home && best.Site != g.row.Policy.Home || home == (best.Site == g.row.Policy.Home) && less(*c, *best) {
			best = c
		}
	}
	if best == nil {
		return "", false
	}
	return best.Node, true
}

// misplaced picks a node for one member more, where there are enough and they
// stand at the wrong sites: none at home, or at fewer or more sites than the
// policy names. One of the others is surplus then.
func (g *group) misplaced(apart Distance) (ids.Node, bool) {
	p, members := g.row.Policy, g.perSite()
	sites := p.WantedSites()
	if home, ok := g.able(func(c Candidate) bool { return c.Site == p.Home }); ok && members[p.Home] == 0 {
		return home.Node, true
	}
	if len(members) < sites {
		var in []ids.Node
		for _, c := range g.staying {
			in = append(in, c.Node)
		}
		p.Level, p.Sites = p.Level+1, sites
		all := Extend(p, g.candidates, in, g.row.Active, apart)
		next := all[len(all)-1]
		i := slices.IndexFunc(g.candidates, func(c Candidate) bool { return c.Node == next })
		return next, len(all) > len(in) && i >= 0 && members[g.candidates[i].Site] == 0
	}
	if kept := g.keptSites(); len(members) > sites {
		c, ok := g.able(func(c Candidate) bool { return slices.Contains(kept, c.Site) })
		return c.Node, ok
	}
	return "", false
}

// able picks the least loaded node that could become a member.
func (g *group) able(fits func(Candidate) bool) (Candidate, bool) {
	var best Candidate
	for _, c := range g.candidates {
		_, in := g.row.Member(c.Node)
		if !in && !c.Away && !c.Leaving && fits(c) && (best.Node == "" || less(c, best)) {
			best = c
		}
	}
	return best, best.Node != ""
}

// perSite counts the members that stay, by site.
func (g *group) perSite() map[ids.Site]int {
	out := map[ids.Site]int{}
	for _, c := range g.staying {
		out[c.Site]++
	}
	return out
}

// keptSites lists the sites at which members stay, as many as the policy names:
// the home site, and then those with the most members.
func (g *group) keptSites() []ids.Site {
	members := g.perSite()
	var out []ids.Site
	for site := range members {
		out = append(out, site)
	}
	slices.SortFunc(out, func(a, b ids.Site) int {
		switch {
		case a == b:
			return 0
		case a == g.row.Policy.Home || b != g.row.Policy.Home && (members[a] > members[b] || members[a] == members[b] && a < b):
			return -1
		}
		return 1
	})
	return out[:min(g.row.Policy.WantedSites(), len(out))]
}

// surplus says which member leaves where there are more than the policy asks for:
// one that failed, else one at a site beyond the policy's number, else one at the
// site with the most, of those the one with the fullest disk or the most load. The last one at home
// stays. Nobody leaves while a member catches up: that one may be about to
// take another's place.
func (g *group) surplus() Step {
	if len(g.staying) <= g.row.Policy.Level || g.junior {
		return Step{}
	}
	if g.failed != "" {
		return Step{Remove: g.failed}
	}
	members, kept := g.perSite(), g.keptSites()
	var victim *Candidate
	for i := range g.normal {
		c := &g.normal[i]
		if c.Site == g.row.Policy.Home && members[c.Site] == 1 {
			continue
		}
		if victim == nil || g.goesBefore(c, victim, members, kept) {
			victim = c
		}
	}
	switch {
	case victim == nil:
		return Step{}
	case victim.Node != g.row.Active:
		return Step{Remove: victim.Node}
	}
	to, _ := g.successor(victim.Node)
	return Step{HandOver: to}
}

// goesBefore orders the members that could leave. The active stays where another
// one will do.
func (g *group) goesBefore(a, b *Candidate, members map[ids.Site]int, kept []ids.Site) bool {
	if x, y := slices.Contains(kept, a.Site), slices.Contains(kept, b.Site); x != y {
		return y
	}
	if members[a.Site] != members[b.Site] {
		return members[a.Site] > members[b.Site]
	}
	if (a.Node == g.row.Active) != (b.Node == g.row.Active) {
		return b.Node == g.row.Active
	}
	return less(*b, *a)
}
