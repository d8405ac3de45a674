package changes_test

import (
	"testing"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/version"
	"cartwheel.dev/node/geo/changes"
)

func TestSetBalance_ChangesWhatItNamesAndTellsWho(t *testing.T) {
	store := found(t, version.Feature)
	set := func(c changes.BalanceChange) geoconfig.Balance {
		t.Helper()
		b, err := changes.SetBalance(t.Context(), store, order(), "oslo", c)
		if err != nil {
			t.Fatal(err)
		}
		if got := sites(t, store)[1].Marks(); got != b {
			t.Errorf("returned %+v, and the row has %+v", b, got)
		}
		return b
	}
	if got := set(changes.BalanceChange{High: new(70), Low: new(60)}); got != (geoconfig.Balance{High: 70, Low: 60}) {
		t.Errorf("got %+v", got)
	}
	if got := set(changes.BalanceChange{Off: new(true)}); got != (geoconfig.Balance{Off: true, High: 70, Low: 60}) {
		t.Errorf("got %+v once it is off, want the marks kept", got)
	}
	set(changes.BalanceChange{Off: new(true)}) // as it is
	rows, err := store.Read(t.Context(), geoconfig.Query{Audit: 10})
	if err != nil || len(rows.Audit) != 2 {
		t.Fatalf("got %+v, %v, want two records", rows.Audit, err)
	}
	if r := rows.Audit[0]; r.Who != "ann" || r.Action != "balance.set" || r.Subject != "sites/oslo" || r.Detail != "off (from above 70% down to 60%)" {
		t.Errorf("got %+v", r)
	}
	if got := sites(t, store)[0]; got.Balance != nil || got.Location != "Rhine" {
		t.Errorf("another site changed: %+v", got)
	}
}

func TestSetBalance_RefusesMarksThatMakeNoSense(t *testing.T) {
	store := found(t, version.Feature)
	for _, c := range []changes.BalanceChange{{High: new(100)}, {Low: new(0)}, {Low: new(84)}, {High: new(79)}} {
		if _, err := changes.SetBalance(t.Context(), store, order(), "oslo", c); !fault.Is(err, fault.Invalid) {
			t.Errorf("%+v: got %v, want Invalid", c, err)
		}
	}
	if _, err := changes.SetBalance(t.Context(), store, order(), "nowhere", changes.BalanceChange{}); !fault.Is(err, fault.NotFound) {
		t.Errorf("got %v for a site that is not there", err)
	}
}
