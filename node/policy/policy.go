// Package policy changes what a slice must satisfy: it refuses a policy that the
// cluster's nodes cannot fulfil, and writes the others into the slice's row. The
// nodes follow it (node/server/upkeep): they make copies, let surplus ones go, and
// move the active home. Check is pure; Set writes to the store that it is given.
// All of it may be called from anywhere.
package policy

import (
	"context"
	"fmt"
	"slices"
	"strings"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/geo/changes"
)

// Change is what becomes different; nil fields stay.
type Change struct {
	Level *int      `json:"level,omitempty"`
	Sites *int      `json:"sites,omitempty"`
	Home  *ids.Site `json:"home,omitempty"`
}

// Of returns a policy with the change made.
func (c Change) Of(p geoconfig.Policy) geoconfig.Policy {
	if c.Level != nil {
		p.Level = *c.Level
	}
	if c.Sites != nil {
		p.Sites = *c.Sites
	}
	if c.Home != nil {
		p.Home = *c.Home
	}
	return p
}

// opCheck names Check in errors.
const opCheck fault.Op = "policy.Check"

// Check refuses, as Invalid, a policy that the nodes cannot fulfil, with the reason
// and what would help. Nodes that are drained or never started hold no copies.
func Check(p geoconfig.Policy, nodes []geoconfig.Node) error {
	perSite := map[ids.Site]int{}
	able := 0
	for _, n := range nodes {
		if !n.Draining && n.Incarnation != 0 {
			perSite[n.Site]++
			able++
		}
	}
	wrong := func(subject, format string, args ...any) error {
		return fault.Errorf(fault.Invalid, opCheck, subject, format, args...)
	}
	switch {
	case p.Level < 1:
		return wrong("level", "is %d: a slice needs at least one copy", p.Level)
	case p.Level > able:
		return wrong("level", "is %d, and the cluster has %d nodes that can hold a copy each: add nodes, or choose at most %d", p.Level, able, able)
	case p.Sites < 0 || p.Sites > p.Level:
		return wrong("sites", "is %d for %d copies: choose 1 to %d, or 0 for as many as there are", p.Sites, p.Level, p.Level)
	case p.Sites > len(perSite):
		return wrong("sites", "is %d, and nodes stand at %d sites: add a site, or choose at most %d", p.Sites, len(perSite), len(perSite))
	case p.Home != "" && perSite[p.Home] == 0:
		return wrong(string(p.Home), "has no node that can hold a copy: choose a home among %s, or add a node there", names(perSite))
	}
	if p.Sites == 0 {
		return nil
	}
	if most := room(p, perSite); most < p.Level {
		return wrong("sites", "is %d, and the nodes of so many sites, %s among them, can hold %d copies of %d: name more sites, or add nodes there",
			p.Sites, p.Home, most, p.Level)
	}
	return nil
}

// room is how many copies fit at as many sites as the policy names, the home site
// and the largest others.
func room(p geoconfig.Policy, perSite map[ids.Site]int) int {
	var others []int
	for site, n := range perSite {
		if site != p.Home {
			others = append(others, n)
		}
	}
	slices.SortFunc(others, func(a, b int) int { return b - a })
	most, left := 0, p.Sites
	if p.Home != "" {
		most, left = perSite[p.Home], left-1
	}
	for _, n := range others[:min(left, len(others))] {
		most += n
	}
	return most
}

func names(perSite map[ids.Site]int) string {
	var out []string
	for site := range perSite {
		out = append(out, string(site))
	}
	slices.Sort(out)
	return strings.Join(out, ", ")
}

// setTries bounds how often a row is written anew because the slice's members
// changed meanwhile.
const setTries = 10

// Set gives a slice another policy and returns its new row. It changes nothing
// where the policy is that already. Errors: NotFound, Conflict (the row has another
// revision than the order's), those of Check, and those of geoconfig.Store.
func Set(ctx context.Context, store geoconfig.Store, o changes.Order, id ids.Slice, c Change) (geoconfig.SliceRow, error) {
	const op fault.Op = "policy.Set"
	for try := 1; ; try++ {
		rows, err := store.Read(ctx, geoconfig.Query{Nodes: true, SliceIDs: []ids.Slice{id}})
		if err != nil {
			return geoconfig.SliceRow{}, err
		}
		if len(rows.Slices) != 1 {
			return geoconfig.SliceRow{}, fault.E(fault.NotFound, op, fmt.Sprint("slice ", id), "is no slice; `cartwheel policy ls` lists them")
		}
		row := rows.Slices[0]
		p := c.Of(row.Policy)
		if p == row.Policy {
			return row, nil
		}
		if err := Check(p, rows.Nodes); err != nil {
			return row, err
		}
		from, stale := row.Epoch, o.Match != 0 && o.Match != row.Revision
		if stale {
			from = row.Epoch + 1 // no row has it: only what was done under the key before goes through
		}
		row.Policy = p
		row.Epoch = from + 1
		rev, err := o.Apply(ctx, store, geoconfig.Batch{Slices: []geoconfig.SliceSwap{{From: from, Row: row}}}, "slice.policy", geoconfig.SliceKey(id),
			fmt.Sprintf("level %d, sites %d, home %s", p.Level, p.Sites, p.Home))
		if err == nil {
			row.Revision = rev
			return row, nil
		}
		if !fault.Is(err, fault.Conflict) || stale || try == setTries {
			return row, err
		}
	}
}
