package outage_test

import (
	"context"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/geo-config/inmem"
	"cartwheel.dev/node/drill"
	"cartwheel.dev/node/protocol/method"
	"cartwheel.dev/node/server/outage"
)

// sites are where the peers of these tests stand.
func sites(peer string) ids.Site {
	return map[string]ids.Site{"near": "paris", "far": "tokyo"}[peer]
}

// newStage is that of node "self" at paris, in a bubble of virtual time.
func newStage() *outage.Stage {
	began := time.Now()
	return outage.New(outage.Options{Self: "self", Site: "paris", SiteOf: sites, Recheck: func() {},
		Clock: func() time.Duration { return time.Since(began) }, Logger: slog.New(slog.DiscardHandler)})
}

// play begins a drill, and returns what ends it.
func play(t *testing.T, s *outage.Stage, p drill.Plan) (end func()) {
	t.Helper()
	p.ID, p.For = "test", time.Minute
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _, err := s.Run(ctx, p, method.ClientNumber("commander"))
		if err != nil {
			t.Error(err)
		}
	}()
	synctest.Wait()
	return func() { cancel(); <-done }
}

func TestAdmit_RefusesWhomTheDrillKeepsAway(t *testing.T) {
	for _, x := range []struct {
		name string
		plan drill.Plan
		want map[string]bool // by peer, whether it gets through
		site map[ids.Site]bool
	}{
		{"this node is dead", drill.Plan{Kind: drill.KillActive, Node: "self"},
			map[string]bool{"near": false, "far": false, "nobody": false, "commander": true}, map[ids.Site]bool{"paris": true, "tokyo": true, "": true}},
		{"another node is dead", drill.Plan{Kind: drill.KillActive, Node: "other"},
			map[string]bool{"near": true, "far": true, "nobody": true, "commander": true}, map[ids.Site]bool{"tokyo": true}},
		{"this site is cut off", drill.Plan{Kind: drill.Cut, Site: "paris"},
			map[string]bool{"near": true, "far": false, "nobody": true, "commander": true}, map[ids.Site]bool{"paris": true, "tokyo": false, "": true}},
		{"the other site is cut off", drill.Plan{Kind: drill.Cut, Site: "tokyo"},
			map[string]bool{"near": true, "far": false, "nobody": true, "commander": true}, map[ids.Site]bool{"paris": true, "tokyo": false, "oslo": true, "": true}},
		{"geo-config is away", drill.Plan{Kind: drill.GeoConfig},
			map[string]bool{"near": true, "far": true, "nobody": true}, map[ids.Site]bool{"tokyo": true}},
	} {
		synctest.Test(t, func(t *testing.T) {
			s := newStage()
			end := play(t, s, x.plan)
			for peer, want := range x.want {
				if err := s.Admit(peer); (err == nil) != want {
					t.Errorf("%s: peer %s: got %v, want that it gets through: %v", x.name, peer, err, want)
				}
			}
			for site, want := range x.site {
				if err := s.Greet(site); (err == nil) != want {
					t.Errorf("%s: a client at %q: got %v, want that it gets through: %v", x.name, site, err, want)
				}
			}
			before := time.Now()
			if end(); time.Since(before) > 0 {
				t.Errorf("%s: it went on for %v after its order ended", x.name, time.Since(before))
			}
			for peer := range x.want {
				if err := s.Admit(peer); err != nil {
					t.Errorf("%s: peer %s after the end: %v", x.name, peer, err)
				}
			}
		})
	}
}

func TestRun_EndsByItself(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage()
		lasted, whole, err := s.Run(t.Context(), drill.Plan{ID: "x", Kind: drill.GeoConfig, For: 90 * time.Second}, 1)
		if err != nil || !whole || lasted != 90*time.Second {
			t.Errorf("got %v, %v, %v, want 90 seconds", lasted, whole, err)
		}
		if got := s.Report(); got != nil {
			t.Errorf("got %+v where there is no drill", got)
		}
		end := play(t, s, drill.Plan{Kind: drill.GeoConfig})
		time.Sleep(20 * time.Second)
		if got := s.Report(); got == nil || got.ID != "test" || got.Kind != "geo-config" || got.LeftNS != 40*time.Second {
			t.Errorf("got %+v, want a drill with 40 seconds left", got)
		}
		if _, _, err := s.Run(t.Context(), drill.Plan{ID: "y", Kind: drill.GeoConfig, For: 1}, 1); !fault.Is(err, fault.Busy) || !fault.Is(s.Busy(), fault.Busy) {
			t.Errorf("a second drill: got %v, want busy", err)
		}
		end()
		if err := s.Busy(); err != nil {
			t.Errorf("after the end: %v", err)
		}
	})
}

// TestStore_IsAwayForTheTime follows geo-config through a drill: the call that waits ends,
// others are refused, and afterwards all is as before.
func TestStore_IsAwayForTheTime(t *testing.T) {
	for _, x := range []struct {
		plan drill.Plan
		want fault.Kind
	}{
		{drill.Plan{Kind: drill.GeoConfig}, fault.Unreachable},
		{drill.Plan{Kind: drill.KillActive, Node: "self"}, fault.Unreachable},
		{drill.Plan{Kind: drill.Cut, Site: "paris"}, fault.Unreachable},
		{drill.Plan{Kind: drill.KillActive, Node: "other"}, fault.None},
		{drill.Plan{Kind: drill.Cut, Site: "tokyo"}, fault.None},
	} {
		synctest.Test(t, func(t *testing.T) {
			s, inner := newStage(), inmem.New()
			rev, err := inner.Apply(t.Context(), geoconfig.Batch{Key: "cluster", Cluster: &geoconfig.Cluster{ID: "test", Generation: 1}})
			if err != nil {
				t.Fatal(err)
			}
			store := s.Store(inner)
			followed := make(chan error, 1)
			go func() {
				_, err := store.Follow(t.Context(), rev, 0)
				followed <- err
			}()
			synctest.Wait()
			end := play(t, s, x.plan)
			if _, err := store.Read(t.Context(), geoconfig.Query{}); fault.KindOf(err) != x.want {
				t.Errorf("%s: a read: got %v, want %v", x.plan.Kind, err, x.want)
			}
			if _, _, err := store.Settle(t.Context(), "key"); fault.KindOf(err) != x.want {
				t.Errorf("%s: a settlement: got %v, want %v", x.plan.Kind, err, x.want)
			}
			_, err = store.Apply(t.Context(), geoconfig.Batch{Key: "site", Sites: []geoconfig.Site{{Name: "paris"}}})
			if fault.KindOf(err) != x.want {
				t.Errorf("%s: a change: got %v, want %v", x.plan.Kind, err, x.want)
			}
			if err := <-followed; fault.KindOf(err) != x.want {
				t.Errorf("%s: who followed: got %v, want %v", x.plan.Kind, err, x.want)
			}
			end()
			if _, err := store.Properties(t.Context()); err != nil {
				t.Errorf("%s: after the end: %v", x.plan.Kind, err)
			}
		})
	}
}

// knowing is a store that notes which generation the node obeys.
type knowing struct {
	geoconfig.Store
	floor ids.Generation
}

func (k *knowing) Know(g ids.Generation) { k.floor = g }

func TestStore_PassesOnWhichGenerationIsObeyed(t *testing.T) {
	inner := &knowing{}
	stage := newStage()
	wrapped, ok := stage.Store(inner).(interface{ Know(ids.Generation) })
	if !ok {
		t.Fatal("the node cannot say which generation it obeys")
	}
	if wrapped.Know(7); inner.floor != 7 {
		t.Errorf("got %d, want 7", inner.floor)
	}
}
