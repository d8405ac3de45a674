package replicatest

import (
	"time"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/node/replica"
)

// fault makes one thing go wrong, and plans the next.
func (w *World) fault() {
	if w.calm {
		return
	}
	w.after(w.between(50*time.Millisecond, 3*Lease), w.fault)
	m := w.machines[w.rng.IntN(len(w.machines))]
	if w.chance(400) {
		m = w.byID[w.config.row.Active] // who matters most
	}
	switch w.rng.IntN(12) {
	case 0, 1:
		w.restart(m, w.between(time.Millisecond, 5*Lease))
	case 2:
		if w.chance(300) {
			for _, m := range w.machines {
				w.restart(m, w.between(time.Millisecond, 2*Lease))
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
			w.after(w.between(0, d), func() { w.restart(m, w.between(time.Millisecond, Lease)) })
		}
	case 10:
		w.handOver()
	case 11:
		w.reconfigure()
	}
}

// restart crashes a machine and starts it again after a while.
func (w *World) restart(m *machine, after Time) {
	if !m.up {
		return
	}
	m.crash()
	w.after(after, func() {
		if !m.up {
			w.trace("%s starts", m.id)
			m.start()
		}
	})
}

func (w *World) isolate(m *machine, d Time) {
	w.trace("%s is isolated", m.id)
	config, clients := w.chance(500), w.chance(500)
	for i := range 100 + len(w.clients) {
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
	var c replica.Change
	if _, in := row.Member(spare.id); !in {
		c.Add = []geoconfig.Member{{Node: spare.id, Incarnation: 1}}
	} else if spare != m && len(row.Members) > w.o.Level {
		c.Remove = []geoconfig.NodeID{spare.id}
	} else {
		return
	}
	m.do(func() { m.core.Reconfigure(m.clock(), Slice, c) })
}

// add asks the active to take in a machine.
func (w *World) add(spare *machine) {
	m := w.byID[w.config.row.Active]
	c := replica.Change{Add: []geoconfig.Member{{Node: spare.id, Incarnation: 1}}}
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

// Play runs a whole story: load and faults, then peace, then the checks.
func Play(o Options) Result {
	w := New(o)
	w.Run(4 * tickEvery)
	w.fault()
	w.Run(o.Faults)
	w.heal()
	what := "not checked"
	for range 150 {
		w.Run(Lease / 3)
		if what = w.converged(); what == "" {
			break
		}
	}
	if what != "" {
		broken := w.check.broken
		w.check.fail("not converged: %s", what)
		w.check.broken = broken
	}
	w.check.acknowledged()
	w.check.linearizable()
	r := Result{Errors: w.check.errors, Broken: w.check.broken, Epochs: int(w.config.row.Epoch)}
	for _, op := range w.check.history {
		if op.write && op.ret > 0 {
			r.Acknowledged++
		}
	}
	return r
}
