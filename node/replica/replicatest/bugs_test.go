package replicatest

import (
	"testing"

	"cartwheel.dev/node/replica"
	"cartwheel.dev/node/replica/internal/bug"
)

// plants are mistakes, with the clusters on which they can do harm.
var plants = []struct {
	name  string
	bugs  Bugs
	seeds uint64 // it is found within so many
	shape func(*Options)
	stuck bool // it keeps the cluster from going on, and breaks nothing
}{
	{name: "acknowledge before sync", bugs: Bugs{Core: bug.Set{AckBeforeSync: true}}, seeds: 400, shape: func(o *Options) { o.Level = 2 }},
	{name: "no epoch check", bugs: Bugs{Core: bug.Set{NoEpochCheck: true}}, seeds: 3000, shape: func(o *Options) {
		o.Level, o.LevelTwo = 2, 0
		o.Slow, o.SlowShare, o.SlowBy = replica.Append, 300, 8*Lease
	}},
	{name: "lease counted from the answer", bugs: Bugs{Core: bug.Set{LeaseFromAnswer: true}}, seeds: 1500, shape: func(o *Options) {
		o.Level = 2
		o.Slow, o.SlowShare, o.SlowBy = replica.Answer, 500, 2*Lease
	}},
	{name: "object lease honoured after a takeover", bugs: Bugs{LeaseOutlivesActive: true}, seeds: 400},
	{name: "a removed member keeps its log", bugs: Bugs{Core: bug.Set{KeepsRemoved: true}}, seeds: 2000, shape: func(o *Options) { o.Nodes, o.Moves = 4, 400 }},
	{name: "a candidate of an earlier life leads at once", bugs: Bugs{Core: bug.Set{LeadsAtOnce: true}}, seeds: 1500,
		shape: func(o *Options) { o.CandidateCrashes = 600 }},
	{name: "takeover hears too few", bugs: Bugs{Core: bug.Set{TakeoverHearsOne: true}}, seeds: 2500, shape: func(o *Options) { o.LevelTwo = 220 }},
	{name: "takeover asks nobody", bugs: Bugs{Core: bug.Set{TakesOverAlone: true}}, seeds: 1000, shape: lies, stuck: true},
	{name: "a new life is believed to have what the last one had", bugs: Bugs{Core: bug.Set{TrustsMatch: true}}, seeds: 1000, stuck: true,
		shape: func(o *Options) { lies(o); o.Clients, o.Flight = 1, 1 }}, // busy clients show the gap by themselves
}

// lies makes disks go back, on clusters where nothing may be lost by that.
func lies(o *Options) { o.LevelTwo, o.Lies = 0, 300 }

// TestPlay_FindsPlantedBugs plants mistakes, because a checker that finds
// nothing proves nothing. Each must be found within so many seeds, on clusters
// where it can do harm.
func TestPlay_FindsPlantedBugs(t *testing.T) {
	for _, c := range plants {
		t.Run(c.name, func(t *testing.T) {
			for seed := uint64(1); seed <= c.seeds; seed++ {
				o := options(seed * 3) // level two is drawn by thirds
				o.Nodes, o.Level, o.Members, o.Flight = 3, 3, 0, 1+int(seed%2)*3
				o.Bugs = c.bugs
				if c.shape != nil {
					c.shape(&o)
				}
				r := Play(o)
				found := r.Broken
				if c.stuck {
					found = r.Errors
				}
				if len(found) > 0 {
					t.Logf("found by seed %d: %s", seed, found[0])
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
