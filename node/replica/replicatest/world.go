package replicatest

import (
	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/ids"
)

// World is a simulated cluster with one slice.
type World struct {
	*sim
	*cluster
	config  *config
	clients []*client
	check   *checker

	lied   bool // a disk has lost what was synced
	spared Time // no other faults before
}

// New makes a cluster whose slice is on the first Level machines.
func New(o Options) *World {
	if o.LateBy == 0 {
		o.Late, o.LateBy = 20, Lease
	}
	if o.CandidateCrashes == 0 {
		o.CandidateCrashes = 60
	}
	if o.Lies == 0 {
		o.Lies = 80
	}
	if o.Keep == 0 {
		o.Keep = 8 << 10
	}
	w := &World{sim: newSim(o), cluster: &cluster{byID: map[ids.Node]*machine{}}}
	w.check = newChecker(w.sim)
	w.config = newConfig(w.sim, w.check)
	for range o.Clients {
		w.caches = append(w.caches, newCache())
	}
	row := &geoconfig.SliceRow{ID: Slice, Epoch: 1, Policy: geoconfig.Policy{Level: o.Level, Kind: geoconfig.Ordinary, Coherence: o.Coherence}}
	for i := range o.Nodes {
		m := newMachine(w.sim, w.cluster, w.config, w.check, i)
		w.machines, w.byID[m.id] = append(w.machines, m), m
		w.config.followers = append(w.config.followers, m)
		if i < max(o.Level, o.Members) {
			row.Members = append(row.Members, geoconfig.Member{Node: m.id, State: geoconfig.Normal, Incarnation: 1})
		}
	}
	row.Active = w.machines[0].id
	w.config.begin(row)
	for _, m := range w.machines {
		m.start()
		m.learn(row)
	}
	for i := range o.Clients {
		w.clients = append(w.clients, newClient(w.sim, w.cluster, w.check, i))
	}
	return w
}

// Run runs until a time has passed.
func (w *World) Run(d Time) { w.run(d, w.oneLease) }

// oneLease checks that no two machines may act at once (LEASE). A machine that
// stands still may, if its clock says so when it goes on.
func (w *World) oneLease() {
	var acts *machine
	for _, m := range w.machines {
		if !m.up || m.core.Until(Slice) <= m.clock() {
			continue
		}
		if acts == nil {
			acts = m
			continue
		}
		w.check.twoLeases(acts.id, m.id, w.config.row.Epoch)
	}
}
