package drill_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/geo-config/inmem"
	"cartwheel.dev/node/drill"
)

// newStore returns a store with a cluster.
func newStore(t *testing.T) *inmem.Store {
	t.Helper()
	s := inmem.New()
	if _, err := s.Apply(t.Context(), geoconfig.Batch{Key: "cluster", Cluster: &geoconfig.Cluster{ID: "test", Generation: 1}}); err != nil {
		t.Fatal(err)
	}
	return s
}

// keys names batches apart.
func keys() func(string) string {
	n := 0
	return func(kind string) string { n++; return fmt.Sprint(kind, n) }
}

func TestHistory_KeepsTheNewest(t *testing.T) {
	s, key := newStore(t), keys()
	for i := range drill.Kept + 3 {
		r := drill.Record{ID: fmt.Sprintf("2026-%04d", i), Kind: drill.Cut, Site: "paris", By: "ann", AtNS: int64(i), WritePauseMS: int64(i)}
		for range 2 { // the second one changes nothing
			if err := drill.Add(t.Context(), s, key, r); err != nil {
				t.Fatal(err)
			}
		}
	}
	list, err := drill.Read(t.Context(), s)
	if err != nil || len(list) != drill.Kept || list[0].ID != "2026-0003" || list[drill.Kept-1].WritePauseMS != drill.Kept+2 {
		t.Errorf("got %d drills, %v, want the newest %d, the oldest first", len(list), err, drill.Kept)
	}
	rows, err := s.Read(t.Context(), geoconfig.Query{Audit: 1000})
	if err != nil || len(rows.Audit) != drill.Kept+3 || rows.Audit[0].Who != "ann" || rows.Audit[0].Action != "drill.end" {
		t.Errorf("got %d audit records, %v, want one for each drill", len(rows.Audit), err)
	}
}

// crowded is a store in which another drill was added just before each change.
type crowded struct {
	*inmem.Store
	left int
	key  func(string) string
}

func (c *crowded) Apply(ctx context.Context, b geoconfig.Batch) (ids.Revision, error) {
	if c.left > 0 {
		c.left--
		other := drill.Record{ID: fmt.Sprint("2027-", c.left), By: "bob"}
		if err := drill.Add(ctx, c.Store, c.key, other); err != nil {
			return 0, err
		}
	}
	return c.Store.Apply(ctx, b)
}

// TestHistory_AddsBesideOthers has others add drills meanwhile, so that both take the same
// oldest one away: it begins anew, a bounded number of times.
func TestHistory_AddsBesideOthers(t *testing.T) {
	for _, x := range []struct {
		others int
		want   fault.Kind
	}{{2, fault.None}, {100, fault.Conflict}} {
		s, key := newStore(t), keys()
		for i := range drill.Kept {
			if err := drill.Add(t.Context(), s, key, drill.Record{ID: fmt.Sprintf("2026-%04d", i), By: "ann"}); err != nil {
				t.Fatal(err)
			}
		}
		err := drill.Add(t.Context(), &crowded{s, x.others, key}, key, drill.Record{ID: "2028", By: "ann"})
		if fault.KindOf(err) != x.want {
			t.Errorf("beside %d others: got %v, want %v", x.others, err, x.want)
		}
		if list, err := drill.Read(t.Context(), s); err != nil || len(list) != drill.Kept {
			t.Errorf("got %d drills, %v, want %d", len(list), err, drill.Kept)
		}
	}
}

func TestHistory_RefusesNewerForms(t *testing.T) {
	for form, want := range map[int]fault.Kind{1: fault.Corrupt, 2: fault.NewerVersion} {
		s := newStore(t)
		r := geoconfig.Record{Kind: "drill", Name: "x", Form: form, Body: []byte(`{"id":"y"}`)}
		if _, err := s.Apply(t.Context(), geoconfig.Batch{Key: "x", Records: []geoconfig.Record{r}}); err != nil {
			t.Fatal(err)
		}
		if _, err := drill.Read(t.Context(), s); !fault.Is(err, want) {
			t.Errorf("form %d: got %v, want %v", form, err, want)
		}
	}
}

func TestCheck_RefusesWhatMakesNoSense(t *testing.T) {
	good := drill.Plan{ID: "x", Kind: drill.KillActive, Node: "n", For: time.Second}
	if err := good.Check(); err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(*drill.Plan){
		"no ID": func(p *drill.Plan) { p.ID = "" }, "no time": func(p *drill.Plan) { p.For = 0 }, "too long": func(p *drill.Plan) { p.For = drill.Longest + 1 },
		"no node": func(p *drill.Plan) { p.Node = "" }, "a site, too": func(p *drill.Plan) { p.Site = "paris" },
		"a cut without a site": func(p *drill.Plan) { p.Kind = drill.Cut }, "geo-config and a node": func(p *drill.Plan) { p.Kind = drill.GeoConfig },
		"an unknown kind": func(p *drill.Plan) { p.Kind = "flood" },
	} {
		p := good
		change(&p)
		if p.Check() == nil {
			t.Errorf("%s: it is not refused", name)
		}
	}
}
