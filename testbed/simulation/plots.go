package simulation

import (
	"fmt"
	"slices"
	"time"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/ids"
)

// Plots are faults of several steps, each at the moment that it needs: what a
// step forgets would show by luck alone otherwise.

// cutClient keeps a client from the nodes, and now and then has all slices
// handed over meanwhile: what the client has leases on may change only behind them.
func (f *faults) cutClient(length time.Duration) harm {
	c := f.clients[f.chance.IntN(len(f.clients))]
	h := f.cut(c.host.name, length, f.between(c.host, true, true, false))
	if f.chance.IntN(2) == 0 {
		return h
	}
	cut, chance := h.begin, newChance(f.chance.Uint64(), 0).r
	h.about += ", and all slices are handed over"
	h.begin = func() {
		cut()
		for _, row := range f.config.rows() {
			others := slices.DeleteFunc(row.Normals(), func(id ids.Node) bool { return id == row.Active })
			if len(others) == 0 {
				continue
			}
			to := others[chance.IntN(len(others))]
			f.work.Go(func() { f.handOver(row, to) })
		}
	}
	return h
}

// deposed cuts the active of a slice off from the other nodes until another
// one acts, and has the slice handed back to it as soon as that can be: it
// leads again without having been started anew, behind what it proposed last.
func (f *faults) deposed() harm {
	rows := f.config.rows()
	if len(rows) == 0 {
		return harm{}
	}
	row := rows[f.chance.IntN(len(rows))]
	m := f.machineOf(row.Active)
	if m == nil {
		return harm{}
	}
	length := f.limits.Lease + f.limits.Lease/4 + time.Duration(f.chance.Int64N(int64(f.limits.Lease)))
	h := f.cut(fmt.Sprintf("%s, which acts for slice %d", m.name, row.ID), length, f.between(m.host, true, true, false))
	healed := h.lift
	h.lift = func() {
		healed()
		f.work.Go(func() { f.restore(row.ID, m) })
	}
	return h
}

// restore tries for a while to have a node act for a slice.
func (f *faults) restore(id ids.Slice, m *machine) {
	for range 40 {
		pass(150_000_011)
		for _, row := range f.config.rows() {
			if row.ID != id {
				continue
			}
			if row.Active == m.id() || f.over {
				return
			}
			if state, ok := row.Member(m.id()); ok && state.State == geoconfig.Normal {
				f.handOver(row, m.id())
			}
		}
	}
}

// flapping lets each way between a node and the others come and go by itself,
// many times in a lease, and keeps geo-config from the node: questions arrive and answers
// do not, and the other way round.
func (f *faults) flapping(m *machine, length time.Duration) harm {
	ways := f.between(m.host, true, true, false)
	chance, stop := f.chance.Uint64(), make(chan struct{})
	away := f.configured(AwayOne, m, length)
	return harm{about: m.name, length: length,
		begin: func() {
			away.begin()
			for i, one := range ways {
				f.work.Go(func() { f.flap(one, newChance(chance, uint64(i)), stop) })
			}
		},
		lift: func() { close(stop); away.lift() }}
}

// flap cuts and heals one way until stop.
func (f *faults) flap(one way, chance source, stop chan struct{}) {
	ways := []way{one}
	for !ended(stop) {
		pass(time.Duration(1 + chance.r.Int64N(int64(f.limits.Lease))))
		f.net.change(ways, func(s *state) { s.cut++ })
		pass(time.Duration(1 + chance.r.Int64N(2*int64(f.limits.Lease))))
		f.net.change(ways, func(s *state) { s.cut-- })
	}
}
