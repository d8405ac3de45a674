package replicatest

import (
	"bytes"
	"fmt"
	"maps"
	"time"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/node/hlc"
	"cartwheel.dev/node/replica"
)

// machine is one node: a core, its disk, its driver.
type machine struct {
	w      *World
	index  int
	id     geoconfig.NodeID
	core   *replica.Node
	up     bool
	boot   uint64
	paused Time // until
	inbox  []func()
	offset Time    // of its clock
	drift  float64 // of its clock

	disk     disk
	far      Time // more than others', each way
	stallTo  Time // the disk answers nothing before
	position replica.Position
	durable  replica.Position

	state    map[string]string // applied, volatile; the disk's checkpoints hold copies
	role     replica.RoleKind
	leases   map[string]map[int]Time // key -> client -> end, by this clock
	blocked  map[string][]func()     // what waits for a key's leases to end
	changing map[string]int          // writes proposed and not answered
	calls    map[uint64]func(replica.Reply)
	tokens   uint64
}

func newMachine(w *World, i int) *machine {
	m := &machine{w: w, index: i, id: nodeName(i), offset: w.between(0, time.Hour), drift: 1 + float64(w.rng.IntN(81)-40)/1000}
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
	m.core = replica.New(replica.Config{Self: m.id, Incarnation: 1, Boot: uint64(m.index)<<32 | m.boot, Start: m.clock(),
		Lease: Lease, TickEvery: tickEvery, Bugs: m.w.o.Bugs.Core,
		Limits: replica.Limits{KeepBytes: m.w.o.Keep, MessageBytes: 2 << 10, FlightBytes: 16 << 10, UncommittedEntries: 64}})
	m.leases, m.blocked = map[string]map[int]Time{}, map[string][]func(){}
	m.changing = map[string]int{}
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
	if d, ok := m.w.pass(configIndex, m.index); ok && m.w.now >= m.w.config.away {
		m.later(d+m.w.between(0, Lease), func() { m.core.Learn(m.clock(), m.w.config.row) })
	}
}

func (m *machine) crash() {
	m.w.trace("%s crashes", m.id)
	m.up = false
	m.disk.crash(m.w.rng)
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
	if m.w.rng.IntN(64) == 0 {
		m.save()
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

func (m *machine) deliver(from geoconfig.NodeID, b []byte) {
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
			m.w.check.applied(m, e)
			if key, value, ok := decodeWrite(e.Data); ok {
				m.state[key] = value
			}
		}
	}
	for _, e := range out.Events {
		m.w.trace("%s: %s %s at epoch %d", m.id, e.What, e.Node, e.Epoch)
	}
	for _, r := range out.Roles {
		m.w.trace("%s is %v at epoch %d", m.id, r.Kind, r.Row.Epoch)
		m.w.check.row(m, r.Row.Epoch)
		m.takeRole(r)
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
		first := s.Serial - min(s.Serial, geoconfig.Serial(m.w.rng.IntN(40)))
		if m.w.o.NoReads {
			first = s.Serial + 1
		}
		m.saveFrom(first)
	}
}

// saveFrom is save, but the entries from first on are kept.
func (m *machine) saveFrom(first geoconfig.Serial) {
	if s, ok := m.core.Snapshot(Slice); ok && s.Serial > 0 {
		if !m.w.o.NoReads {
			first = min(m.core.Retain(Slice), first)
		}
		m.disk.save(s, maps.Clone(m.state), first)
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
	if !ok {
		m.later(Lease/2, fail)
		return
	}
	state := maps.Clone(src.state)
	m.later(d, func() {
		if !m.core.TransferBegun(m.clock(), Slice, s) {
			m.core.TransferFailed(m.clock(), Slice)
			return
		}
		m.flush()
		m.finish(s, state)
	})
}

// finish puts a transferred state in place of the old one, once the record
// that voids the old one is on disk.
func (m *machine) finish(s replica.Snapshot, state map[string]string) {
	m.later(m.w.between(time.Millisecond, Lease), func() {
		if !m.core.TransferReady(Slice) {
			m.finish(s, state)
			return
		}
		if !m.w.calm && m.w.chance(100) {
			m.core.TransferFailed(m.clock(), Slice)
			return
		}
		m.state = maps.Clone(state)
		m.disk.replace(s, state)
		if err := m.core.TransferDone(m.clock(), Slice, s); err != nil {
			panic(err)
		}
	})
}

// disk holds what survives a crash.
type disk struct {
	synced     [][]byte
	unsynced   [][]byte
	checkpoint checkpoint
}

type checkpoint struct {
	snapshot replica.Snapshot
	state    map[string]string
}

func (d *disk) init() { d.checkpoint.state = map[string]string{} }

func (d *disk) sync(records int) {
	d.synced = append(d.synced, d.unsynced[:records]...)
	d.unsynced = append([][]byte(nil), d.unsynced[records:]...)
}

// crash loses what was not synced, or the later part of it.
func (d *disk) crash(rng interface{ IntN(int) int }) {
	if n := len(d.unsynced); n > 0 {
		d.synced = append(d.synced, d.unsynced[:rng.IntN(n+1)]...)
	}
	d.unsynced = nil
}

func (d *disk) save(s replica.Snapshot, state map[string]string, first geoconfig.Serial) {
	d.checkpoint = checkpoint{s, state}
	var kept [][]byte
	for _, b := range d.synced {
		rec, err := replica.DecodeRecord(b)
		if err != nil {
			panic(err)
		}
		if rec.Kind == replica.RecordEntry && rec.Entry.Serial < first {
			continue
		}
		kept = append(kept, b)
	}
	d.synced = kept
}

func (d *disk) replace(s replica.Snapshot, state map[string]string) {
	d.checkpoint = checkpoint{s, maps.Clone(state)}
}

// restored replays the records, as a driver does after a restart.
func (d *disk) restored() (replica.Restored, bool) {
	r := replica.Restored{Base: 0}
	found := false
	entries := map[geoconfig.Serial]*replica.Entry{}
	last := geoconfig.Serial(0)
	var resetAt *replica.Record
	for _, b := range d.synced {
		rec, err := replica.DecodeRecord(bytes.Clone(b))
		if err != nil {
			panic(err)
		}
		switch rec.Kind {
		case replica.RecordRow:
			r.Row, r.Intent, found = *rec.Row, false, true
		case replica.RecordIntent:
			r.Intent = rec.Row.Epoch == r.Row.Epoch
		case replica.RecordReset:
			clear(entries)
			last = rec.Base
			r.Incomplete, resetAt = true, &rec
		case replica.RecordComplete:
			r.Incomplete = false
		case replica.RecordEntry:
			for s := rec.Entry.Serial; s <= last; s++ {
				delete(entries, s)
			}
			entries[rec.Entry.Serial] = rec.Entry
			last = rec.Entry.Serial
		}
	}
	c := d.checkpoint.snapshot
	r.Base, r.BaseEpoch, r.BaseTime = c.Serial, c.Epoch, c.Time
	r.Applied, r.Clients, r.ClientsAt = c.Serial, c.Clients, c.Serial
	if resetAt != nil && (r.Incomplete || c.Serial < resetAt.Base) {
		if !r.Incomplete {
			panic("complete, but the checkpoint is older than the transfer")
		}
		r.Base, r.BaseEpoch, r.BaseTime = resetAt.Base, resetAt.BaseEpoch, resetAt.BaseTime
		r.Applied, r.Clients, r.ClientsAt = r.Base, nil, r.Base
	}
	if !r.Incomplete {
		// What the journal has before the checkpoint is for others; of its
		// oldest entry only the epoch counts.
		s := r.Base
		for s > 0 && entries[s] != nil {
			s--
		}
		if s++; s == 1 && entries[1] != nil {
			r.Base, r.BaseEpoch, r.BaseTime = 0, 0, 0
		} else if s <= r.Base {
			r.Base, r.BaseEpoch, r.BaseTime = s, entries[s].Epoch, entries[s].Time
		}
	}
	for s := r.Base + 1; entries[s] != nil; s++ {
		r.Entries = append(r.Entries, entries[s])
	}
	return r, found
}

func (d *disk) read(r replica.Read) []*replica.Entry {
	found := map[geoconfig.Serial]*replica.Entry{}
	for _, b := range append(d.synced[:len(d.synced):len(d.synced)], d.unsynced...) {
		rec, err := replica.DecodeRecord(b)
		if err != nil {
			panic(err)
		}
		if rec.Kind == replica.RecordReset {
			clear(found)
		}
		if rec.Kind == replica.RecordEntry && rec.Entry.Serial >= r.From && rec.Entry.Serial <= r.To {
			found[rec.Entry.Serial] = rec.Entry
		}
	}
	var out []*replica.Entry
	for s := r.From; found[s] != nil && len(out) < 16; s++ {
		out = append(out, found[s])
	}
	return out
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

// sawEpoch reports whether a row of that epoch is among what is on disk.
func (d *disk) sawEpoch(e geoconfig.Epoch) bool {
	for _, b := range d.synced {
		if rec, err := replica.DecodeRecord(b); err == nil && rec.Kind == replica.RecordRow && rec.Row.Epoch >= e {
			return true
		}
	}
	return false
}
