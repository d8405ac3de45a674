package simulation

import (
	"fmt"
	"strings"
	"testing/synctest"
	"time"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/replica"
	"cartwheel.dev/node/server/replog"
	"cartwheel.dev/node/store"
)

// watch checks, all the time, what must hold at every moment.
type watch struct {
	*cluster
	slices int // so many are watched
}

// look checks until stop.
func (w *watch) look(stop chan struct{}) {
	for n := 1; ; n++ {
		t := time.NewTimer(time.Duration(3_000_000 + n%7*100_003))
		select {
		case <-stop:
			t.Stop()
			return
		case <-t.C:
		}
		synctest.Wait()
		w.oneLease()
		if n%150 == 0 {
			w.equalStates()
		}
		if n%450 == 0 {
			w.onDisk()
		}
	}
}

// oneLease checks that no two nodes act for a slice.
func (w *watch) oneLease() {
	for id := ids.Slice(1); int(id) <= w.slices; id++ {
		var leads []string
		for _, m := range w.machines() {
			if s := m.now(); s != nil && s.Serves(id) {
				leads = append(leads, m.name)
			}
		}
		if len(leads) > 1 {
			w.once("LEASE", "slice %d: %s act for it at once", id, strings.Join(leads, " and "))
		}
	}
}

// equalStates checks that copies that applied as much are equal.
func (w *watch) equalStates() {
	rows := w.config.rows()
	w.slices = len(rows)
	for _, row := range rows {
		type copied struct {
			sum, name string
		}
		seen := map[ids.Serial]copied{}
		for _, m := range w.machines() {
			s := m.now()
			if s == nil {
				continue
			}
			st, ok, err := m.stand(s, row.ID)
			if err != nil || !ok || !st.Whole {
				if s.Serves(row.ID) && err == nil {
					w.once("WHOLE", "slice %d: %s acts for it with a copy that is not whole", row.ID, m.name)
				}
				continue
			}
			at, sum, err := s.CopySum(row.ID)
			if err != nil || at != st.Applied || at == 0 {
				continue // it went on meanwhile
			}
			if other, ok := seen[at]; ok && other.sum != sum {
				w.once("EQUAL", "slice %d at serial %d: %s has %s, and %s %s", row.ID, at, m.name, sum, other.name, other.sum)
			}
			seen[at] = copied{sum, m.name}
		}
	}
}

// onDisk checks that what is committed is on the disk of every normal member,
// synced, and that no node acts in an epoch that its disk has not.
func (w *watch) onDisk() {
	rows := w.config.rows()
	committed, epochs := map[ids.Slice]ids.Serial{}, map[string]ids.Epoch{}
	for _, row := range rows {
		for _, m := range w.machines() {
			s := m.now()
			if s == nil || !s.Serves(row.ID) {
				continue
			}
			if st, ok, err := m.stand(s, row.ID); err == nil && ok {
				committed[row.ID] = max(committed[row.ID], st.Commit)
				if !st.Muted { // else it reads on under its earlier lease, and uses the new epoch for nothing yet
					epochs[fmt.Sprint(m.name, "/", row.ID)] = st.Row.Epoch
				}
			}
		}
	}
	disks := map[string]map[ids.Slice]replica.Restored{}
	for _, m := range w.machines() {
		if d, ok := w.recovered(m); ok {
			disks[m.name] = d
		}
	}
	same := map[ids.Slice]ids.Epoch{}
	for _, row := range w.config.rows() {
		same[row.ID] = row.Epoch
	}
	for _, row := range rows {
		for _, m := range w.machines() {
			found, ok := disks[m.name]
			state, member := row.Member(m.id())
			if !ok || !member || state.State != geoconfig.Normal || same[row.ID] != row.Epoch {
				continue
			}
			d := found[row.ID]
			if last := lastOf(d); last < committed[row.ID] {
				w.once("DURABLE", "slice %d: serial %d is committed, and the disk of %s, a normal member, has %d", row.ID, committed[row.ID], m.name, last)
			}
			if e := epochs[fmt.Sprint(m.name, "/", row.ID)]; e > d.Row.Epoch {
				w.once("EPOCH", "slice %d: %s acts in epoch %d, and its disk knows %d", row.ID, m.name, e, d.Row.Epoch)
			}
		}
	}
}

func lastOf(d replica.Restored) ids.Serial {
	last := max(d.Applied, d.Base)
	if n := len(d.Entries); n > 0 {
		last = max(last, d.Entries[n-1].Serial)
	}
	return last
}

// recovered reads what a node would find if its machine lost power now.
func (w *watch) recovered(m *machine) (map[ids.Slice]replica.Restored, bool) {
	m.mu.Lock()
	if m.spoilt || m.erring {
		m.mu.Unlock()
		return nil, false
	}
	d := m.disk.synced()
	m.mu.Unlock()
	o := store.Options{Dir: m.dir, Disk: d.files, MetaFS: d.meta, ClusterID: clusterID, NodeID: m.id(), Clock: m.clock.read, Wall: m.wall.now}
	w.limits.shrink(&o)
	st, err := store.Open(o)
	if err != nil {
		w.once("DISK", "%s: what is on the disk does not open: %v", m.name, err)
		return nil, false
	}
	defer st.Close()
	list, err := replog.New(st).Recover()
	if err != nil {
		w.once("DISK", "%s: what is on the disk cannot be recovered: %v", m.name, err)
		return nil, false
	}
	out := map[ids.Slice]replica.Restored{}
	for _, r := range list {
		out[r.Row.ID] = r
	}
	return out, true
}
