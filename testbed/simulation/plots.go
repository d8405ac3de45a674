package simulation

import (
	"context"
	"fmt"
	"slices"
	"time"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/protocol/method"
	"cartwheel.dev/node/protocol/pb"
	"cartwheel.dev/node/wire"
)

// Plots are faults of several steps, each at the moment that it needs: what a
// step forgets would show by luck alone otherwise.

// cutClient keeps a client from the nodes, and now and then has all slices
// handed over meanwhile: what the client has leases on may change only behind them.
func (w *world) cutClient(length time.Duration) harm {
	c := w.clients[w.chance.IntN(len(w.clients))]
	h := w.cut(c.host.name, length, w.between(c.host, true, true, false))
	if w.chance.IntN(2) == 0 {
		return h
	}
	cut, chance := h.begin, newChance(w.chance.Uint64(), 0).r
	h.about += ", and all slices are handed over"
	h.begin = func() {
		cut()
		for _, row := range w.rows() {
			others := slices.DeleteFunc(row.Normals(), func(id ids.Node) bool { return id == row.Active })
			if len(others) == 0 {
				continue
			}
			to := others[chance.IntN(len(others))]
			w.work.Go(func() { w.handOver(row, to) })
		}
	}
	return h
}

// deposed cuts the active of a slice off from the other nodes until another
// one acts, and has the slice handed back to it as soon as that can be: it
// leads again without having been started anew, behind what it proposed last.
func (w *world) deposed() harm {
	rows := w.rows()
	if len(rows) == 0 {
		return harm{}
	}
	row := rows[w.chance.IntN(len(rows))]
	m := w.machineOf(row.Active)
	if m == nil {
		return harm{}
	}
	length := w.limits.Lease + w.limits.Lease/4 + time.Duration(w.chance.Int64N(int64(w.limits.Lease)))
	h := w.cut(fmt.Sprintf("%s, which acts for slice %d", m.name, row.ID), length, w.between(m.host, true, true, false))
	healed := h.lift
	h.lift = func() {
		healed()
		w.work.Go(func() { w.restore(row.ID, m) })
	}
	return h
}

// restore tries for a while to have a node act for a slice.
func (w *world) restore(id ids.Slice, m *machine) {
	for range 40 {
		pass(150_000_011)
		for _, row := range w.rows() {
			if row.ID != id {
				continue
			}
			if row.Active == m.id() || w.over {
				return
			}
			if state, ok := row.Member(m.id()); ok && state.State == geoconfig.Normal {
				w.handOver(row, m.id())
			}
		}
	}
}

// handOver tells the active of a slice to pass it on. Refused or late, it is
// one more fault that came to nothing.
func (w *world) handOver(row geoconfig.SliceRow, to ids.Node) {
	for _, m := range w.machines() {
		s := m.now()
		if s == nil {
			continue
		}
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_, _ = s.Host().Call(ctx, string(row.Active), wire.Operation, method.HandOver, &pb.HandOverRequest{Slice: uint32(row.ID), To: string(to)}, nil, &pb.HandOverResponse{})
		return
	}
}

func (w *world) machineOf(id ids.Node) *machine {
	for _, m := range w.machines() {
		if m.id() == id {
			return m
		}
	}
	return nil
}

// flapping lets each way between a node and the others come and go by itself,
// many times in a lease, and keeps geo-config from the node: questions arrive and answers
// do not, and the other way round.
func (w *world) flapping(m *machine, length time.Duration) harm {
	ways := w.between(m.host, true, true, false)
	chance, stop := w.chance.Uint64(), make(chan struct{})
	away := w.configured(AwayOne, m, length)
	return harm{about: m.name, length: length,
		begin: func() {
			away.begin()
			for i, one := range ways {
				w.work.Go(func() { w.flap(one, newChance(chance, uint64(i)), stop) })
			}
		},
		lift: func() { close(stop); away.lift() }}
}

// flap cuts and heals one way until stop.
func (w *world) flap(one way, chance source, stop chan struct{}) {
	ways := []way{one}
	for !ended(stop) {
		pass(time.Duration(1 + chance.r.Int64N(int64(w.limits.Lease))))
		w.net.change(ways, func(s *state) { s.cut++ })
		pass(time.Duration(1 + chance.r.Int64N(2*int64(w.limits.Lease))))
		w.net.change(ways, func(s *state) { s.cut-- })
	}
}
