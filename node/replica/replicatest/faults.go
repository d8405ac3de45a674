package replicatest

import (
	"math"
	"time"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/replica"
)

// fault makes one thing go wrong, and plans the next.
func (w *World) fault() {
	if w.calm {
		return
	}
	w.after(w.between(50*time.Millisecond, 3*Lease), w.fault)
	if w.now < w.spared {
		return
	}
	m := w.machines[w.rng.IntN(len(w.machines))]
	if w.chance(400) {
		m = w.byID[w.config.row.Active] // who matters most
	}
	if w.chance(w.o.Moves) {
		w.reconfigure()
		return
	}
	if w.chance(w.o.Lies) {
		w.lie(m)
		return
	}
	switch w.rng.IntN(12) {
	case 0, 1:
		m.restart(w.between(time.Millisecond, 5*Lease))
	case 2:
		if w.chance(300) {
			for _, m := range w.machines {
				m.restart(w.between(time.Millisecond, 2*Lease))
			}
		}
	case 3, 4:
		if m.up {
			m.pause(w.between(Lease/10, 4*Lease))
		}
	case 5:
		w.isolate(m, w.between(Lease/4, 5*Lease))
	case 6, 7:
		w.cutOne(m)
	case 8:
		w.trace("geo-config is away")
		w.config.away = w.now + w.between(Lease/2, 4*Lease)
	case 9:
		d := w.between(Lease/20, 2*Lease)
		m.stallTo = w.now + d
		w.trace("%s: the disk stalls", m.id)
		if w.chance(400) {
			w.after(w.between(0, d), func() { m.restart(w.between(time.Millisecond, Lease)) })
		}
	case 10:
		w.handOver()
	case 11:
		w.reconfigure()
	}
}

// lie makes a disk lose what was synced. Where all members have what is
// acknowledged, and two are normal at all times, the others still have it: so
// long as it happens to one member once.
func (w *World) lie(m *machine) {
	if w.lied || !m.up || w.o.Level < 3 || w.o.LevelTwo > 0 {
		return
	}
	_, member := w.config.row.Member(m.id)
	switch n := w.rng.IntN(4); {
	case n == 0 && w.sound():
		w.spared = w.now + 8*Lease // two losses at once may need a person
		m.restart(w.between(time.Millisecond, Lease))
		w.trace("%s comes back with an empty disk", m.id)
		m.wipe()
	case n == 1 && member:
		m.restart(w.between(time.Millisecond, Lease))
		w.trace("%s loses the end of its journal", m.id)
		m.disk.rot(1 + w.rng.IntN(8))
	case n > 1 && member && len(m.disk.past) > 0:
		m.restart(w.between(time.Millisecond, Lease))
		w.trace("%s's disk goes back to an earlier state", m.id)
		m.disk.rollBack(m.disk.past[w.rng.IntN(len(m.disk.past))])
	default:
		return
	}
	w.lied = true
	if a := w.byID[w.config.row.Active]; w.now >= w.spared && w.chance(700) {
		w.after(w.between(0, 2*Lease), func() { a.restart(w.between(Lease, 5*Lease)) })
	}
}

// sound reports whether all members are normal, and every machine is up and can
// be reached.
func (w *World) sound() bool {
	row := w.config.row
	for _, m := range w.machines {
		if !m.up || m.paused > w.now || m.stallTo > w.now {
			return false
		}
	}
	for _, until := range w.cut {
		if until > w.now {
			return false
		}
	}
	return len(row.Normals()) == len(row.Members) && w.config.away <= w.now
}

func (w *World) isolate(m *machine, d Time) {
	w.trace("%s is isolated", m.id)
	config, clients := w.chance(500), w.chance(500)
	for i := range firstClient + len(w.clients) {
		if (i == configIndex && !config) || (i > configIndex && !clients) {
			continue
		}
		w.cut[[2]int{m.index, i}] = w.now + d
		w.cut[[2]int{i, m.index}] = w.now + d
	}
}

// cutOne cuts one direction of one link, perhaps to geo-config.
func (w *World) cutOne(m *machine) {
	to := w.rng.IntN(len(w.machines) + 1)
	if to == len(w.machines) {
		to = configIndex
	}
	link := [2]int{m.index, to}
	if w.chance(500) {
		link = [2]int{to, m.index}
	}
	w.trace("no way from %d to %d", link[0], link[1])
	w.cut[link] = w.now + w.between(Lease/4, 6*Lease)
}

func (w *World) handOver() {
	row := w.config.row
	normals := row.Normals()
	m, to := w.byID[row.Active], normals[w.rng.IntN(len(normals))]
	w.trace("hand-over to %s", to)
	m.do(func() { m.core.HandOver(m.clock(), Slice, to) })
}

// reconfigure brings in a spare machine, or removes a member.
func (w *World) reconfigure() {
	row := w.config.row
	m := w.byID[row.Active]
	spare := w.machines[w.rng.IntN(len(w.machines))]
	c := replica.Change{From: row.Epoch}
	if _, in := row.Member(spare.id); !in {
		c.Add = []geoconfig.Member{{Node: spare.id, Incarnation: spare.incarnation}}
	} else if spare != m && len(row.Members) > w.o.Level {
		c.Remove = []ids.Node{spare.id}
	} else {
		return
	}
	m.do(func() { m.core.Reconfigure(m.clock(), Slice, c) })
}

// add asks the active to take in a machine.
func (w *World) add(spare *machine) {
	row := w.config.row
	m := w.byID[row.Active]
	c := replica.Change{From: row.Epoch, Add: []geoconfig.Member{{Node: spare.id, Incarnation: spare.incarnation}}}
	m.do(func() { m.core.Reconfigure(m.clock(), Slice, c) })
}

// heal ends all faults.
func (w *World) heal() {
	w.trace("no more faults")
	w.calm = true
	clear(w.cut)
	w.config.away = 0
	for _, m := range w.machines {
		m.stallTo = 0
		if !m.up {
			m.start()
		} else if m.paused > w.now {
			m.pause(0)
		}
	}
}

// Result of a run: what was broken, and how much was done.
type Result struct {
	Errors       []string
	Broken       []string // those of Errors that are more than a want of progress
	Acknowledged int
	Epochs       int
}

// stop notes that the cluster does not go on, which breaks no promise of safety.
func (w *World) stop(format string, args ...any) {
	broken := w.check.broken
	w.check.fail(format, args...)
	w.check.broken = broken
}

// awaitConverged waits until the cluster is whole and equal.
func (w *World) awaitConverged() {
	what := "not checked"
	for range 150 {
		w.Run(Lease / 3)
		if what = w.converged(); what == "" {
			return
		}
	}
	w.stop("not converged: %s", what)
}

// useAgain has every client write and then read every key: a cluster that is
// equal and serves nobody is not whole. Then it looks at what all members have.
func (w *World) useAgain() {
	left := 0
	for _, c := range w.clients {
		for k := range keys {
			left++
			c.write(keyName(k), 0, func() {
				c.read(keyName(k), math.MaxInt, func(ok bool) { // for as long as is waited below
					if ok {
						left--
					}
				})
			})
		}
	}
	for range 60 {
		w.Run(Lease / 3)
		if left == 0 {
			break
		}
	}
	if left > 0 {
		w.stop("%d of the last operations are not answered", left)
		return
	}
	if w.awaitConverged(); len(w.check.errors) == 0 {
		w.final()
	}
}

// Play runs a whole story: load and faults, then peace, then the checks.
func Play(o Options) Result {
	w := New(o)
	w.Run(4 * tickEvery)
	w.fault()
	w.Run(o.Faults)
	w.heal()
	w.awaitConverged()
	w.check.acknowledged()
	if len(w.check.errors) == 0 {
		w.useAgain()
	}
	w.check.linearizable()
	r := Result{Errors: w.check.errors, Broken: w.check.broken, Epochs: int(w.config.row.Epoch)}
	for _, op := range w.check.history {
		if op.write && op.ret > 0 {
			r.Acknowledged++
		}
	}
	return r
}
