package replicatest

import (
	"maps"
	"time"

	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/replica"
)

// flush carries out what the core wants.
func (m *machine) flush() {
	for m.up {
		out := m.core.Flush(m.clock())
		m.check.valid(m.core.Valid())
		if out.Empty() {
			return
		}
		m.carryOut(out)
	}
}

func (m *machine) carryOut(out *replica.Outputs) {
	if len(out.Records) > 0 {
		m.journal(out.Records)
	}
	for _, o := range out.Messages {
		m.send(o.To, o.Message)
	}
	for _, a := range out.Applied {
		for _, e := range a.Entries {
			if key, value, ok := decodeWrite(e.Data); ok {
				m.state[key] = value
			}
			m.check.applied(m.id, m.state, e)
		}
	}
	for _, e := range out.Events {
		m.trace("%s: %s %s at epoch %d", m.id, e.What, e.Node, e.Epoch)
	}
	for _, r := range out.Roles {
		m.trace("%s is %v at epoch %d", m.id, r.Kind, r.Row.Epoch)
		m.check.row(m.id, &m.disk, r.Row.Epoch)
		m.takeRole(r)
		if r.Removed {
			m.drop()
		}
	}
	for _, r := range out.Replies {
		if call := m.calls[r.Token]; call != nil {
			delete(m.calls, r.Token)
			call(r)
		}
	}
	for _, s := range out.Swaps {
		m.trace("%s swaps %d: %s %v", m.id, s.From, s.Why, rowText(&s.After))
		m.config.swap(m, s)
		if s.Why == "slice.takeover" && !m.calm && m.chance(m.o.CandidateCrashes) {
			m.after(0, func() { m.restart(m.between(time.Millisecond, 2*Lease)) })
		}
	}
	for _, r := range out.Reads {
		var entries []*replica.Entry
		if !m.o.NoReads {
			entries = m.disk.read(r)
		}
		m.later(m.between(0, 5*time.Millisecond), func() { m.core.ReadDone(m.clock(), r, entries) })
	}
	for _, t := range out.Transfers {
		m.transfer(t)
	}
}

// journal hands records to the disk, which syncs them a little later.
func (m *machine) journal(records []replica.Record) {
	for i := range records {
		b := replica.AppendRecord(nil, &records[i])
		m.disk.unsynced = append(m.disk.unsynced, b)
		m.position = records[i].Position
		if e := records[i].Entry; e != nil {
			m.fetchChunks(e)
		}
	}
	d := m.between(50*time.Microsecond, 2*time.Millisecond)
	if m.now < m.stallTo {
		d += m.stallTo - m.now
	}
	upTo := m.position
	boot := m.boot
	m.after(d, func() {
		if m.boot != boot || !m.up || upTo <= m.durable {
			return
		}
		m.disk.sync(int(upTo - m.durable))
		m.durable = upTo
		m.do(func() { m.core.Persisted(m.clock(), upTo) })
	})
}

// fetchChunks says after a while that an entry's chunks are here.
func (m *machine) fetchChunks(e *replica.Entry) {
	if len(e.Chunks) == 0 {
		return
	}
	serial, epoch := e.Serial, e.Epoch
	most := 8 * time.Millisecond
	if m.o.Coherence > 0 && m.chance(200) {
		most = 2 * m.o.Coherence
	}
	m.later(m.between(0, most), func() { m.core.Held(m.clock(), Slice, serial, epoch) })
}

// save makes a checkpoint and gives up old records.
func (m *machine) save() {
	if s, ok := m.core.Snapshot(Slice); ok && s.Serial > 0 {
		first := s.Serial - min(s.Serial, ids.Serial(m.rng.IntN(40)))
		if m.o.NoReads {
			first = s.Serial + 1
		}
		m.saveFrom(first)
	}
}

// saveFrom is save, but the entries from first on are kept.
func (m *machine) saveFrom(first ids.Serial) {
	if s, ok := m.core.Snapshot(Slice); ok && s.Serial > 0 {
		if !m.o.NoReads {
			first = min(m.core.Retain(Slice), first)
		}
		m.disk.save(s, maps.Clone(m.state), first)
	}
}

// drop throws away the state of a slice that the row gives to others. The drop
// may reach the disk only with the next checkpoint.
func (m *machine) drop() {
	m.state = map[string]string{}
	if m.chance(500) {
		m.disk.checkpoint = checkpoint{state: map[string]string{}}
	}
}
