package placement

import (
	"slices"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/ids"
)

// give says how a slice leaves the node that gives it away: a copy is made first, then
// the node leaves. given is false where no member gives the slice away, or where the
// slice lacks something: then repair and drains come first. With given and without a
// step, the next one is not due yet, or the node may not take it any more.
func give(row *geoconfig.SliceRow, candidates []Candidate) (step Step, given bool) {
	i := slices.IndexFunc(candidates, func(c Candidate) bool {
		_, in := row.Member(c.Node)
		return in && c.Gives.Slice == row.ID
	})
	if i < 0 {
		return Step{}, false
	}
	giver, to := candidates[i].Node, candidates[i].Gives.To
	m, joined := row.Member(to)
	normal := len(row.Normals())
	for _, x := range row.Members {
		if leaves(candidates, x.Node) || x.State != geoconfig.Normal && x.Node != to || x.State == geoconfig.Failed {
			return Step{}, false
		}
	}
	switch {
	case !joined:
		if !slices.ContainsFunc(Takers(row, giver, candidates), func(c Candidate) bool { return c.Node == to }) {
			return Step{}, false // nothing has begun
		}
		return Step{Add: to}, true
	case m.State != geoconfig.Normal || normal <= row.Policy.Level:
		return Step{}, true
	case giver != row.Active:
		return Step{Remove: giver}, true
	}
	next, ok := newGroup(row, candidates).successor(giver)
	return Step{HandOver: next}, ok
}

// Takers lists the nodes that could take a member's place in a slice that has as many
// normal members as its policy asks for, and no others. The policy is met as well as
// before: a node of the same site takes the place, or one of another site where the
// slice then stands at as many sites and is settled, so that it has its copy at home. No
// more members are in one failure domain than before, and the node's disk is at or below
// its low mark.
func Takers(row *geoconfig.SliceRow, giver ids.Node, candidates []Candidate) []Candidate {
	if len(row.Members) != row.Policy.Level || len(row.Normals()) != row.Policy.Level {
		return nil
	}
	i := slices.IndexFunc(candidates, func(c Candidate) bool { return c.Node == giver })
	if _, in := row.Member(giver); !in || i < 0 {
		return nil
	}
	from := candidates[i]
	perSite, inDomain := map[ids.Site]int{}, map[int]int{}
	for _, c := range candidates {
		if _, in := row.Member(c.Node); in && c.Node != giver {
			perSite[c.Site]++
			inDomain[c.Domain]++
		}
	}
	sites := func(with ids.Site) int {
		n := len(perSite)
		if perSite[with] == 0 {
			n++
		}
		return n
	}
	var out []Candidate
	for _, c := range candidates {
		_, in := row.Member(c.Node)
		able := !in && !c.Away && !c.Silent && !c.Leaving && !c.Filling && !c.High && !c.Full
		if !able || sites(c.Site) != sites(from.Site) || inDomain[c.Domain] > inDomain[from.Domain] {
			continue
		}
		if c.Site == from.Site || rests(row, giver, c.Node, candidates) {
			out = append(out, c)
		}
	}
	return out
}

// rests reports whether nothing more is to be done about a slice once one node has taken
// another one's place. Otherwise the copy might have to come back.
func rests(row *geoconfig.SliceRow, giver, to ids.Node, candidates []Candidate) bool {
	next, plain := row.Clone(), slices.Clone(candidates)
	for i := range next.Members {
		if next.Members[i].Node == giver {
			next.Members[i].Node = to
		}
	}
	if next.Active == giver {
		next.Active = to
	}
	for i := range plain {
		plain[i].Gives = geoconfig.Giving{}
	}
	return Next(&next, plain, nil, nil) == Step{}
}
