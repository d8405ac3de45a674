// Package audit finds nodes that are not where their operators say: nodes of
// different sites so near to each other that they fail together, and nodes of
// one site that are far apart. It is pure: it judges what was measured and asks
// nobody. All of it may be called from anywhere.
package audit

import (
	"cmp"
	"slices"
	"time"

	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/protocol/status"
)

// Limits say what is suspicious.
type Limits struct {
	// Together: nodes of different sites that are nearer are one failure domain.
	Together time.Duration
	// Spread: nodes of one site that are farther apart are not at one site.
	Spread time.Duration
	// Samples is how many measurements it takes to judge.
	Samples int
	// Fresh is how old the newest of them may be.
	Fresh time.Duration
}

// DefaultLimits suit sites that are cities: light goes 100 km and back in a
// millisecond.
func DefaultLimits() Limits {
	return Limits{Together: time.Millisecond, Spread: 10 * time.Millisecond, Samples: 5, Fresh: 10 * time.Minute}
}

// Sight is what one node measured of another.
type Sight struct {
	Node    ids.Node
	Site    ids.Site
	Least   time.Duration // of the samples
	Samples int
	Age     time.Duration // of the newest
}

// Find returns what is wrong with the places of a node and of those that it
// measured, by kind and node. What was found before stays until it is wrong by
// a quarter no more, so that nothing comes and goes at the limit.
func Find(self ids.Node, site ids.Site, sights []Sight, l Limits, before []status.Finding) []status.Finding {
	var out []status.Finding
	for _, s := range sights {
		if s.Samples < l.Samples || s.Age > l.Fresh || s.Node == self {
			continue
		}
		kind := status.SitesTogether
		if s.Site == site {
			kind = status.SiteApart
		}
		was := slices.ContainsFunc(before, func(f status.Finding) bool { return f.Kind == kind && f.Other == s.Node })
		if !l.suspicious(kind, s.Least, was) {
			continue
		}
		out = append(out, status.Finding{
			Kind: kind, Node: self, Site: site, Other: s.Node, OtherSite: s.Site, LeastNS: s.Least, Samples: s.Samples, AgeNS: s.Age,
		})
	}
	slices.SortFunc(out, func(a, b status.Finding) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Other, b.Other))
	})
	return out
}

func (l Limits) suspicious(kind status.FindingKind, least time.Duration, was bool) bool {
	if kind == status.SitesTogether {
		limit := l.Together
		if was {
			limit += limit / 4
		}
		return least < limit
	}
	limit := l.Spread
	if was {
		limit -= limit / 4
	}
	return least > limit
}

// Changes compares two findings and returns what is new and what is over.
func Changes(before, now []status.Finding) (begun, over []status.Finding) {
	missing := func(list []status.Finding, f status.Finding) bool {
		return !slices.ContainsFunc(list, func(g status.Finding) bool { return g.Kind == f.Kind && g.Other == f.Other })
	}
	for _, f := range now {
		if missing(before, f) {
			begun = append(begun, f)
		}
	}
	for _, f := range before {
		if missing(now, f) {
			over = append(over, f)
		}
	}
	return begun, over
}
