package replicatest

import (
	"testing"

	"cartwheel.dev/node/replica"
	"cartwheel.dev/node/replica/internal/bug"
)

// A checker that finds nothing proves nothing: each of these mistakes must be
// found within so many seeds, on clusters where it can do harm.
func TestPlantedBugsAreFound(t *testing.T) {
	for _, c := range []struct {
		name  string
		bugs  Bugs
		seeds uint64
		shape func(*Options)
	}{
		{"acknowledge before sync", Bugs{Core: bug.Set{AckBeforeSync: true}}, 400, func(o *Options) { o.Level = 2 }},
		{"no epoch check", Bugs{Core: bug.Set{NoEpochCheck: true}}, 1000, func(o *Options) {
			o.Level, o.Members = 2, 3
			o.Slow, o.SlowShare, o.SlowBy = replica.Append, 300, 8*Lease
		}},
		{"lease counted from the answer", Bugs{Core: bug.Set{LeaseFromAnswer: true}}, 1500, func(o *Options) { o.Level = 2; o.Slow, o.SlowShare, o.SlowBy = replica.Answer, 500, 2*Lease }},
		{"object lease honoured after a takeover", Bugs{LeaseOutlivesActive: true}, 400, func(o *Options) {}},
		{"takeover hears too few", Bugs{Core: bug.Set{TakeoverHearsOne: true}}, 400, func(o *Options) { o.LevelTwo = 220 }},
	} {
		t.Run(c.name, func(t *testing.T) {
			for seed := uint64(1); seed <= c.seeds; seed++ {
				o := options(seed * 3) // level two is drawn by thirds
				o.Nodes, o.Level = 3, 3
				o.Bugs = c.bugs
				c.shape(&o)
				if broken := Play(o).Broken; len(broken) > 0 {
					t.Logf("found by seed %d: %s", seed, broken[0])
					o.Bugs = Bugs{}
					if r := Play(o); len(r.Errors) > 0 {
						t.Errorf("and so without the bug: %s", r.Errors[0])
					}
					return
				}
			}
			t.Errorf("not found in %d seeds", c.seeds)
		})
	}
}
