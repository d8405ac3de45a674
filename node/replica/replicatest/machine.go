package replicatest

import (
	"fmt"
	"maps"
	"time"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/replica"
)

// cluster is what the machines reach: one another, and the clients' caches.
type cluster struct {
	machines []*machine
	byID     map[ids.Node]*machine
	caches   []*cache
}

// machine is one node: a core, its disk, its driver.
type machine struct {
	*sim
	*cluster
	config *config
	check  *checker

	index int
	id    ids.Node
	core  *replica.Node
	up    bool
	boot  uint64
	// incarnation is of the data directory.
	incarnation ids.Incarnation
	paused      Time // until
	inbox       []func()
	offset      Time    // of its clock
	drift       float64 // of its clock

	disk     disk
	stallTo  Time // the disk answers nothing before
	position replica.Position
	durable  replica.Position

	state  map[string]string // applied, volatile; the disk's checkpoints hold copies
	role   replica.RoleKind
	leases leases
	calls  map[uint64]func(replica.Reply)
	tokens uint64
}

func newMachine(s *sim, all *cluster, c *config, check *checker, i int) *machine {
	m := &machine{sim: s, cluster: all, config: c, check: check, index: i, id: nodeName(i), incarnation: 1,
		offset: s.between(0, time.Hour), drift: 1 + float64(s.rng.IntN(81)-40)/1000}
	m.disk.init()
	return m
}

// clock is what the machine's boottime clock shows.
func (m *machine) clock() Time {
	return m.offset + time.Hour + Time(float64(m.now-time.Hour)*m.drift)
}

func (m *machine) start() {
	m.boot++
	m.up = true
	m.paused, m.stallTo = 0, 0
	m.inbox = nil
	m.position, m.durable = 0, 0
	m.core = replica.New(replica.Config{Self: m.id, Incarnation: m.incarnation, Boot: uint64(m.index)<<32 | m.boot, Start: m.clock(),
		Lease: Lease, TickEvery: tickEvery, Bugs: m.o.Bugs.Core,
		Limits: replica.Limits{KeepBytes: m.o.Keep, MessageBytes: 2 << 10, FlightBytes: 16 << 10, UncommittedEntries: 64}})
	m.leases.begin()
	m.calls = map[uint64]func(replica.Reply){}
	m.role = replica.RoleNone
	m.state = map[string]string{}
	if r, found := m.disk.restored(); found {
		m.state = maps.Clone(m.disk.checkpoint.state)
		if err := m.core.Restore(m.clock(), r); err != nil {
			panic(fmt.Sprint("seed ", m.o.Seed, ": ", err))
		}
		for _, e := range r.Entries {
			m.fetchChunks(e)
		}
	}
	boot := m.boot
	m.after(m.between(0, tickEvery), func() { m.tick(boot) })
	m.flush()
	m.config.greet(m)
}

func (m *machine) crash() {
	m.trace("%s crashes", m.id)
	m.up = false
	m.disk.crash(m.rng)
}

// restart crashes a machine and starts it again after a while.
func (m *machine) restart(after Time) {
	if !m.up {
		return
	}
	m.crash()
	m.after(after, func() {
		if !m.up {
			m.trace("%s starts", m.id)
			m.start()
		}
	})
}

// wipe leaves a crashed machine with an empty data directory.
func (m *machine) wipe() {
	m.disk = disk{}
	m.disk.init()
	m.incarnation++
}

func (m *machine) tick(boot uint64) {
	if m.boot != boot || !m.up {
		return
	}
	m.after(tickEvery, func() { m.tick(boot) })
	if m.now < m.paused {
		return
	}
	m.do(func() { m.core.Tick(m.clock()) })
	m.endLeases()
	switch m.rng.IntN(64) {
	case 0:
		m.save()
	case 1, 2, 3, 4:
		if !m.calm {
			m.disk.remember()
		}
	}
}

// do runs an input now, or when the machine goes on.
func (m *machine) do(input func()) {
	if !m.up {
		return
	}
	if m.now < m.paused {
		m.inbox = append(m.inbox, input)
		return
	}
	input()
	m.flush()
}

// pause stops the machine as SIGSTOP does; what comes waits.
func (m *machine) pause(d Time) {
	m.trace("%s stands still for %v", m.id, d)
	m.paused = m.now + d
	boot := m.boot
	m.after(d, func() {
		if m.boot != boot || !m.up || m.now < m.paused {
			return
		}
		queue := m.inbox
		m.inbox = nil
		for _, input := range queue {
			input()
		}
		m.flush()
	})
}

// later runs an input of this life after a while.
func (m *machine) later(d Time, input func()) {
	boot := m.boot
	m.after(d, func() {
		if m.boot == boot {
			m.do(input)
		}
	})
}

// send carries a core's message, encoded as it would be on a real wire.
func (m *machine) send(to ids.Node, msg *replica.Message) {
	dest := m.byID[to]
	if dest == nil {
		return
	}
	times := 1
	if !m.calm && m.chance(15) {
		times = 2
	}
	bytes := replica.AppendMessage(nil, msg)
	for range times {
		d, ok := m.pass(m.index, dest.index)
		if !ok {
			continue
		}
		if msg.Kind == m.o.Slow && !m.calm && m.chance(m.o.SlowShare) {
			d += m.between(0, m.o.SlowBy)
		}
		m.after(d, func() { dest.deliver(m.id, bytes) })
	}
}

func (m *machine) deliver(from ids.Node, b []byte) {
	m.do(func() {
		msg, rest, err := replica.DecodeMessage(b)
		if err != nil || len(rest) > 0 {
			panic(fmt.Sprint("message does not decode: ", err))
		}
		if o := m.o.Trace; o != nil && msg.Kind != replica.Beacon && msg.Kind != replica.Answer {
			m.trace("%s < %s kind %d epoch %d flags %x serial %d prev %d/%d commit %d entries %d row %v", m.id, from, msg.Kind,
				msg.Epoch, msg.Flags, msg.Serial, msg.Prev, msg.PrevEpoch, msg.Commit, len(msg.Entries), msg.Row != nil)
		} else if o != nil && len(msg.Excepted) > 0 {
			m.trace("%s < %s kind %d seq %d excepted", m.id, from, msg.Kind, msg.Sequence)
		}
		m.core.Receive(m.clock(), from, msg)
	})
}

var _ follower = (*machine)(nil)

// name and what follows implement follower.
func (m *machine) name() ids.Node { return m.id }

func (m *machine) number() int { return m.index }

func (m *machine) life() uint64 { return m.boot }

func (m *machine) hear(row *geoconfig.SliceRow) { m.core.Learn(m.clock(), row) }

func (m *machine) swapped(s replica.Swap, o replica.Outcome, row *geoconfig.SliceRow) {
	m.core.Swapped(m.clock(), s, o, row)
}

func (m *machine) learn(row *geoconfig.SliceRow) {
	m.do(func() { m.hear(row) })
}
