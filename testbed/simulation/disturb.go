package simulation

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"time"
)

// disturb lets faults come and go for the length of the run.
func (f *faults) disturb() {
	until := time.Now().Add(f.o.Length)
	kinds := f.o.Faults
	stop := make(chan struct{})
	var under sync.WaitGroup
	for len(kinds) > 0 {
		pause := time.Duration(50_000_000 + f.chance.IntN(2_000_000_000))
		if time.Now().Add(pause).After(until) {
			break
		}
		pass(pause)
		kind := kinds[f.chance.IntN(len(kinds))]
		h := f.fault(kind)
		if h.begin == nil {
			continue
		}
		f.trace.say("fault", "%s %s for %v", kind, h.about, h.length)
		f.seen[kind]++
		h.begin()
		under.Go(func() {
			t := time.NewTimer(h.length)
			select {
			case <-t.C:
			case <-stop:
				t.Stop()
			}
			if h.lift != nil {
				h.lift()
				f.trace.say("fault", "%s %s is over", kind, h.about)
			}
		})
	}
	pass(time.Until(until))
	close(stop)
	under.Wait()
}

// fault draws one of a kind.
func (f *faults) fault(kind Kind) harm {
	m := f.machines()[f.chance.IntN(len(f.machines()))]
	length := time.Duration(100_000_000 + f.chance.IntN(4_000_000_000))
	switch kind {
	case Crash, CrashAll, LongCrash, Leave:
		return f.stopping(kind, m, length)
	case Isolate:
		return f.cut(m.name, length, f.between(m.host, true, true, false))
	case CutOff:
		return f.cut(m.name, length, f.between(m.host, true, true, true))
	case OneWay:
		all := f.between(m.host, f.chance.IntN(2) == 0, f.chance.IntN(2) == 0, true)
		if len(all) == 0 {
			return harm{}
		}
		one := all[f.chance.IntN(len(all))]
		return f.cut(one.from.name+" to "+one.to.name, length, []way{one})
	case Lag:
		by := time.Duration(1+f.chance.IntN(400)) * time.Millisecond
		return f.changed(m.name, length, f.between(m.host, true, false, true), func(s *state) { s.extra += by }, func(s *state) { s.extra -= by })
	case Loss:
		return f.changed(m.name, length, f.between(m.host, true, true, true), func(s *state) { s.loss += 0.2 }, func(s *state) { s.loss -= 0.2 })
	case Away, AwayOne, Unsure:
		return f.configured(kind, m, length)
	case HandOver:
		return f.passing()
	case Program:
		return f.crashing()
	case DiskFull:
		h := f.full(m)
		h.length = length
		return h
	case DiskError:
		return f.erring(m)
	case Rot, Rollback, Wipe:
		return f.spoiled(kind, m)
	case CutClient:
		return f.cutClient(length)
	case Depose:
		return f.deposed()
	case Flap:
		return f.flapping(m, length)
	case Suspend:
		h := f.cut(m.name, length, f.between(m.host, true, true, true))
		cut, mend := h.begin, h.lift
		h.begin, h.lift = func() { m.gate.shut(); cut() }, func() { mend(); m.gate.open() }
		return h
	case ClockRate:
		rate := drift(f.chance, 0.05)
		return harm{about: fmt.Sprintf("%s to %.3f", m.name, rate), begin: func() { m.clock.turn(rate) }}
	case Reset:
		chance := rand.New(rand.NewPCG(f.chance.Uint64(), 1))
		return harm{about: m.name, begin: func() { f.net.breakSoon(m.host, chance) }}
	case Policy, Drain, Home:
		return f.ordered(kind, m, length)
	case WallStep:
		to := time.Duration(f.chance.Int64N(int64(800*time.Millisecond))) - 400*time.Millisecond
		return harm{about: fmt.Sprint(m.name, " by ", to), begin: func() { m.wall.set(to) }}
	case Join:
		if len(f.machines()) >= f.o.Nodes+2 {
			return harm{}
		}
		return harm{about: fmt.Sprint("n", len(f.machines())), begin: func() {
			if m, err := f.add(len(f.machines())); err == nil {
				m.start()
			}
		}}
	}
	return harm{}
}

// heal ends all faults.
func (f *faults) heal() {
	f.net.mu.Lock()
	f.trace.say("world", "is healed; %d connections broke in the middle", f.net.resets)
	f.net.mu.Unlock()
	for _, m := range f.machines() {
		m.mu.Lock()
		m.erring = m.disk.files.Heal() && m.erring // one that failed may not have said so yet
		m.disk.files.SetCapacity(0)
		m.mu.Unlock()
		m.start()
	}
}
