package availability

import (
	"cmp"
	"slices"
)

// kind is a way in which something goes.
type kind int

const (
	nodeOut kind = iota
	nodeLost
	siteOut
	siteLost
	kinds
)

// isLoss reports whether the data is gone.
func (k kind) isLoss() bool { return k == nodeLost || k == siteLost }

// standing counts the copies that are current and reachable, and what is away, by
// kind. The copies of a site that is away are not counted one by one.
type standing struct {
	up   int
	away [kinds]int
}

func (s standing) plus(o standing) standing {
	s.up += o.up
	for k := range s.away {
		s.away[k] += o.away[k]
	}
	return s
}

// returns reports whether some data that is away comes back.
func (s standing) returns() bool { return s.away[nodeOut]+s.away[siteOut] > 0 }

// entry is one way into waiting: how often a second it is taken, what went last,
// and how the group stands behind it.
type entry struct {
	rate float64
	last kind
	to   standing
}

// shares are the shares of time for which a node or a site is away, by kind.
func (g Group) shares() (up [2]float64, away [kinds]float64) {
	for i, pair := range [2][2]Process{{g.Node, g.NodeLoss}, {g.Site, g.SiteLoss}} {
		out, lost := pair[0].Rate*pair[0].window(), pair[1].Rate*pair[1].window()
		all := 1 + out + lost
		up[i], away[2*i], away[2*i+1] = 1/all, out/all, lost/all
	}
	return up, away
}

// state is how a group stands for a share of the time.
type state struct {
	standing
	share float64
}

// siteStates are the states of one site with n copies, with their shares of time.
func (g Group) siteStates(n int) []state {
	up, away := g.shares()
	var out []state
	add := func(s standing, share float64) {
		if share > 0 {
			out = append(out, state{s, share})
		}
	}
	for _, k := range []kind{siteOut, siteLost} {
		s := standing{}
		s.away[k] = 1
		add(s, away[k])
	}
	for isOut := 0; isOut <= n; isOut++ {
		for lost := 0; isOut+lost <= n; lost++ {
			s := standing{up: n - isOut - lost}
			s.away[nodeOut], s.away[nodeLost] = isOut, lost
			ways := choose(n, isOut) * choose(n-isOut, lost)
			add(s, up[1]*ways*power(up[0], s.up)*power(away[nodeOut], isOut)*power(away[nodeLost], lost))
		}
	}
	return out
}

// combine joins independent states, in an order that is always the same, so that
// sums are.
func combine(a, b []state) []state {
	shares := map[standing]float64{}
	for _, x := range a {
		for _, y := range b {
			shares[x.plus(y.standing)] += x.share * y.share
		}
	}
	var out []state
	for s, share := range shares {
		out = append(out, state{s, share})
	}
	slices.SortFunc(out, func(x, y state) int { return cmp.Or(cmp.Compare(x.up, y.up), slices.Compare(x.away[:], y.away[:])) })
	return out
}

// entries are all ways by which a group comes to have fewer than needed copies.
// Each term is a product of positive numbers, so rare ones stay exact.
func (g Group) entries(needed int) []entry {
	var out []entry
	alike := map[int]float64{} // sites by their number of copies
	for _, n := range g.Layout {
		alike[n]++
	}
	for i, n := range g.Layout {
		if slices.Index(g.Layout, n) != i {
			continue // the first of its like stands for all
		}
		others := []state{{share: 1}}
		for j, m := range g.Layout {
			if j != i {
				others = combine(others, g.siteStates(m))
			}
		}
		for _, own := range g.siteStates(n) {
			if own.away[siteOut]+own.away[siteLost] > 0 {
				continue // it cannot go again
			}
			for _, rest := range others {
				out = append(out, g.from(own.standing, rest.standing, own.share*rest.share*alike[n], needed)...)
			}
		}
	}
	return out
}

// from are the entries from one state, by what goes at one site or with it.
func (g Group) from(own, rest standing, share float64, needed int) []entry {
	var out []entry
	all := own.plus(rest)
	if all.up < needed {
		return nil
	}
	add := func(last kind, rate float64, to standing) {
		if to.away[last]++; rate > 0 && to.up < needed {
			out = append(out, entry{rate * share, last, to})
		}
	}
	less := all
	less.up--
	add(nodeOut, float64(own.up)*g.Node.Rate, less)
	add(nodeLost, float64(own.up)*g.NodeLoss.Rate, less)
	add(siteOut, g.Site.Rate, rest)
	add(siteLost, g.SiteLoss.Rate, rest)
	return out
}

// waits is for how long a group waits behind an entry, in the mean, in seconds.
// What is away comes back, or a person decides where nothing will.
func (g Group) waits(e entry, needed int) float64 {
	if needed == 1 {
		// Only the last copy is current: the group waits for that one.
		switch e.last {
		case nodeOut:
			return g.Node.Out
		case siteOut:
			return g.Site.Out
		}
		return g.Operator
	}
	rate := 0.0
	for _, x := range []struct {
		n   int
		out float64
	}{{e.to.away[nodeOut], g.Node.Out}, {e.to.away[siteOut], g.Site.Out}} {
		if x.n > 0 && x.out == 0 {
			return 0 // it is back at once
		}
		if x.n > 0 {
			rate += float64(x.n) / x.out
		}
	}
	if rate == 0 {
		return g.Operator
	}
	return 1 / rate
}

// choose is the number of ways to take k of n.
func choose(n, k int) float64 {
	v := 1.0
	for i := range k {
		v = v * float64(n-i) / float64(i+1)
	}
	return v
}

// power is x to a whole number.
func power(x float64, n int) float64 {
	v := 1.0
	for range n {
		v *= x
	}
	return v
}
