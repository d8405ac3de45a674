package replicatest

import (
	"bytes"
	"fmt"
	"maps"
	"math"
	"time"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/hlc"
	"cartwheel.dev/node/replica"
)

// machine is one node: a core, its disk, its driver.
type machine struct {
	w     *World
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
	far      Time // more than others', each way
	stallTo  Time // the disk answers nothing before
	position replica.Position
	durable  replica.Position

	state    map[string]string // applied, volatile; the disk's checkpoints hold copies
	role     replica.RoleKind
	leases   map[string]map[int]Time // key -> client -> end, by this clock
	granted  map[grantee]uint64      // the last grant
	grants   uint64                  // in this life
	blocked  map[string][]func()     // what waits for a key's leases to end
	changing map[string]int          // writes proposed and not answered
	calls    map[uint64]func(replica.Reply)
	tokens   uint64
}

func newMachine(w *World, i int) *machine {
	m := &machine{w: w, index: i, id: nodeName(i), incarnation: 1, offset: w.between(0, time.Hour), drift: 1 + float64(w.rng.IntN(81)-40)/1000}
	m.disk.init()
	return m
}

// clock is what the machine's boottime clock shows.
func (m *machine) clock() Time {
	return m.offset + time.Hour + Time(float64(m.w.now-time.Hour)*m.drift)
}

func (m *machine) start() {
	m.boot++
	m.up = true
	m.paused, m.stallTo = 0, 0
	m.inbox = nil
	m.position, m.durable = 0, 0
	m.core = replica.New(replica.Config{Self: m.id, Incarnation: m.incarnation, Boot: uint64(m.index)<<32 | m.boot, Start: m.clock(),
		Lease: Lease, TickEvery: tickEvery, Bugs: m.w.o.Bugs.Core,
		Limits: replica.Limits{KeepBytes: m.w.o.Keep, MessageBytes: 2 << 10, FlightBytes: 16 << 10, UncommittedEntries: 64}})
	m.leases, m.blocked = map[string]map[int]Time{}, map[string][]func(){}
	m.changing, m.granted = map[string]int{}, map[grantee]uint64{}
	m.calls = map[uint64]func(replica.Reply){}
	m.role = replica.RoleNone
	m.state = map[string]string{}
	if r, found := m.disk.restored(); found {
		m.state = maps.Clone(m.disk.checkpoint.state)
		if err := m.core.Restore(m.clock(), r); err != nil {
			panic(fmt.Sprint("seed ", m.w.o.Seed, ": ", err))
		}
		for _, e := range r.Entries {
			m.fetchChunks(e)
		}
	}
	boot := m.boot
	m.w.after(m.w.between(0, tickEvery), func() { m.tick(boot) })
	m.flush()
	m.w.config.greet(m)
}

func (m *machine) crash() {
	m.w.trace("%s crashes", m.id)
	m.up = false
	m.disk.crash(m.w.rng)
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
	m.w.after(tickEvery, func() { m.tick(boot) })
	if m.w.now < m.paused {
		return
	}
	m.do(func() { m.core.Tick(m.clock()) })
	m.endLeases()
	switch m.w.rng.IntN(64) {
	case 0:
		m.save()
	case 1, 2, 3, 4:
		if !m.w.calm {
			m.disk.remember()
		}
	}
}

// do runs an input now, or when the machine goes on.
func (m *machine) do(input func()) {
	if !m.up {
		return
	}
	if m.w.now < m.paused {
		m.inbox = append(m.inbox, input)
		return
	}
	input()
	m.flush()
}

// pause stops the machine as SIGSTOP does; what comes waits.
func (m *machine) pause(d Time) {
	m.w.trace("%s stands still for %v", m.id, d)
	m.paused = m.w.now + d
	boot := m.boot
	m.w.after(d, func() {
		if m.boot != boot || !m.up || m.w.now < m.paused {
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
	m.w.after(d, func() {
		if m.boot == boot {
			m.do(input)
		}
	})
}

func (m *machine) deliver(from ids.Node, b []byte) {
	m.do(func() {
		msg, rest, err := replica.DecodeMessage(b)
		if err != nil || len(rest) > 0 {
			panic(fmt.Sprint("message does not decode: ", err))
		}
		if o := m.w.o.Trace; o != nil && msg.Kind != replica.Beacon && msg.Kind != replica.Answer {
			m.w.trace("%s < %s kind %d epoch %d flags %x serial %d prev %d/%d commit %d entries %d row %v", m.id, from, msg.Kind,
				msg.Epoch, msg.Flags, msg.Serial, msg.Prev, msg.PrevEpoch, msg.Commit, len(msg.Entries), msg.Row != nil)
		} else if o != nil && len(msg.Excepted) > 0 {
			m.w.trace("%s < %s kind %d seq %d excepted", m.id, from, msg.Kind, msg.Sequence)
		}
		m.core.Receive(m.clock(), from, msg)
	})
}

func (m *machine) learn(row *geoconfig.SliceRow) {
	m.do(func() { m.core.Learn(m.clock(), row) })
}

// flush carries out what the core wants.
func (m *machine) flush() {
	for m.up {
		out := m.core.Flush(m.clock())
		m.w.check.valid(m)
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
		m.w.send(m, o.To, o.Message)
	}
	for _, a := range out.Applied {
		for _, e := range a.Entries {
			if key, value, ok := decodeWrite(e.Data); ok {
				m.state[key] = value
			}
			m.w.check.applied(m, e)
		}
	}
	for _, e := range out.Events {
		m.w.trace("%s: %s %s at epoch %d", m.id, e.What, e.Node, e.Epoch)
	}
	for _, r := range out.Roles {
		m.w.trace("%s is %v at epoch %d", m.id, r.Kind, r.Row.Epoch)
		m.w.check.row(m, r.Row.Epoch)
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
		m.w.trace("%s swaps %d: %s %v", m.id, s.From, s.Why, rowText(&s.After))
		m.w.config.swap(m, s)
		if s.Why == "slice.takeover" && !m.w.calm && m.w.chance(m.w.o.CandidateCrashes) {
			m.w.after(0, func() { m.w.restart(m, m.w.between(time.Millisecond, 2*Lease)) })
		}
	}
	for _, r := range out.Reads {
		var entries []*replica.Entry
		if !m.w.o.NoReads {
			entries = m.disk.read(r)
		}
		m.later(m.w.between(0, 5*time.Millisecond), func() { m.core.ReadDone(m.clock(), r, entries) })
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
	d := m.w.between(50*time.Microsecond, 2*time.Millisecond)
	if m.w.now < m.stallTo {
		d += m.stallTo - m.w.now
	}
	upTo := m.position
	boot := m.boot
	m.w.after(d, func() {
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
	m.later(m.w.between(0, 8*time.Millisecond), func() { m.core.Held(m.clock(), Slice, serial, epoch) })
}

// save makes a checkpoint and gives up old records.
func (m *machine) save() {
	if s, ok := m.core.Snapshot(Slice); ok && s.Serial > 0 {
		first := s.Serial - min(s.Serial, ids.Serial(m.w.rng.IntN(40)))
		if m.w.o.NoReads {
			first = s.Serial + 1
		}
		m.saveFrom(first)
	}
}

// saveFrom is save, but the entries from first on are kept.
func (m *machine) saveFrom(first ids.Serial) {
	if s, ok := m.core.Snapshot(Slice); ok && s.Serial > 0 {
		if !m.w.o.NoReads {
			first = min(m.core.Retain(Slice), first)
		}
		m.disk.save(s, maps.Clone(m.state), first)
	}
}

// drop throws away the state of a slice that the row gives to others. The drop
// may reach the disk only with the next checkpoint.
func (m *machine) drop() {
	m.state = map[string]string{}
	if m.w.chance(500) {
		m.disk.checkpoint = checkpoint{state: map[string]string{}}
	}
}

// transfer copies another machine's state.
func (m *machine) transfer(t replica.Transfer) {
	fail := func() { m.core.TransferFailed(m.clock(), Slice) }
	src := m.w.byID[t.Sources[m.w.rng.IntN(len(t.Sources))]]
	m.w.trace("%s wants the state from %s, diverged %v", m.id, src.id, t.Diverged)
	d, ok := m.w.pass(m.index, src.index)
	if !ok || !src.up || m.w.now < src.paused {
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
		m.finish(s, state, m.w.now+4*Lease)
	})
}

// finish puts a transferred state in place of the old one, once the record
// that voids the old one is on disk. It gives up after a while: the row may give
// the slice to others meanwhile.
func (m *machine) finish(s replica.Snapshot, state map[string]string, until Time) {
	m.later(m.w.between(time.Millisecond, Lease), func() {
		ready := m.core.TransferReady(Slice)
		if !ready && m.w.now < until {
			m.finish(s, state, until)
			return
		}
		if !ready || !m.w.calm && m.w.chance(100) {
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
	m.later(m.w.between(time.Millisecond, Lease), func() {
		if !m.core.TransferReady(Slice) || !m.w.calm && m.w.chance(100) {
			m.core.TransferFailed(m.clock(), Slice)
			return
		}
		at, _ := m.core.Incomplete(Slice)
		m.disk.replace(at.At, m.state)
		m.core.TransferDone(m.clock(), Slice, base)
	})
}

func rowText(r *geoconfig.SliceRow) string {
	s := fmt.Sprintf("epoch %d active %s hear %d", r.Epoch, r.Active, r.Hear)
	for _, m := range r.Members {
		s += fmt.Sprintf(" %s=%v", m.Node, m.State)
	}
	return s
}

func decodeWrite(b []byte) (key, value string, ok bool) {
	k, v, ok := bytes.Cut(b, []byte{'='})
	return string(k), string(v), ok
}

func (m *machine) timestamp() hlc.Time {
	_, last := m.core.Next(Slice)
	return max(last+1, hlc.Time(m.w.now))
}
