package simulation

import (
	"context"
	"fmt"
	"time"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/drain"
	"cartwheel.dev/node/geo/changes"
	"cartwheel.dev/node/policy"
	"cartwheel.dev/node/protocol/method"
	"cartwheel.dev/node/protocol/pb"
	"cartwheel.dev/node/wire"
)

// configured are the faults of geo-config.
func (f *faults) configured(kind Kind, m *machine, length time.Duration) harm {
	c := f.config
	set := func(by int) func() {
		return func() {
			c.mu.Lock()
			defer c.mu.Unlock()
			switch kind {
			case Away:
				c.away += by
			case AwayOne:
				m.line.cuts += by
			default:
				c.lost += float64(by) * 0.4
			}
		}
	}
	return harm{about: m.name, length: length, begin: set(1), lift: set(-1)}
}

// passing tells the active of a slice to hand it over.
func (f *faults) passing() harm {
	rows := f.config.rows()
	if len(rows) == 0 {
		return harm{}
	}
	row := rows[f.chance.IntN(len(rows))]
	others := row.Normals()
	to := others[f.chance.IntN(len(others))]
	return harm{about: fmt.Sprintf("of slice %d to %s", row.ID, f.nameOf(to)), begin: func() {
		f.work.Go(func() { f.handOver(row, to) })
	}}
}

// resized changes how many copies a slice is to have, as an administrator would.
func (f *faults) resized() harm {
	rows := f.config.rows()
	if len(rows) == 0 {
		return harm{}
	}
	row := rows[f.chance.IntN(len(rows))].Clone()
	level := 1 + f.chance.IntN(3)
	if level == row.Policy.Level {
		return harm{}
	}
	f.resizes++
	key := fmt.Sprint("resize/", f.resizes)
	return harm{about: fmt.Sprintf("of slice %d to level %d", row.ID, level), begin: func() {
		from := row.Epoch
		row.Epoch++
		row.Policy.Level = level
		// The row may have changed just now: then it is one more fault that came to nothing.
		_, _ = f.config.store.Apply(context.Background(), geoconfig.Batch{Key: key, Slices: []geoconfig.SliceSwap{{From: from, Row: row}}})
	}}
}

// ordered is what an administrator orders.
func (f *faults) ordered(kind Kind, m *machine, length time.Duration) harm {
	switch kind {
	case Drain:
		return f.drained(m, length)
	case Home:
		return f.rehomed(m)
	}
	return f.resized()
}

// order is one of an administrator.
func (f *faults) order() changes.Order {
	f.resizes++
	return changes.Order{Key: fmt.Sprint("order/", f.resizes), Who: "administrator"}
}

// drained has a node left, for a few times as long as other faults last, so that
// some nodes are left for good before they get slices again.
func (f *faults) drained(m *machine, length time.Duration) harm {
	begin, end := f.order(), f.order()
	set := func(o changes.Order, on bool) {
		// A node that never registered has no row to say so in.
		_ = drain.Set(context.Background(), f.config.store, o, []ids.Node{m.id()}, on)
	}
	return harm{about: m.name, length: 5 * length, begin: func() { set(begin, true) }, lift: func() { set(end, false) }}
}

// rehomed gives a slice its home at another machine's site.
func (f *faults) rehomed(m *machine) harm {
	rows := f.config.rows()
	if len(rows) == 0 {
		return harm{}
	}
	row := rows[f.chance.IntN(len(rows))]
	home, o := ids.Site(m.site), f.order()
	return harm{about: fmt.Sprintf("of slice %d to %s", row.ID, home), begin: func() {
		// Refused or too late, it is one more fault that came to nothing.
		_, _ = policy.Set(context.Background(), f.config.store, o, row.ID, policy.Change{Home: &home})
	}}
}

// handOver tells the active of a slice to pass it on. Refused or late, it is
// one more fault that came to nothing.
func (f *faults) handOver(row geoconfig.SliceRow, to ids.Node) {
	for _, m := range f.machines() {
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
