package simulation

import (
	"context"
	"fmt"
	"strings"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/node/store/disk"
)

// full leaves a machine's disk a little room, for a while.
func (w *world) full(m *machine) harm {
	h := harm{about: m.name}
	room := int64(w.chance.IntN(400)) << 10
	set := func(free int64) {
		m.mu.Lock()
		defer m.mu.Unlock()
		if free < 0 {
			m.disk.files.SetCapacity(0)
			return
		}
		m.disk.files.SetCapacity(m.disk.bytes() + free)
	}
	h.begin, h.lift = func() { w.filled.Store(true); set(room) }, func() { set(-1) }
	return h
}

// erring makes one write of a machine's disk fail. What a node cannot write it
// must not promise: it ends, and is started again.
func (w *world) erring(m *machine) harm {
	sites := []disk.Site{disk.JournalAppend, disk.JournalHeader, disk.JournalOpen, disk.JournalAllocate, disk.PackWrite, disk.PackSync}
	r := disk.Rule{Site: sites[w.chance.IntN(len(sites))], Skip: w.chance.IntN(20), Times: 1, Kind: fault.IO, Keep: w.chance.IntN(3000)}
	if strings.HasSuffix(string(r.Site), "allocate") {
		r.Kind = fault.NoSpace
	}
	return harm{about: fmt.Sprintf("%s: %v at %s behind %d", m.name, r.Kind, r.Site, r.Skip), begin: func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.erring = true
		m.disk.files.Fail(r)
	}}
}

// spoiled makes a disk lose what it had: a bit, the newest part, or all. That
// happens to one machine in a run, while others have everything.
func (w *world) spoiled(kind Kind, m *machine) harm {
	if w.spoilt != nil && w.spoilt != m || !w.spare(m) {
		return harm{}
	}
	return harm{about: m.name, length: w.limits.Lease, begin: func() {
		w.spoilt = m
		m.crash(true)
		m.mu.Lock()
		defer m.mu.Unlock()
		m.spoilt = true
		switch kind {
		case Wipe:
			m.disk = newStorage()
		case Rollback:
			if m.older != nil {
				m.disk = m.older.afterKill()
			}
		case Rot:
			m.disk.rot(m.chance)
		}
	}, lift: m.start}
}

// spare reports whether every slice goes on without m: as many other members
// are normal as its level demands, and one at least.
func (w *world) spare(m *machine) bool {
	rows, err := w.config.store.Read(context.Background(), geoconfig.Query{Slices: 1000})
	if err != nil {
		return false
	}
	for _, row := range rows.Slices {
		others := 0
		for _, id := range row.Normals() {
			if id != m.id() {
				others++
			}
		}
		if others == 0 || others < 2 && row.Policy.Level >= 3 {
			return false
		}
	}
	return true
}
