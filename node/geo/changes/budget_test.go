package changes_test

import (
	"reflect"
	"strings"
	"testing"
	"time"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/geo-config/inmem"
	"cartwheel.dev/geo-config/version"
	"cartwheel.dev/node/geo/changes"
)

// found returns a store with three sites, of a cluster of a feature level.
func found(t *testing.T, feature int) *inmem.Store {
	t.Helper()
	store := inmem.New()
	_, err := store.Apply(t.Context(), geoconfig.Batch{Key: "found", Cluster: &geoconfig.Cluster{ID: "c", Feature: feature},
		Sites: []geoconfig.Site{{Name: "bonn", Location: "Rhine"}, {Name: "oslo"}, {Name: "rome"}}})
	if err != nil {
		t.Fatal(err)
	}
	return store
}

func order() changes.Order { return changes.Order{Who: "ann", At: time.Unix(9, 0)} }

func terms(mbit int64) geoconfig.Budget {
	return geoconfig.Budget{Rate: mbit * 1e6, Shares: geoconfig.DefaultShares()}
}

func sites(t *testing.T, store *inmem.Store) []geoconfig.Site {
	t.Helper()
	rows, err := store.Read(t.Context(), geoconfig.Query{Sites: true})
	if err != nil {
		t.Fatal(err)
	}
	return rows.Sites
}

func set(t *testing.T, store *inmem.Store, one, other ids.Site, b geoconfig.Budget) {
	t.Helper()
	if _, err := changes.SetBudget(t.Context(), store, order(), one, other, b, false); err != nil {
		t.Fatal(err)
	}
}

func TestSetBudget_HoldsForAPairEitherWayRound(t *testing.T) {
	store := found(t, version.Budgets)
	set(t, store, "rome", "bonn", terms(20))
	set(t, store, "bonn", "oslo", terms(30))
	set(t, store, "bonn", "rome", terms(40)) // in place of the first
	var got []string
	for _, p := range changes.Budgets(sites(t, store)) {
		got = append(got, string(p.Site)+" "+string(p.Other)+" "+changes.RateText(p.Rate))
	}
	if want := []string{"bonn oslo 30 Mbit/s", "bonn rome 40 Mbit/s"}; !reflect.DeepEqual(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if rows := sites(t, store); rows[0].Location != "Rhine" {
		t.Errorf("the row lost its location: %+v", rows[0])
	}
	if b, ok := changes.BudgetOf(sites(t, store), "rome", "bonn"); !ok || b.Rate != 40e6 {
		t.Errorf("got %+v %v", b, ok)
	}
	if _, ok := changes.BudgetOf(sites(t, store), "rome", "oslo"); ok {
		t.Error("oslo and rome have a budget that nobody set")
	}
}

func TestSetBudget_IsAudited(t *testing.T) {
	store := found(t, version.Budgets)
	b := terms(20)
	b.Hours = &geoconfig.Hours{From: 8 * 60, Until: 18*60 + 30, Zone: "Europe/Oslo"}
	set(t, store, "oslo", "rome", b)
	if _, err := changes.RemoveBudget(t.Context(), store, order(), "rome", "oslo", false); err != nil {
		t.Fatal(err)
	}
	rows, err := store.Read(t.Context(), geoconfig.Query{Audit: 10})
	if err != nil || len(rows.Audit) != 2 {
		t.Fatalf("%v, %+v", err, rows.Audit)
	}
	r := rows.Audit[1]
	if r.Who != "ann" || r.Action != "budget.set" || r.Subject != "sites/oslo" ||
		r.Detail != "with rome: rate 20 Mbit/s, hours 08:00-18:30 Europe/Oslo, outside unlimited, replication 10%, repair 5%, rebalancing 2%" {
		t.Errorf("got %+v", r)
	}
	if r := rows.Audit[0]; r.Action != "budget.remove" || r.Detail != "with rome" {
		t.Errorf("got %+v", r)
	}
}

func TestSetBudget_RefusesWhatMakesNoSense(t *testing.T) {
	store := found(t, version.Budgets)
	nowhere := terms(20)
	nowhere.Hours = &geoconfig.Hours{From: 1, Until: 2, Zone: "Europe/Atlantis"}
	for what, c := range map[string]struct {
		one, other ids.Site
		terms      geoconfig.Budget
		kind       fault.Kind
		text       string
	}{
		"a rate of nothing":          {"oslo", "rome", terms(0), fault.Invalid, "cartwheel budget remove"},
		"the same site twice":        {"oslo", "oslo", terms(9), fault.Invalid, "two different sites"},
		"an unknown second site":     {"oslo", "zurich", terms(9), fault.NotFound, "cartwheel site ls"},
		"an unknown first site":      {"aden", "oslo", terms(9), fault.NotFound, "cartwheel site ls"},
		"a zone that nobody knows":   {"oslo", "rome", nowhere, fault.Invalid, "no time zone"},
		"less than an answer's rate": {"oslo", "rome", geoconfig.Budget{Rate: 10, Shares: geoconfig.DefaultShares()}, fault.Invalid, "1 Mbit/s"},
	} {
		_, err := changes.SetBudget(t.Context(), store, order(), c.one, c.other, c.terms, false)
		if !fault.Is(err, c.kind) || !strings.Contains(err.Error(), c.text) {
			t.Errorf("%s: got %v, want kind %v and %q", what, err, c.kind, c.text)
		}
	}
	if got := changes.Budgets(sites(t, store)); len(got) != 0 {
		t.Errorf("refused budgets are there: %+v", got)
	}
}

func TestSetBudget_WaitsUntilAllNodesKnowBudgets(t *testing.T) {
	store := found(t, version.Budgets-1)
	if _, err := changes.SetBudget(t.Context(), store, order(), "oslo", "rome", terms(9), false); !fault.Is(err, fault.NotSupported) {
		t.Errorf("got %v", err)
	}
}

func TestBudget_DryRunChangesNothing(t *testing.T) {
	store := found(t, version.Budgets)
	if p, err := changes.SetBudget(t.Context(), store, order(), "rome", "oslo", terms(9), true); err != nil || p.Site != "oslo" || p.Other != "rome" {
		t.Errorf("got %+v, %v", p, err)
	}
	if got := changes.Budgets(sites(t, store)); len(got) != 0 {
		t.Errorf("a dry run set %+v", got)
	}
	set(t, store, "rome", "oslo", terms(9))
	if _, err := changes.RemoveBudget(t.Context(), store, order(), "rome", "oslo", true); err != nil {
		t.Error(err)
	}
	if got := changes.Budgets(sites(t, store)); len(got) != 1 {
		t.Errorf("a dry run removed, %+v is left", got)
	}
}

func TestRemoveBudget_SaysThatThereIsNone(t *testing.T) {
	store := found(t, version.Budgets)
	if _, err := changes.RemoveBudget(t.Context(), store, order(), "rome", "oslo", false); !fault.Is(err, fault.NotFound) || !strings.Contains(err.Error(), "budget ls") {
		t.Errorf("got %v", err)
	}
}

func TestSetBudget_OfAnOldRevisionConflicts(t *testing.T) {
	store := found(t, version.Budgets)
	o := order()
	o.Match = sites(t, store)[1].Revision
	set(t, store, "oslo", "rome", terms(9))
	if _, err := changes.SetBudget(t.Context(), store, o, "oslo", "rome", terms(10), false); !fault.Is(err, fault.Conflict) {
		t.Errorf("got %v", err)
	}
}

func TestRemoveSite_TakesItsBudgetsAlong(t *testing.T) {
	store := found(t, version.Budgets)
	set(t, store, "bonn", "rome", terms(20))
	set(t, store, "oslo", "rome", terms(20))
	set(t, store, "bonn", "oslo", terms(20))
	if _, err := changes.RemoveSite(t.Context(), store, order(), "rome"); err != nil {
		t.Fatal(err)
	}
	if got := changes.Budgets(sites(t, store)); len(got) != 1 || got[0].Other != "oslo" {
		t.Errorf("got %+v, want bonn with oslo alone", got)
	}
}
