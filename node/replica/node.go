package replica

import (
	"math"
	"slices"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/hlc"
)

// Node is this node's part in all its replica groups. See the package
// documentation for how to drive it.
type Node struct {
	c   Config
	now Time
	// two takes turns: one is being filled, the other is with the driver.
	two    [2]Outputs
	out    *Outputs
	groups map[ids.Slice]*group
	order  []*group // those whose rows list this node, as they came: what happens must not depend on a map's order
	peers  map[ids.Node]*peer
	lined  []*peer // as they were made
	dirty  []*common

	position  Position
	persisted Position
	pending   fifo[pendingRecord]
	kept      fifo[keptEntry] // committed entries in memory, oldest first
	keptBytes int

	stuck      bool // the driver says so
	leaving    bool // likewise
	ticked     Time
	nextBeacon Time
}

type pendingRecord struct {
	position Position
	at       Time
	slice    ids.Slice
	serial   ids.Serial // 0: not an entry
	epoch    ids.Epoch
}

type keptEntry struct {
	group  *common
	serial ids.Serial
	cost   int
}

// New makes a Node without slices.
func New(c Config) *Node {
	n := &Node{c: c.withDefaults(), groups: map[ids.Slice]*group{}, peers: map[ids.Node]*peer{}}
	n.out = &n.two[0]
	n.now, n.ticked = c.Start, c.Start
	return n
}

func (n *Node) step(now Time) { n.now = max(n.now, now) }

// quiet reports whether the node started so recently that it takes nothing
// over and changes nothing in what it was active for.
func (n *Node) quiet() bool { return n.now < n.c.Start+n.c.Wait }

// halted reports whether the node makes no progress, by its driver's word or
// because its journal does not follow.
func (n *Node) halted() bool {
	if n.stuck {
		return true
	}
	oldest := n.pending.front()
	return oldest != nil && n.now-oldest.at > n.c.StuckAfter
}

// Restore brings back a slice that was found on disk; before the first input.
func (n *Node) Restore(now Time, r Restored) error {
	n.step(now)
	if n.groups[r.Row.ID] != nil || r.Row.ID == 0 {
		return fault.Errorf(fault.Invalid, "replica.Restore", "", "slice %d twice", r.Row.ID)
	}
	return n.newGroup(r.Row.ID).restore(r)
}

// Tick makes time pass.
func (n *Node) Tick(now Time) {
	n.step(now)
	suspended := n.now-n.ticked > max(n.c.Lease/2, 4*n.c.TickEvery)
	n.ticked = n.now
	for _, g := range n.order {
		if suspended {
			g.waitFrom, g.graceFrom = n.now, n.now
		}
		g.tick()
	}
	if n.now >= n.nextBeacon {
		n.nextBeacon = n.now + n.c.BeaconEvery
		for _, p := range n.lined {
			p.beaconDue = true
		}
	}
}

// Persisted says that all records up to a position are on disk.
func (n *Node) Persisted(now Time, upTo Position) {
	n.step(now)
	n.persisted = max(n.persisted, upTo)
	for p := n.pending.front(); p != nil && p.position <= upTo; p = n.pending.front() {
		g := n.groups[p.slice]
		if p.serial > g.durable && p.serial <= g.log.last && g.log.epochAt(p.serial) == p.epoch {
			g.durable = p.serial
			g.noteDurable()
		}
		g.markDirty()
		n.pending.pop()
	}
}

// record journals something for a group.
func (n *Node) record(g *common, r Record) Position {
	n.position++
	r.Position, r.Slice = n.position, g.id
	p := pendingRecord{position: n.position, at: n.now, slice: g.id}
	if r.Entry != nil {
		p.serial, p.epoch = r.Entry.Serial, r.Entry.Epoch
	}
	n.pending.push(p)
	n.out.Records = append(n.out.Records, r)
	return n.position
}

// Held says that all chunks of an entry are on this node's disk.
func (n *Node) Held(now Time, s ids.Slice, serial ids.Serial, epoch ids.Epoch) {
	n.step(now)
	if g := n.groups[s]; g != nil {
		g.noteHeld(EntryID{serial, epoch})
		g.markDirty()
	}
}

// Awaits reports whether an entry counts for this node, in its log or applied,
// and its chunks are not all on its disk: it was not cut off, and no state took
// its place.
func (n *Node) Awaits(s ids.Slice, serial ids.Serial, epoch ids.Epoch) bool {
	g := n.groups[s]
	return g != nil && slices.Contains(g.unheld, EntryID{serial, epoch})
}

// Receive takes a message from a peer that the connection has authenticated.
// The message belongs to the core from now on.
func (n *Node) Receive(now Time, from ids.Node, m *Message) {
	n.step(now)
	if from == n.c.Self {
		return
	}
	switch m.Kind {
	case Beacon:
		n.onBeacon(n.peer(from), m)
	case Answer:
		n.onAnswer(n.peer(from), m)
	default:
		n.onSlice(from, m)
	}
}

// Learn brings a slice row from geo-config.
func (n *Node) Learn(now Time, row *geoconfig.SliceRow) {
	n.step(now)
	n.learn(row)
}

func (n *Node) learn(row *geoconfig.SliceRow) *group {
	g := n.groups[row.ID]
	if g == nil {
		if _, in := row.Member(n.c.Self); !in || row.ID == 0 || row.Epoch == 0 {
			return nil
		}
		g = n.newGroup(row.ID)
	}
	g.setRow(row)
	return g
}

// PeerUp hints that a connection was made: what waits is sent again at once.
func (n *Node) PeerUp(now Time, peer ids.Node) {
	n.step(now)
	if p := n.peers[peer]; p != nil {
		p.beaconDue = true
		for _, s := range p.seats {
			s.group.members[s.index].sentAt = 0
			s.group.markDirty()
		}
	}
}

// PeerDown hints that a connection broke: what was under way may be lost.
// Nobody is silent before a lease has passed, so it only makes the next
// message a probe.
func (n *Node) PeerDown(now Time, peer ids.Node) {
	n.step(now)
	if p := n.peers[peer]; p != nil {
		for _, s := range p.seats {
			s.group.members[s.index].probeDue = true
		}
	}
}

// Stuck says whether this node makes no progress; it then loses its slices.
func (n *Node) Stuck(now Time, stuck bool) {
	n.step(now)
	n.stuck = stuck
}

// SliceStuck says the same of one slice.
func (n *Node) SliceStuck(now Time, s ids.Slice, stuck bool) {
	n.step(now)
	if g := n.groups[s]; g != nil {
		g.stuck = stuck
	}
}

// Flush returns what is to be done for the inputs so far. It is where queued
// entries become messages, so that a batch of inputs makes one message.
func (n *Node) Flush(now Time) *Outputs {
	n.step(now)
	for i := 0; i < len(n.dirty); i++ {
		g := n.dirty[i]
		g.dirty = false
		n.groups[g.id].flush()
	}
	n.dirty = n.dirty[:0]
	for _, p := range n.lined {
		if p.beaconDue {
			p.beaconDue = false
			n.beacon(p)
		}
	}
	n.trim()
	out := n.out
	if n.out == &n.two[0] {
		n.out = &n.two[1]
	} else {
		n.out = &n.two[0]
	}
	n.out.reset()
	return out
}

// trim gives up the oldest committed entries in memory beyond the limit.
func (n *Node) trim() {
	for n.keptBytes > n.c.Limits.KeepBytes {
		k := n.kept.front()
		if k == nil {
			return
		}
		if k.serial >= k.group.log.first && k.serial <= k.group.applied {
			k.group.log.forget(k.serial)
		}
		n.keptBytes -= k.cost
		n.kept.pop()
	}
}

// Next returns the serial that the next proposal of a slice gets, and the time
// that its own must be above.
func (n *Node) Next(s ids.Slice) (ids.Serial, hlc.Time) {
	g := n.groups[s]
	if g == nil {
		return 0, 0
	}
	return g.log.last + 1, g.log.time
}

// Until returns until when this node may acknowledge, read and grant sessions
// for a slice; not at all if that is not after now.
func (n *Node) Until(s ids.Slice) Time {
	g := n.groups[s]
	if g == nil || g.phase != phaseLead {
		return math.MinInt64
	}
	return g.leaseUntil()
}

// Retain returns the first serial that a driver which reads back keeps in its
// journal whatever its limits say: a normal member may still need what follows
// it, and its own epoch must be known then (Restored.BaseEpoch). What is before
// it is kept for members that are away, bounded by bytes and age. A driver that
// answers no Read need not keep it: what nobody has applied is never trimmed,
// and who misses what is gone gets the state.
func (n *Node) Retain(s ids.Slice) ids.Serial {
	g := n.groups[s]
	if g == nil {
		return 0
	}
	return min(g.onAllNormal, g.applied)
}

// Snapshot describes a slice's state at the last serial in Outputs.Applied.
func (n *Node) Snapshot(s ids.Slice) (Snapshot, bool) {
	g := n.groups[s]
	if g == nil || g.incomplete {
		return Snapshot{}, false
	}
	return g.snapshot(), true
}

func (c *common) snapshot() Snapshot {
	return Snapshot{Serial: c.applied, Epoch: c.appliedEpoch, Time: c.appliedTime, Clients: c.clients.encode(nil)}
}

// Applied names the last entry in Outputs.Applied; false where the state is not
// whole.
func (n *Node) Applied(s ids.Slice) (EntryID, bool) {
	g := n.groups[s]
	if g == nil || g.incomplete {
		return EntryID{}, false
	}
	return EntryID{Serial: g.applied, Epoch: g.appliedEpoch}, true
}

// MayGive reports whether others may copy a slice's state from here: the row
// counts on what this node has, and nothing is known to be missing. A member
// whose data directory is another one than the row's has an empty copy that
// looks whole; who took that would throw away a better one.
func (n *Node) MayGive(s ids.Slice) bool {
	g := n.groups[s]
	if g == nil || g.incomplete || g.self < 0 {
		return false
	}
	return g.members[g.self].incarnation == n.c.Incarnation && !g.lacksEntries()
}

// Unused reports whether nothing with data was ever ordered in a slice, as far
// as its log goes back: then its state is rightly empty. A state that was lost
// has a log that says otherwise. What precedes the log can hold one no-op for
// each epoch and the clients' registrations.
func (n *Node) Unused(s ids.Slice) bool {
	g := n.groups[s]
	if g == nil || g.hasData || g.incomplete || g.clients.answered() || uint64(g.log.base) > uint64(g.log.baseEpoch)+uint64(len(g.clients.byID)) {
		return false
	}
	for serial := g.applied + 1; serial <= g.log.last; serial++ {
		if e := g.log.get(serial); e == nil || len(e.Data) > 0 {
			return false
		}
	}
	return true
}

// Status is a slice's state for reports.
type Status struct {
	Row      *geoconfig.SliceRow
	Role     RoleKind
	Last     ids.Serial
	Commit   ids.Serial
	Until    Time
	Swapping bool
	Muted    bool           // the row is not on this disk yet: nothing is sent under it
	Members  []MemberStatus // as the active sees them; none elsewhere
}

// MemberStatus is what the active knows of a member.
type MemberStatus struct {
	Node  ids.Node
	State geoconfig.MemberState
	Match ids.Serial // on its disk and equal to the active's
	Heard Time       // when the last beacon that it answered was sent
}

// Status tells where a slice stands.
func (n *Node) Status(s ids.Slice) (Status, bool) {
	g := n.groups[s]
	if g == nil {
		return Status{}, false
	}
	st := Status{Row: g.row, Role: g.role(), Last: g.log.last, Commit: g.commit, Until: n.Until(s), Swapping: g.swap != nil, Muted: g.isMute()}
	if g.isActing() {
		for i := range g.members {
			m := &g.members[i]
			v := MemberStatus{Node: m.node, State: m.state, Match: m.match, Heard: m.willingAt}
			if m.peer == nil {
				v.Match, v.Heard = g.durable, n.now
			}
			st.Members = append(st.Members, v)
		}
	}
	return st, true
}

func (n *Node) event(g *common, what string, node ids.Node) {
	n.out.Events = append(n.out.Events, Event{Slice: g.id, What: what, Node: node, Epoch: g.row.Epoch})
}

// fifo is a queue that does not give its memory back.
type fifo[T any] struct {
	items []T
	head  int
}

func (f *fifo[T]) push(v T) {
	if f.head > 256 && f.head*2 > len(f.items) {
		k := copy(f.items, f.items[f.head:])
		clear(f.items[k:])
		f.items, f.head = f.items[:k], 0
	}
	f.items = append(f.items, v)
}

func (f *fifo[T]) front() *T {
	if f.head == len(f.items) {
		return nil
	}
	return &f.items[f.head]
}

func (f *fifo[T]) pop() {
	var zero T
	f.items[f.head] = zero
	f.head++
	if f.head == len(f.items) {
		f.items, f.head = f.items[:0], 0
	}
}
