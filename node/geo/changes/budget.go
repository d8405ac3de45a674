package changes

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/geo-config/version"
)

// Pair is a budget with both of its sites. Budget.Other is the second one.
type Pair struct {
	Site ids.Site `json:"site"`
	geoconfig.Budget
}

// BudgetOf returns the budget between two sites, which may be given either way
// round; false: there is none.
func BudgetOf(sites []geoconfig.Site, one, other ids.Site) (geoconfig.Budget, bool) {
	one, other = min(one, other), max(one, other)
	for _, s := range sites {
		for _, b := range s.Budgets {
			if s.Name == one && b.Other == other {
				return b, true
			}
		}
	}
	return geoconfig.Budget{}, false
}

// Budgets lists all budgets, in the order of their sites.
func Budgets(sites []geoconfig.Site) []Pair {
	out := []Pair{}
	for _, s := range sites {
		for _, b := range s.Budgets {
			out = append(out, Pair{s.Name, b})
		}
	}
	slices.SortFunc(out, func(a, b Pair) int { return cmp.Or(cmp.Compare(a.Site, b.Site), cmp.Compare(a.Other, b.Other)) })
	return out
}

// SetBudget gives a pair of sites a budget, in place of the one that it has, and
// returns it with its sites. With dryRun it only checks. Errors: Invalid (what makes
// no sense), NotFound (a site), NotSupported (a node's program is too old to keep
// to it), Conflict, and the store's.
func SetBudget(ctx context.Context, store geoconfig.Store, o Order, one, other ids.Site, terms geoconfig.Budget, dryRun bool) (Pair, error) {
	const op fault.Op = "changes.SetBudget"
	p := Pair{Site: min(one, other), Budget: terms}
	p.Other = max(one, other)
	if wrong := p.Check(p.Site); wrong != "" {
		return p, fault.E(fault.Invalid, op, pairName(one, other), wrong)
	}
	if h := p.Hours; h != nil {
		if _, err := time.LoadLocation(h.Zone); err != nil {
			return p, fault.Errorf(fault.Invalid, op, h.Zone, "is no time zone that is known: take a name such as Europe/Oslo, or leave it out for UTC")
		}
	}
	row, err := pairRow(ctx, store, p.Site, p.Other)
	if err != nil || dryRun {
		return p, err
	}
	i, found := slices.BinarySearchFunc(row.Budgets, p.Other, byOther)
	if found {
		row.Budgets[i] = p.Budget
	} else {
		row.Budgets = slices.Insert(row.Budgets, i, p.Budget)
	}
	row.Revision = o.match(row.Revision)
	return p, o.apply(ctx, store, geoconfig.Batch{Sites: []geoconfig.Site{row}}, "budget.set", row.Key(), fmt.Sprintf("with %s: %s", p.Other, p.Terms()))
}

// pairRow returns the row that holds a pair's budget, once both sites are there and
// all nodes know budgets.
func pairRow(ctx context.Context, store geoconfig.Store, first, second ids.Site) (geoconfig.Site, error) {
	if _, err := site(ctx, store, second); err != nil {
		return geoconfig.Site{}, err
	}
	rows, err := store.Read(ctx, geoconfig.Query{})
	if err != nil {
		return geoconfig.Site{}, err
	}
	if rows.Cluster != nil && rows.Cluster.Feature < version.Budgets {
		return geoconfig.Site{}, fault.Errorf(fault.NotSupported, "changes.SetBudget", string(rows.Cluster.ID),
			"uses features of level %d, and budgets are of level %d: update the nodes of older versions, which `cartwheel status` shows", rows.Cluster.Feature, version.Budgets)
	}
	return site(ctx, store, first)
}

// RemoveBudget takes the budget of a pair of sites away, and returns what it was.
// With dryRun it only looks. Errors: NotFound, Conflict, and the store's.
func RemoveBudget(ctx context.Context, store geoconfig.Store, o Order, one, other ids.Site, dryRun bool) (Pair, error) {
	first, second := min(one, other), max(one, other)
	missing := fault.E(fault.NotFound, "changes.RemoveBudget", pairName(one, other), "have no budget; `cartwheel budget ls` lists those that there are")
	row, err := site(ctx, store, first)
	if err != nil {
		return Pair{}, err
	}
	i, found := slices.BinarySearchFunc(row.Budgets, second, byOther)
	if !found {
		return Pair{}, missing
	}
	p := Pair{first, row.Budgets[i]}
	if dryRun {
		return p, nil
	}
	row.Budgets = slices.Delete(row.Budgets, i, i+1)
	row.Revision = o.match(row.Revision)
	return p, o.apply(ctx, store, geoconfig.Batch{Sites: []geoconfig.Site{row}}, "budget.remove", row.Key(), "with "+string(second))
}

// withoutSite returns the rows of sites that have a budget with one that goes,
// without it.
func withoutSite(sites []geoconfig.Site, gone ids.Site) []geoconfig.Site {
	var out []geoconfig.Site
	for _, s := range sites {
		if i, found := slices.BinarySearchFunc(s.Budgets, gone, byOther); found {
			s.Budgets = slices.Delete(s.Budgets, i, i+1)
			out = append(out, s)
		}
	}
	return out
}

// Terms are a budget's rates, hours and shares, for people.
func (p Pair) Terms() string {
	text := "rate " + RateText(p.Rate)
	if p.Hours != nil {
		text += ", hours " + p.Hours.String() + ", outside " + RateText(p.Outside)
	}
	return fmt.Sprintf("%s, replication %d%%, repair %d%%, rebalancing %d%%", text, p.Shares.Replication, p.Shares.Repair, p.Shares.Rebalancing)
}

// RateText writes a rate of bits per second for people.
func RateText(bits int64) string {
	for _, u := range []struct {
		bits int64
		name string
	}{{1e12, "Tbit/s"}, {1e9, "Gbit/s"}, {1e6, "Mbit/s"}} {
		if bits >= u.bits {
			return fmt.Sprintf("%g %s", float64(bits)/float64(u.bits), u.name)
		}
	}
	return "unlimited"
}

func byOther(b geoconfig.Budget, other ids.Site) int { return cmp.Compare(b.Other, other) }

func pairName(one, other ids.Site) string { return fmt.Sprintf("%s and %s", one, other) }
