package simulation

import (
	"fmt"
	"strings"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/node/store/disk"
)

// full leaves a machine's disk a little room, for a while.
func (f *faults) full(m *machine) harm {
	h := harm{about: m.name}
	room := int64(f.chance.IntN(400)) << 10
	set := func(free int64) {
		m.mu.Lock()
		defer m.mu.Unlock()
		if free < 0 {
			m.disk.files.SetCapacity(0)
			return
		}
		m.disk.files.SetCapacity(m.disk.bytes() + free)
	}
	h.begin, h.lift = func() { f.filled.Store(true); set(room) }, func() { set(-1) }
	return h
}

// erring makes one write of a machine's disk fail. What a node cannot write it
// must not promise: it ends, and is started again.
func (f *faults) erring(m *machine) harm {
	sites := []disk.Site{disk.JournalAppend, disk.JournalHeader, disk.JournalOpen, disk.JournalAllocate, disk.PackWrite, disk.PackSync}
	r := disk.Rule{Site: sites[f.chance.IntN(len(sites))], Skip: f.chance.IntN(20), Times: 1, Kind: fault.IO, Keep: f.chance.IntN(3000)}
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
func (f *faults) spoiled(kind Kind, m *machine) harm {
	if f.spoilt != nil && f.spoilt != m || !f.config.spare(m.id()) {
		return harm{}
	}
	return harm{about: m.name, length: f.limits.Lease, begin: func() {
		f.spoilt = m
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
