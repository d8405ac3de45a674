package replicatest

import (
	"maps"
	"math"
	"time"

	"cartwheel.dev/node/replica"
)

// transfer copies another machine's state.
func (m *machine) transfer(t replica.Transfer) {
	fail := func() { m.core.TransferFailed(m.clock(), Slice) }
	src := m.byID[t.Sources[m.rng.IntN(len(t.Sources))]]
	m.trace("%s wants the state from %s, diverged %v", m.id, src.id, t.Diverged)
	d, ok := m.pass(m.index, src.index)
	if !ok || !src.up || m.now < src.paused {
		m.later(Lease/2, fail)
		return
	}
	s, ok := src.core.Snapshot(Slice)
	ok = ok && src.core.MayGive(Slice)
	if !ok {
		m.later(Lease/2, fail)
		return
	}
	state := maps.Clone(src.state)
	m.later(d, func() {
		wanted, err := m.core.TransferBegun(m.clock(), Slice, s)
		if err != nil {
			panic(err)
		}
		if !wanted {
			m.core.TransferFailed(m.clock(), Slice)
			return
		}
		m.flush()
		m.finish(s, state, m.now+4*Lease)
	})
}

// finish puts a transferred state in place of the old one, once the record
// that voids the old one is on disk. It gives up after a while: the row may give
// the slice to others meanwhile.
func (m *machine) finish(s replica.Snapshot, state map[string]string, until Time) {
	m.later(m.between(time.Millisecond, Lease), func() {
		ready := m.core.TransferReady(Slice)
		if !ready && m.now < until {
			m.finish(s, state, until)
			return
		}
		if !ready || !m.calm && m.chance(100) {
			m.core.TransferFailed(m.clock(), Slice)
			return
		}
		m.state = maps.Clone(state)
		m.core.TransferHold(m.clock(), Slice, math.MaxUint64)
		m.flush()
		m.whole(s, until)
	})
}

// whole says, once the entries that came meanwhile were applied for a while, that
// the copy is whole.
func (m *machine) whole(base replica.Snapshot, until Time) {
	m.later(m.between(time.Millisecond, Lease), func() {
		if !m.core.TransferReady(Slice) || !m.calm && m.chance(100) {
			m.core.TransferFailed(m.clock(), Slice)
			return
		}
		at, _ := m.core.Incomplete(Slice)
		m.disk.replace(at.At, m.state)
		m.core.TransferDone(m.clock(), Slice, base)
	})
}
