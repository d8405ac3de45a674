package replica

import (
	"fmt"
	"slices"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/invariant"
	"cartwheel.dev/node/replica/internal/bug"
)

// Valid returns the first invariant of a slice's parts that does not hold, as
// an error. It is for tests, which call it after every event: its cost grows
// with the members and with what waits.
func (n *Node) Valid() error {
	for _, g := range n.order {
		broken := g.valid()
		if broken == "" {
			broken = g.log.valid()
		}
		if broken != "" {
			return fmt.Errorf("slice %d at %s, epoch %d: %s", g.id, n.c.Self, g.row.Epoch, broken)
		}
	}
	return nil
}

// valid names the first invariant that is broken, "" if all hold.
func (g *group) valid() string {
	for _, broken := range []string{g.common.valid(), g.promises.valid(&g.common), g.history.valid(), g.reading.valid(),
		g.copying.valid(&g.history), g.rowChange.valid(g.row), g.succession.valid(g.phase), g.leading.valid(), g.following.valid(),
		g.takeover.valid()} {
		if broken != "" {
			return broken
		}
	}
	return ""
}

// check names the first claim that is false, "" if there is none.
func check(claims ...claim) string {
	for _, c := range claims {
		if !c.holds {
			return c.text
		}
	}
	return ""
}

// claim is one invariant.
type claim struct {
	holds bool
	text  string
}

func (c *common) valid() string {
	if broken := check(
		claim{c.rowRecord <= c.n.position, "the row's record was handed out"},
		claim{len(c.members) == len(c.row.Members), "the members are those of the row"},
		claim{!c.dirty || slices.Contains(c.n.dirty, c), "a dirty group is in the node's list"},
		claim{c.phase < phaseQuiet || c.row.Active == c.n.c.Self, "only the row's active acts"},
		claim{c.phase != phaseStandby || c.row.Active != c.n.c.Self, "a standby is not the row's active"},
		claim{c.phase != phaseStandby && !c.isActing() || !c.incomplete && !c.diverged, "only a whole copy counts"},
		claim{c.phase != phaseStandby && !c.isActing() || c.self >= 0 && c.members[c.self].state == geoconfig.Normal, "only a normal member counts"},
		claim{c.swap == nil || !c.swap.sent || c.swap.after <= c.n.persisted, "a swap is sent when its record is on disk"},
		claim{c.incomplete && !c.transferBegun || c.appliedEpoch == c.log.epochAt(c.applied), "the applied epoch is that of the entry"},
		claim{c.listed == (c.self >= 0), "a slice is ticked as long as the row lists this node"},
	); broken != "" {
		return broken
	}
	for i := range c.members {
		m := &c.members[i]
		if broken := m.valid(c.n.now); broken != "" {
			return fmt.Sprintf("member %s: %s", m.node, broken)
		}
		if broken := check(
			claim{m.node == c.row.Members[i].Node && m.state == c.row.Members[i].State, "node and state are as in the row"},
			claim{(m.peer == nil) == (i == c.self), "this node alone has no peer"},
			claim{!m.confirmed || m.peer != nil, "a confirmed member has a peer"},
			claim{!c.isActing() || m.match <= c.log.last, "what a member matches is in the log"},
			claim{c.phase < phaseSync || m.next <= c.log.last+1, "no member was sent more than there is"},
		); broken != "" {
			return fmt.Sprintf("member %s: %s", m.node, broken)
		}
	}
	return ""
}

func (m *member) valid(now Time) string {
	if broken := m.progress.valid(now); broken != "" {
		return broken
	}
	return m.lease.valid(now)
}

func (p *progress) valid(now Time) string {
	return check(
		claim{p.match < p.next, "match < next"},
		claim{p.whole <= p.match, "a member has no chunks of entries that it does not have"},
		claim{p.inFlight >= 0, "what is in flight is not negative"},
		claim{p.inFlight == 0 || p.next > p.match+1, "only what was sent and not acknowledged is in flight"},
		claim{!p.incomplete || p.match == 0, "an incomplete member matches nothing"},
		claim{p.match < p.regain || p.regain == 0, "a member that regains entries does not have them"},
		claim{p.sentAt <= now && p.progressAt <= now && p.resentAt <= now && p.markedAt <= now && max(p.wholeAt, p.straysAt) <= now, "nothing was sent in the future"},
	)
}

func (l *lease) valid(now Time) string {
	return check(
		claim{l.leaseFrom <= now && l.willingAt <= now, "no promise is from the future"},
	)
}

func (p *promises) valid(c *common) string {
	for i, peer := range p.doubtedPeers {
		for _, other := range p.doubtedPeers[:i] {
			if other == peer {
				return "a peer is doubted once"
			}
		}
		listed := 0
		for _, other := range peer.doubted {
			if other == c {
				listed++
			}
		}
		if listed != 1 {
			return "a doubted peer lists the slice once"
		}
	}
	return check(
		claim{p.graceFrom <= c.n.now, "the grace does not begin in the future"},
	)
}

func (h *history) valid() string {
	for i, u := range h.unheld {
		if i > 0 && h.unheld[i-1].Serial >= u.Serial {
			return "the entries without chunks are ascending"
		}
		if u.Serial >= h.log.base && h.log.epochAt(u.Serial) != u.Epoch {
			return "an entry without chunks is in the log"
		}
	}
	return check(
		claim{h.log.base <= h.applied, "the log begins at or before the applied serial"},
		claim{h.applied <= h.commit, "only what is committed is applied"},
		claim{h.commit <= h.log.last, "what is committed is in the log"},
		claim{h.stable <= h.commit, "what is stable is committed"},
		claim{h.durable <= h.log.last, "what is durable is in the log"},
	)
}

func (l *entryLog) valid() string {
	for i, r := range l.runs {
		if i > 0 && (l.runs[i-1].first >= r.first || l.runs[i-1].epoch >= r.epoch) {
			return "the runs of epochs are ascending"
		}
	}
	// The newest are enough, as this is asked after every event.
	for s := max(l.first, l.last-min(l.last, 7)); s <= l.last; s++ {
		if e := l.get(s); e == nil || e.Serial != s || e.Epoch != l.epochAt(s) {
			return "the entries in memory are those of the log, without a gap"
		}
	}
	return check(
		claim{l.base <= l.last, "the log does not end before its base"},
		claim{len(l.mem)-l.head == int(l.last+1-l.first), "the memory ends with the log"},
		claim{len(l.runs) == 0 || l.runs[len(l.runs)-1].first <= l.last, "the last run has entries"},
	)
}

func (r *reading) valid() string {
	for i, e := range r.readBack {
		if e.Serial != r.readBack[0].Serial+ids.Serial(i) {
			return "what was read back has no gap"
		}
	}
	return check(
		claim{r.pendingRead.From == 0 || r.pendingRead.From <= r.pendingRead.To, "a read asks for something"},
	)
}

func (c *copying) valid(h *history) string {
	cost := 0
	for s := h.applied + 1; c.transferBegun && s <= h.log.last; s++ {
		if e := h.log.get(s); e != nil {
			cost += e.cost()
		}
	}
	return check(
		claim{!c.transferBegun || c.incomplete, "a transfer that has begun is of an incomplete state"},
		claim{!c.transferBegun || c.transferAsked, "a transfer that has begun was asked for"},
		claim{!c.transferBegun || c.delayedBytes == cost, "the delayed bytes are those of the entries that are not applied"},
		claim{c.delayedBytes == 0 || c.incomplete, "only an incomplete state delays entries"},
	)
}

func (r *rowChange) valid(row *geoconfig.SliceRow) string {
	return check(
		claim{r.swap == nil || r.swap.From == row.Epoch && r.swap.After.Epoch == row.Epoch+1, "a pending swap follows the row"},
	)
}

func (s *succession) valid(p phase) string {
	return check(
		claim{s.handover == nil || p == phaseLead, "only a leading active hands over"},
		claim{s.handover == nil || s.handover.revokeAsked || !s.handover.stopped, "a hand-over stops after it asked for the leases"},
		claim{s.handover == nil || s.handover.stopped || !s.handover.offerTaken, "an offer is taken after the active stopped"},
	)
}

func (l *leading) valid() string {
	if !l.isActing() && len(l.waiting)+len(l.retries)+len(l.inflight)+l.uncommitted > 0 {
		return "only an active has proposals"
	}
	last := l.commit
	for _, w := range l.waiting {
		if w.serial <= last || w.serial > l.log.last {
			return "what waits is ascending, above the commit serial and in the log"
		}
		last = w.serial
	}
	for _, w := range l.retries {
		if w.serial <= l.commit || w.serial > l.log.last {
			return "a retry waits for what is in flight"
		}
	}
	at := ids.Serial(0)
	for _, p := range l.asked {
		if p.serial <= at || p.serial > l.log.last || !l.isActing() {
			return "what is to be said early is ascending, in the log, and an active's"
		}
		at = p.serial
	}
	return check(
		claim{l.said <= l.log.last, "what was said early is in the log"},
		claim{l.uncommitted >= 0, "the uncommitted bytes are not negative"},
		claim{(l.phase != phaseSync && l.phase != phaseLead) || l.noopSerial > 0, "an active begins its epoch with a no-op"},
		claim{l.phase != phaseLead || l.commit >= l.noopSerial, "a leading active has committed its no-op"},
		claim{l.sentStable <= l.stable, "what was sent as stable is stable"},
	)
}

func (f *following) valid() string {
	return check(
		claim{f.waitFrom <= f.n.now, "the wait does not begin in the future"},
		claim{f.verified || f.ackedTo == 0, "an acknowledgement follows a comparison"},
		claim{max(f.ackedTo, f.loggedTo) <= f.matched, "only what matches is acknowledged"},
		claim{f.matched <= f.log.last, "what matches is in the log"},
	)
}

func (t *takeover) valid() string {
	if c := t.candidate; c != nil {
		for i, id := range c.answered {
			if slices.Contains(c.answered[:i], id) || t.memberOf(id) == nil || id == t.n.c.Self {
				return "another member answers a candidate once"
			}
		}
	}
	return check(
		claim{t.candidate == nil || t.phase == phaseStandby, "only a standby is a candidate"},
		claim{t.announcedAt <= t.n.now, "nothing was announced in the future"},
	)
}

// checkParts ends the process where a part contradicts itself. What tests plant
// in the core may break a part before it breaks a promise, and is let through.
func (g *group) checkParts() {
	if g.n.c.Bugs != (bug.Set{}) {
		return
	}
	if broken := g.valid(); broken != "" {
		invariant.Check(false, invariant.Violation{Rule: broken, Slice: g.id, Serial: g.log.last})
	}
}

// checkOrder ends the process where the copy contradicts itself. It is on in
// production, before anything that the copy promises leaves the node.
func (h *history) checkOrder(s ids.Slice) {
	invariant.Check(h.log.base <= h.applied, invariant.Violation{Rule: invariant.BaseApplied, Slice: s,
		Serial: h.applied, Want: uint64(h.log.base), Got: uint64(h.applied)})
	invariant.Check(h.applied <= h.commit, invariant.Violation{Rule: invariant.AppliedCommitted, Slice: s,
		Serial: h.applied, Want: uint64(h.commit), Got: uint64(h.applied)})
	invariant.Check(h.commit <= h.log.last, invariant.Violation{Rule: invariant.CommittedLogged, Slice: s,
		Serial: h.commit, Want: uint64(h.log.last), Got: uint64(h.commit)})
}
