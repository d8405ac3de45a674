package replica

import (
	"testing"
	"time"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/ids"
)

// leadingPair returns node a, which leads slice 1 beside its standby b, with c as a
// junior that follows, and the group.
func leadingPair(t *testing.T) (*Node, *group) {
	t.Helper()
	row := geoconfig.SliceRow{ID: 1, Epoch: 1, Active: "a", Policy: geoconfig.Policy{Level: 2}, Members: []geoconfig.Member{
		{Node: "a", State: geoconfig.Normal, Incarnation: 1}, {Node: "b", State: geoconfig.Normal, Incarnation: 1},
		{Node: "c", State: geoconfig.Migrating, Incarnation: 1}}}
	n := New(Config{Self: "a", Incarnation: 1, Boot: 1, Start: time.Hour})
	n.Learn(time.Hour, &row)
	g := n.groups[1]
	g.phase, g.noopSerial = phaseLead, 1
	g.storeEntry(&Entry{Slice: 1, Serial: 1, Epoch: 1, Time: 1})
	for _, id := range []ids.Node{"b", "c"} {
		m := g.memberOf(id)
		m.confirmed, m.leaseFrom, m.willingAt = true, time.Hour, time.Hour
		m.peer.answered, m.peer.answeredAt = 1, time.Hour
	}
	g.durable, g.memberOf("b").match, g.memberOf("b").next = 1, 1, 2
	g.advanceCommit()
	if g.leaseUntil() <= n.now || g.commit != 1 {
		t.Fatal("the active has no lease, or has committed nothing")
	}
	return n, g
}

// order proposes an entry of the slice, and returns its serial.
func order(n *Node, g *group, p Proposal) ids.Serial {
	p.Entry.Slice, p.Entry.Time, p.Entry.Data = 1, g.log.time+1, []byte("x")
	n.Propose(n.now, p)
	return g.log.last
}

// onDisk says that everything handed out is on this node's disk, and returns what the
// core said early since.
func onDisk(n *Node, g *group) []Early {
	n.Flush(n.now)
	g.durable = g.log.last
	g.noteDurable()
	return append([]Early(nil), n.Flush(n.now).Early...)
}

func TestEarly_ComesOnceTheEntryIsOnTheDisk(t *testing.T) {
	n, g := leadingPair(t)
	at := order(n, g, Proposal{Token: 7, Early: true, After: g.commit})
	if out := n.Flush(n.now); len(out.Early) != 0 {
		t.Errorf("before it is on the disk: %+v", out.Early)
	}
	if got := onDisk(n, g); len(got) != 1 || got[0].Token != 7 || got[0].Serial != at || got[0].Epoch != 1 {
		t.Errorf("got %+v, want one for serial %d", got, at)
	}
	if g.commit >= at {
		t.Fatal("it is committed: the test shows nothing")
	}
	if got := onDisk(n, g); len(got) != 0 {
		t.Errorf("it comes again: %+v", got)
	}
}

func TestEarly_WaitsForWhatItCountsOn(t *testing.T) {
	n, g := leadingPair(t)
	first := order(n, g, Proposal{})
	at := order(n, g, Proposal{Token: 7, Early: true, After: first})
	if got := onDisk(n, g); len(got) != 0 {
		t.Errorf("got %+v before serial %d is committed", got, first)
	}
	b := g.memberOf("b")
	b.match, b.next = first, first+1
	g.advanceCommit()
	if got := n.Flush(n.now).Early; len(got) != 1 || got[0].Serial != at {
		t.Errorf("got %+v, want one for serial %d", got, at)
	}
}

func TestEarly_NoneWhileMembersChange(t *testing.T) {
	for name, change := range map[string]func(*group){
		"a swap is under way":           func(g *group) { g.swap = &pendingSwap{Swap: Swap{From: 1, After: *g.row}} },
		"a hand-over is under way":      func(g *group) { g.handover = &handover{to: "b", since: g.n.now} },
		"a junior is in its last step":  func(g *group) { m := g.memberOf("c"); m.lastStep.begun, m.lastStep.begunAt = true, g.n.now },
		"the row changed since":         func(g *group) { row := g.row.Clone(); row.Epoch++; g.row = &row },
		"it is still being looked into": func(g *group) { g.phase = phaseSync },
	} {
		n, g := leadingPair(t)
		n.c.Bugs.TakeoverHearsOne = true // changes nothing here, but that a state is not checked which no input leads to
		order(n, g, Proposal{Token: 7, Early: true})
		change(g)
		if got := onDisk(n, g); len(got) != 0 {
			t.Errorf("%s: got %+v", name, got)
		}
	}
}

// TestEarly_AJuniorNeedsIt has a junior hold what is committed, but not what was said
// early. It is not made normal: if it took over, it would lack that.
func TestEarly_AJuniorNeedsIt(t *testing.T) {
	n, g := leadingPair(t)
	m := g.memberOf("c")
	m.peer.steadyFrom = 1
	at := order(n, g, Proposal{Token: 7, Early: true})
	m.match, m.whole, m.next = at-1, at-1, at
	if !g.isEqual(m) {
		t.Fatal("the junior is not equal before anything is said early: the test shows nothing")
	}
	if len(onDisk(n, g)) != 1 {
		t.Fatal("nothing was said early")
	}
	if g.isEqual(m) {
		t.Error("a junior without the entry may become normal")
	}
	m.match, m.whole, m.next = at, at, at+1
	if !g.isEqual(m) {
		t.Error("a junior with the entry may not become normal")
	}
}
