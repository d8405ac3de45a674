package conformance

import (
	"reflect"
	"strings"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
)

// budget is one between oslo and paris.
func budget() geoconfig.Budget {
	return geoconfig.Budget{Other: "paris", Rate: 20_000_000, Hours: &geoconfig.Hours{From: 480, Until: 1080, Zone: "Europe/Oslo"},
		Outside: 100_000_000, Shares: geoconfig.DefaultShares()}
}

// testBudgets sets budgets, reads them, follows them and takes them away.
func testBudgets(f *fixture) {
	rev := f.seed()
	oslo := geoconfig.Site{Name: "oslo", Location: "somewhere", Revision: rev,
		Budgets: []geoconfig.Budget{budget(), {Other: "tokyo", Rate: geoconfig.LeastRate, Shares: geoconfig.DefaultShares()}}}
	oslo.Revision = f.apply(geoconfig.Batch{Sites: []geoconfig.Site{oslo}})
	if got := f.read(geoconfig.Query{Sites: true}).Sites[0]; !reflect.DeepEqual(got, oslo) {
		f.Errorf("got %+v, want %+v", got, oslo)
	}
	if got := f.follow(rev, 0).Sites; len(got) != 1 || !reflect.DeepEqual(got[0], oslo) {
		f.Errorf("followers got %+v, want %+v", got, oslo)
	}
	stale := oslo
	stale.Budgets, stale.Revision = nil, rev
	f.refuse(fault.Conflict, "sites/oslo", geoconfig.Batch{Sites: []geoconfig.Site{stale}})
	oslo.Budgets = nil
	f.apply(geoconfig.Batch{Sites: []geoconfig.Site{oslo}})
	if got := f.read(geoconfig.Query{Sites: true}).Sites[0]; got.Budgets != nil {
		f.Errorf("%+v stayed", got.Budgets)
	}
}

// testBudgetValidation tries budgets that make no sense.
func testBudgetValidation(f *fixture) {
	rev := f.seed()
	refuse := func(what string, budgets ...geoconfig.Budget) {
		f.Log(what)
		f.refuse(fault.Invalid, "sites/oslo", geoconfig.Batch{Sites: []geoconfig.Site{{Name: "oslo", Revision: rev, Budgets: budgets}}})
	}
	for what, change := range map[string]func(*geoconfig.Budget){
		"the same site":                func(b *geoconfig.Budget) { b.Other = "oslo" },
		"a site that comes first":      func(b *geoconfig.Budget) { b.Other = "bonn" },
		"no site's name":               func(b *geoconfig.Budget) { b.Other = "a b" },
		"a rate of nothing":            func(b *geoconfig.Budget) { b.Rate = 0 },
		"too low a rate":               func(b *geoconfig.Budget) { b.Rate = geoconfig.LeastRate - 1 },
		"too high a rate":              func(b *geoconfig.Budget) { b.Rate = geoconfig.MostRate + 1 },
		"too low a rate outside":       func(b *geoconfig.Budget) { b.Outside = 1 },
		"a rate outside of always":     func(b *geoconfig.Budget) { b.Hours = nil },
		"hours before midnight":        func(b *geoconfig.Budget) { b.Hours.From = -1 },
		"hours after midnight":         func(b *geoconfig.Budget) { b.Hours.Until = 24 * 60 },
		"hours that end as they begin": func(b *geoconfig.Budget) { b.Hours.From = b.Hours.Until },
		"a zone that is too long":      func(b *geoconfig.Budget) { b.Hours.Zone = strings.Repeat("z", 65) },
		"a class with no share":        func(b *geoconfig.Budget) { b.Shares.Repair = 0 },
		"shares of too much":           func(b *geoconfig.Budget) { b.Shares.Repair = geoconfig.MostReserved },
	} {
		b := budget()
		change(&b)
		refuse(what, b)
	}
	refuse("a pair twice", budget(), budget())
	many := make([]geoconfig.Budget, geoconfig.MaxBudgets+1)
	for i := range many {
		many[i] = budget()
		many[i].Other = ids.Site("site-" + string(rune('a'+i/26)) + string(rune('a'+i%26)))
	}
	refuse("too many", many...)
}
