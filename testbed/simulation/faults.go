package simulation

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/ids"
)

// Kind is a kind of fault.
type Kind string

// The kinds of faults.
const (
	Crash     Kind = "crash"      // a node dies, and starts again later
	CrashAll  Kind = "crash-all"  // all of them
	Isolate   Kind = "isolate"    // a node and the other nodes do not hear each other
	CutOff    Kind = "cut-off"    // a node and everybody else do not
	OneWay    Kind = "one-way"    // what a host sends another is held up
	Lag       Kind = "lag"        // what a node sends is slow
	Loss      Kind = "loss"       // much of what a node sends must be sent again
	Away      Kind = "away"       // geo-config cannot be reached
	AwayOne   Kind = "away-one"   // by one node
	Unsure    Kind = "unsure"     // many answers of geo-config are lost
	HandOver  Kind = "hand-over"  // a node is told to pass a slice on
	Suspend   Kind = "suspend"    // a machine neither sends, hears nor writes, and its clock goes on
	ClockRate Kind = "clock-rate" // a machine's clock runs faster or slower from now on
	Reset     Kind = "reset"      // connections break in the middle of what is sent
	Policy    Kind = "policy"     // a slice is to have more copies, or fewer
	WallStep  Kind = "wall-step"  // a machine's time of day is set
	Leave     Kind = "leave"      // a node is stopped in order, and starts again later
	Join      Kind = "join"       // one more node
	LongCrash Kind = "long-crash" // a node is away for longer than members may be failed
	Program   Kind = "client"     // a client's process dies, and starts again later
	DiskFull  Kind = "disk-full"  // a disk has little room
	DiskError Kind = "disk-error" // a write fails
	Rot       Kind = "rot"        // a bit of a disk changes
	Rollback  Kind = "rollback"   // a disk goes back to an older state
	Wipe      Kind = "wipe"       // a disk is emptied
	CutClient Kind = "cut-client" // a client and the nodes do not hear each other
	Depose    Kind = "depose"     // the active is cut off until another one acts, and then acts again
	Diary     Kind = "diary"      // one more client writes, dies and begins again, all the time
	Flap      Kind = "flap"       // each way of a node is cut and healed by itself, again and again
)

// Lying are the kinds after which a disk has less than its node promised. A run
// has them only where they are asked for: a slice whose active lost its disk
// may stand still for good.
func Lying() []Kind { return []Kind{Rot, Rollback, Wipe} }

// Untold are the kinds that a run has only where they are asked for: a client that
// dies may have told a program of names that nobody else has seen yet, and the
// next life makes them later. The histories of names do not know that.
func Untold() []Kind { return []Kind{Program} }

// Kinds returns the kinds that a run has if none are named.
func Kinds() []Kind {
	return []Kind{Crash, CrashAll, Isolate, CutOff, OneWay, Lag, Loss, Away, AwayOne, Unsure, HandOver, WallStep, Leave, Join, LongCrash, DiskFull, DiskError,
		CutClient, Depose, Flap, Diary, Suspend, ClockRate, Reset, Policy}
}

// disturb lets faults come and go for the length of the run.
func (w *world) disturb() {
	until := time.Now().Add(w.o.Length)
	kinds := w.o.Faults
	stop := make(chan struct{})
	var under sync.WaitGroup
	for len(kinds) > 0 {
		pause := time.Duration(50_000_000 + w.chance.IntN(2_000_000_000))
		if time.Now().Add(pause).After(until) {
			break
		}
		pass(pause)
		kind := kinds[w.chance.IntN(len(kinds))]
		f := w.fault(kind)
		if f.begin == nil {
			continue
		}
		w.trace.say("fault", "%s %s for %v", kind, f.about, f.length)
		w.faults[kind]++
		f.begin()
		under.Go(func() {
			t := time.NewTimer(f.length)
			select {
			case <-t.C:
			case <-stop:
				t.Stop()
			}
			if f.lift != nil {
				f.lift()
				w.trace.say("fault", "%s %s is over", kind, f.about)
			}
		})
	}
	pass(time.Until(until))
	close(stop)
	under.Wait()
}

// harm is something that goes wrong for a while.
type harm struct {
	about  string
	length time.Duration
	begin  func() // nil: it makes no sense now
	lift   func()
}

// fault draws one of a kind.
func (w *world) fault(kind Kind) harm {
	m := w.machines()[w.chance.IntN(len(w.machines()))]
	length := time.Duration(100_000_000 + w.chance.IntN(4_000_000_000))
	switch kind {
	case Crash, CrashAll, LongCrash, Leave:
		return w.stopping(kind, m, length)
	case Isolate:
		return w.cut(m.name, length, w.between(m.host, true, true, false))
	case CutOff:
		return w.cut(m.name, length, w.between(m.host, true, true, true))
	case OneWay:
		all := w.between(m.host, w.chance.IntN(2) == 0, w.chance.IntN(2) == 0, true)
		if len(all) == 0 {
			return harm{}
		}
		one := all[w.chance.IntN(len(all))]
		return w.cut(one.from.name+" to "+one.to.name, length, []way{one})
	case Lag:
		by := time.Duration(1+w.chance.IntN(400)) * time.Millisecond
		return w.changed(m.name, length, w.between(m.host, true, false, true), func(s *state) { s.extra += by }, func(s *state) { s.extra -= by })
	case Loss:
		return w.changed(m.name, length, w.between(m.host, true, true, true), func(s *state) { s.loss += 0.2 }, func(s *state) { s.loss -= 0.2 })
	case Away, AwayOne, Unsure:
		return w.configured(kind, m, length)
	case HandOver:
		return w.passing()
	case Program:
		return w.crashing()
	case DiskFull:
		h := w.full(m)
		h.length = length
		return h
	case DiskError:
		return w.erring(m)
	case Rot, Rollback, Wipe:
		return w.spoiled(kind, m)
	case CutClient:
		return w.cutClient(length)
	case Depose:
		return w.deposed()
	case Flap:
		return w.flapping(m, length)
	case Suspend:
		h := w.cut(m.name, length, w.between(m.host, true, true, true))
		cut, mend := h.begin, h.lift
		h.begin, h.lift = func() { m.gate.shut(); cut() }, func() { mend(); m.gate.open() }
		return h
	case ClockRate:
		rate := drift(w.chance, 0.05)
		return harm{about: fmt.Sprintf("%s to %.3f", m.name, rate), begin: func() { m.clock.turn(rate) }}
	case Reset:
		chance := rand.New(rand.NewPCG(w.chance.Uint64(), 1))
		return harm{about: m.name, begin: func() { w.net.breakSoon(m.host, chance) }}
	case Policy:
		return w.resized()
	case WallStep:
		to := time.Duration(w.chance.Int64N(int64(800*time.Millisecond))) - 400*time.Millisecond
		return harm{about: fmt.Sprint(m.name, " by ", to), begin: func() { m.wall.set(to) }}
	case Join:
		if len(w.machines()) >= w.o.Nodes+2 {
			return harm{}
		}
		return harm{about: fmt.Sprint("n", len(w.machines())), begin: func() {
			if m, err := w.machine(len(w.machines())); err == nil {
				m.start()
			}
		}}
	}
	return harm{}
}

// stopping are the faults that end a process.
func (w *world) stopping(kind Kind, m *machine, length time.Duration) harm {
	power := w.chance.IntN(2) == 0
	which := []*machine{m}
	switch kind {
	case CrashAll:
		which = slices.Clone(w.machines())
	case LongCrash:
		length = w.limits.FailedAfter + 2*w.limits.Lease + length
	case Leave:
		return harm{about: m.name, length: length, begin: m.leave, lift: m.start}
	}
	return harm{about: fmt.Sprintf("%s, power lost: %v", m.name, power), length: length,
		begin: func() {
			for _, m := range which {
				m.crash(power)
			}
		},
		lift: func() {
			for _, m := range which {
				m.start()
			}
		}}
}

// between lists the ways of a host with the nodes, and with the clients.
func (w *world) between(h *host, out, in, clients bool) (ways []way) {
	for _, other := range w.net.hosts {
		if other == h || !clients && w.isClient(other) {
			continue
		}
		if out {
			ways = append(ways, way{h, other})
		}
		if in {
			ways = append(ways, way{other, h})
		}
	}
	return ways
}

func (w *world) isClient(h *host) bool {
	if w.diary != nil && w.diary.host == h {
		return true
	}
	return slices.ContainsFunc(w.clients, func(c *client) bool { return c.host == h })
}

func (w *world) cut(about string, length time.Duration, ways []way) harm {
	return w.changed(about, length, ways, func(s *state) { s.cut++ }, func(s *state) { s.cut-- })
}

func (w *world) changed(about string, length time.Duration, ways []way, on, off func(*state)) harm {
	return harm{about: about, length: length, begin: func() { w.net.change(ways, on) }, lift: func() { w.net.change(ways, off) }}
}

// configured are the faults of geo-config.
func (w *world) configured(kind Kind, m *machine, length time.Duration) harm {
	c := w.config
	set := func(by int) func() {
		return func() {
			c.mu.Lock()
			defer c.mu.Unlock()
			switch kind {
			case Away:
				c.away += by
			case AwayOne:
				m.config += by
			default:
				c.lost += float64(by) * 0.4
			}
		}
	}
	return harm{about: m.name, length: length, begin: set(1), lift: set(-1)}
}

// passing tells the active of a slice to hand it over.
func (w *world) passing() harm {
	rows := w.rows()
	if len(rows) == 0 {
		return harm{}
	}
	row := rows[w.chance.IntN(len(rows))]
	others := row.Normals()
	to := others[w.chance.IntN(len(others))]
	return harm{about: fmt.Sprintf("of slice %d to %s", row.ID, w.nameOf(to)), begin: func() {
		w.work.Go(func() { w.handOver(row, to) })
	}}
}

// resized changes how many copies a slice is to have, as an administrator would.
func (w *world) resized() harm {
	rows := w.rows()
	if len(rows) == 0 {
		return harm{}
	}
	row := rows[w.chance.IntN(len(rows))].Clone()
	level := 1 + w.chance.IntN(3)
	if level == row.Policy.Level {
		return harm{}
	}
	w.resizes++
	key := fmt.Sprint("resize/", w.resizes)
	return harm{about: fmt.Sprintf("of slice %d to level %d", row.ID, level), begin: func() {
		from := row.Epoch
		row.Epoch++
		row.Policy.Level = level
		// The row may have changed just now: then it is one more fault that came to nothing.
		_, _ = w.config.store.Apply(context.Background(), geoconfig.Batch{Key: key, Slices: []geoconfig.SliceSwap{{From: from, Row: row}}})
	}}
}

func (w *world) nameOf(id ids.Node) string {
	for _, m := range w.machines() {
		if m.id() == id {
			return m.name
		}
	}
	return string(id)
}

// heal ends all faults.
func (w *world) heal() {
	w.net.mu.Lock()
	w.trace.say("world", "is healed; %d connections broke in the middle", w.net.resets)
	w.net.mu.Unlock()
	for _, m := range w.machines() {
		m.mu.Lock()
		m.erring = m.disk.files.Heal() && m.erring // one that failed may not have said so yet
		m.disk.files.SetCapacity(0)
		m.mu.Unlock()
		m.start()
	}
}
