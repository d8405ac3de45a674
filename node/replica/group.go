package replica

import (
	"math"
	"slices"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/hlc"
)

// phase is where a node stands in a group.
type phase uint8

const (
	phaseNone    phase = iota // failed, removed, or its data is not what the row thinks
	phaseStandby              // normal, somebody else is active
	phaseJunior
	phaseQuiet   // active by the row, but it may have led, or promised another one, just before
	phaseRecover // active in a new epoch, finding out what the others have
	phaseSync    // its first entry of the epoch is not committed yet
	phaseLead
)

// group is this node's part in one slice.
type group struct {
	n     *Node
	id    ids.Slice
	row   *geoconfig.SliceRow
	rowAt Position // the record of row; nothing is sent before it is on disk
	phase phase
	dirty bool
	stuck bool
	// listed: the row lists this node, and the group is in Node.order.
	listed bool

	members []member // as in row
	self    int      // index in members, -1 if not there
	// doubt lists the peers that may count on promises given in an earlier
	// epoch; they get none until they are known to have this one.
	doubt     []*peer
	fromDisk  bool // an earlier life had it
	wasActive bool // in this life
	quietTo   Time // it does not act before, because of its own promises
	graceFrom Time // nobody is silent before a lease after this

	log    entryLog
	commit ids.Serial
	// stable is what a takeover cannot lose: commit less what was acknowledged
	// at level 1 alone. Members are told this.
	stable     ids.Serial
	everywhere ids.Serial // what all normal members have
	told       ids.Serial // the stable serial that all have been sent
	// common is the highest serial that an active said all normal members have
	// on their disks. Whoever is normal now has it: unless it lost its disk.
	common       ids.Serial
	commonEpoch  ids.Epoch
	lack         lack
	applied      ids.Serial
	appliedEpoch ids.Epoch
	appliedTime  hlc.Time
	durable      ids.Serial // entries up to here are on this disk
	unheld       []EntryID  // entries whose chunks are not; ascending
	clients      clients
	used         bool // an operation with data was applied
	read         Read // under way, From 0 if none
	readAt       Time
	readBack     []*Entry // what the last one brought

	// As a standby or junior.
	heardAt    Time
	leader     ids.Node   // who sent the last append
	leaderBoot uint64     // its life that showed to have this epoch
	matched    ids.Serial // equal to the active's, in this epoch
	leaderSaid ids.Serial // its commit serial
	ackSent    ids.Serial
	ackWanted  bool
	leaveAt    Time   // an acknowledgement last said that this node is leaving
	verified   bool   // matched means something
	misfit     bool   // a Mismatch is to be sent when the row is on disk
	incomplete bool   // the state at log.base is being transferred
	resets     uint64 // transfers begun in this life
	begun      bool   // and its serial is known
	// hold is where a transfer waits for rows: nothing later is applied.
	hold     ids.Serial
	resetAt  Position
	delayed  int // bytes of the entries that are not applied, while it is incomplete
	diverged bool
	// needed: the missed operations are gone; asked: the driver knows.
	transferNeeded, transferAsked bool
	transferAfter                 Time // not asked for before
	behindAt                      Time // since when a normal member is told that it is behind; 0: not
	comparedAt                    Time // the others were last asked what they have
	candidate                     *candidate
	rousedAt                      Time
	offer                         offer

	// As the active.
	swap        *pendingSwap
	swapAfter   Time // no new swap before
	attempts    uint64
	adopt       bool // others may hold what was acknowledged and is not here
	intent      bool
	noop        ids.Serial
	belowMax    ids.Serial // the highest serial committed below all
	belowAt     Time       // an operation below all was last seen that not all had
	wantHear    int
	uncommitted int // bytes
	inflight    map[operation]ids.Serial
	waits       []waiter // ascending serials
	late        []waiter // retries of what is under way
	yield       *yield
	inherited   *Role // what RoleLeading will carry
	lastUntil   Time
	lastRole    RoleKind
	lastEpoch   ids.Epoch
}

type operation struct{ client, number uint64 }

type waiter struct {
	serial ids.Serial
	token  uint64
}

// member is what this node knows of another member, or of itself (peer nil).
type member struct {
	peer        *peer
	node        ids.Node
	state       geoconfig.MemberState
	incarnation ids.Incarnation
	// confirmed: this life of the peer has told that it has this epoch;
	// answers to beacons up to confirmedAt do not count.
	confirmed   bool
	confirmedAt uint64
	leaseAt     Time // its lease counts from here
	wouldAt     Time // the last beacon it answered and did not except this slice
	since       Time // in this state since
	// What it has, and what it was sent.
	match      ids.Serial
	next       ids.Serial
	flight     int        // bytes sent after match
	backTo     ids.Serial // where sending went back to, and when
	backAt     Time
	sentAt     Time
	progressAt Time       // match rose, or nothing was outstanding
	probe      bool       // the next message asks for an answer
	resets     uint64     // transfers it began; what it said before the last is void
	knows      ids.Serial // what it knows to be committed
	leftBoot   uint64     // its life that said it is leaving, since it was normal last; 0: none
	incomplete bool
	received   ids.Serial // what had arrived there while it was
	last       lastStep
	lost       bool // it committed what is not here, namely
	lostAt     ids.Serial
	lostEpoch  ids.Epoch
	behind     bool // its missed operations are gone, or it diverged
	// Its last entry when it first spoke in this activeship.
	tailHeard bool
	tailVoid  bool // its state is being transferred: what it says counts for nothing
	tail      ids.Serial
	tailEpoch ids.Epoch
	// compared: it has told this life of this node what all normal members have.
	compared bool
	// regain is what an earlier life of it acknowledged and its present one
	// lacks; 0: nothing.
	regain ids.Serial
}

// leaving reports whether the member's present life is about to stop.
func (m *member) leaving() bool {
	return m.leftBoot != 0 && m.peer != nil && m.leftBoot == m.peer.boot
}

func (m *member) unconfirm(now Time) {
	m.confirmed, m.progressAt = false, now
	m.next, m.flight = m.match+1, 0
	m.sentAt = 0
}

func (n *Node) newGroup(id ids.Slice) *group {
	g := &group{n: n, id: id, row: &geoconfig.SliceRow{ID: id}, self: -1, heardAt: n.now, graceFrom: n.now}
	g.clients.init(&n.c.Limits)
	g.log.reset(0, 0, 0)
	n.groups[id] = g
	return g
}

// enlist has the group ticked as long as the row lists this node. Of a slice
// that it was taken out of only the row stays, for good: an older one must not
// pass for news, and a peer that sends late is told.
func (g *group) enlist() {
	n, was := g.n, g.listed
	g.listed = g.self >= 0
	switch {
	case g.listed && !was:
		n.order = append(n.order, g)
	case was && !g.listed:
		n.order = slices.DeleteFunc(n.order, func(o *group) bool { return o == g })
	}
}

func (g *group) touch() {
	if !g.dirty {
		g.dirty = true
		g.n.dirty = append(g.n.dirty, g)
	}
}

// mute reports whether the newest epoch is not on disk yet.
func (g *group) mute() bool { return g.rowAt > g.n.persisted }

// acting reports whether this node is the active and may use its powers once
// it has its lease.
func (g *group) acting() bool {
	return g.phase == phaseRecover || g.phase == phaseSync || g.phase == phaseLead
}

func (g *group) yielding() bool { return g.yield != nil && g.yield.stopped }

// required reports whether a member's acknowledgement and promise are needed:
// it is normal in the row, or in the one that a swap may have put there.
func (g *group) required(m *member) bool {
	if m.state == geoconfig.Normal {
		return true
	}
	if g.swap == nil {
		return false
	}
	after, _ := g.swap.After.Member(m.node)
	return after.State == geoconfig.Normal
}

// until returns the end of the lease: every standby's promise counts from the
// sending of the beacon that it answered.
func (g *group) until() Time {
	if !g.acting() || g.self < 0 {
		return math.MinInt64
	}
	until := g.n.now + g.n.c.Lease
	for i := range g.members {
		m := &g.members[i]
		if m.peer != nil && g.required(m) {
			if m.leaseAt == 0 {
				return math.MinInt64
			}
			until = min(until, m.leaseAt+g.n.c.Lease)
		}
	}
	return until
}

// renewed is called when a promise came in.
func (g *group) renewed() {
	until := g.until()
	if !g.acting() || until <= g.lastUntil {
		return
	}
	g.lastUntil = until
	if g.phase == phaseLead {
		g.n.out.Leases = append(g.n.out.Leases, Lease{g.id, g.row.Epoch, until})
	}
	g.advance()
}

func (g *group) memberOf(p ids.Node) *member {
	for i := range g.members {
		if g.members[i].node == p {
			return &g.members[i]
		}
	}
	return nil
}

func (g *group) normals() int {
	k := 0
	for i := range g.members {
		if g.members[i].state == geoconfig.Normal {
			k++
		}
	}
	return k
}

func (g *group) role() RoleKind {
	switch g.phase {
	case phaseStandby:
		return RoleStandby
	case phaseJunior:
		return RoleJunior
	case phaseQuiet, phaseRecover, phaseSync:
		return RoleActive
	case phaseLead:
		if g.yield != nil && g.yield.asked {
			return RoleYielding
		}
		return RoleLeading
	}
	return RoleNone
}

// publish tells the driver of a changed role or row.
func (g *group) publish() {
	k := g.role()
	if k == g.lastRole && g.row.Epoch == g.lastEpoch {
		return
	}
	r := Role{Slice: g.id, Kind: k, Row: g.row, Removed: g.self < 0}
	if k == RoleLeading && g.inherited != nil {
		r.Leases, r.LeasesAge, r.Wait = g.inherited.Leases, g.n.now-g.inherited.LeasesAge, g.inherited.Wait
		g.inherited = nil
	}
	g.lastRole, g.lastEpoch = k, g.row.Epoch
	g.n.out.Roles = append(g.n.out.Roles, r)
	if k == RoleLeading {
		g.n.out.Leases = append(g.n.out.Leases, Lease{g.id, g.row.Epoch, g.until()})
	}
}

// refuseAll answers everybody who waits: the outcome is unknown.
func (g *group) refuseAll() {
	for _, w := range append(g.waits, g.late...) {
		g.n.out.Replies = append(g.n.out.Replies, Reply{Slice: g.id, Token: w.token, Kind: fault.TimedOut})
	}
	g.waits, g.late = nil, nil
	g.inflight = nil
	g.uncommitted = 0
}

// held notes that an entry's chunks are here.
func (g *group) held(e EntryID) {
	g.unheld = slices.DeleteFunc(g.unheld, func(u EntryID) bool { return u == e })
}

// have returns the serial up to which this node has entries and their chunks
// on its disk.
func (g *group) have() ids.Serial {
	s := g.durable
	if g.n.c.Bugs.AckBeforeSync {
		s = g.log.last
	}
	if len(g.unheld) > 0 {
		s = min(s, g.unheld[0].Serial-1)
	}
	return s
}

// afterDurable is called when more entries are on this disk.
func (g *group) afterDurable() {
	if g.acting() {
		g.advance()
		return
	}
	g.follow()
}

// store appends an entry to the log and the journal; what was there from its
// serial on must have been cut.
func (g *group) store(e *Entry) {
	g.log.append(e)
	g.n.record(g, Record{Kind: RecordEntry, Entry: e})
	g.touch()
}

// cut removes the uncommitted entries from a serial on.
func (g *group) cut(from ids.Serial) {
	for s := from; g.incomplete && s <= g.log.last; s++ {
		if e := g.log.get(s); e != nil {
			g.delayed -= e.cost()
		}
	}
	g.log.cut(from)
	g.durable = min(g.durable, from-1)
	for len(g.unheld) > 0 && g.unheld[len(g.unheld)-1].Serial >= from {
		g.unheld = g.unheld[:len(g.unheld)-1]
	}
}

// apply hands over committed entries up to a serial, reading back those that
// are not in memory.
func (g *group) apply(upTo ids.Serial) {
	if g.incomplete {
		if !g.begun {
			return
		}
		upTo = min(upTo, g.hold)
	}
	if g.applied >= upTo {
		return
	}
	out := g.n.out
	start := len(out.entries)
	for g.applied < upTo {
		e := g.entry(g.applied + 1)
		if e == nil {
			g.wantRead(g.applied+1, upTo)
			break
		}
		g.clients.apply(e, g.appliedTime)
		g.applied, g.appliedEpoch, g.appliedTime = e.Serial, e.Epoch, e.Time
		g.used = g.used || len(e.Data) > 0
		if g.incomplete {
			g.delayed -= e.cost()
		}
		g.n.keep(g, e)
		out.entries = append(out.entries, e)
	}
	if k := len(out.entries); k > start {
		out.Applied = append(out.Applied, Apply{Slice: g.id, Entries: out.entries[start:k:k]})
	}
}

func (n *Node) keep(g *group, e *Entry) {
	c := e.cost()
	n.kept.push(keptEntry{g, e.Serial, c})
	n.keptBytes += c
}

// tick makes time pass for one group.
func (g *group) tick() {
	switch g.phase {
	case phaseStandby:
		g.tickStandby()
	case phaseJunior:
		g.tickJunior()
	case phaseQuiet:
		g.tickQuiet()
	case phaseRecover, phaseSync, phaseLead:
		g.tickActive()
	}
	g.tickSwap()
	if g.read.From != 0 && g.n.now-g.readAt > g.n.c.Lease {
		g.read.From = 0 // the driver forgot; whoever needs it asks again
	}
}

// flush turns what is queued into messages.
func (g *group) flush() {
	if g.mute() {
		return // Persisted touches the group again
	}
	if g.acting() {
		g.progress()
		for i := range g.members {
			g.feed(&g.members[i])
		}
		return
	}
	g.acknowledge()
}
