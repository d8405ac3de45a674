package replica

import (
	"slices"
	"testing"
	"time"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
)

// coherence is the time to coherence in these tests.
const coherence = 4 * time.Second

// lagging is a slice of three members, of which a leads. A test says when the others
// have chunks.
type lagging struct{ *five }

// newLagging returns one with a time to coherence; 0: none.
func newLagging(t *testing.T, coherence time.Duration) *lagging {
	t.Helper()
	row := geoconfig.SliceRow{ID: 1, Epoch: 5, Active: "a", Policy: geoconfig.Policy{Level: 3, Coherence: coherence}}
	for _, id := range []ids.Node{"a", "b", "c"} {
		row.Members = append(row.Members, geoconfig.Member{Node: id, State: geoconfig.Normal, Incarnation: 1})
	}
	l := &lagging{newFive(t, nil, 0, row)}
	l.run("a leads", func() bool { return l.of("a").phase == phaseLead })
	return l
}

func (l *lagging) of(id ids.Node) *group { return l.nodes[id].groups[1] }

// write has a node order an entry with chunks, and returns its serial.
func (l *lagging) write(at ids.Node) ids.Serial {
	l.t.Helper()
	serial, last := l.nodes[at].Next(1)
	l.nodes[at].Propose(l.now, Proposal{Entry: Entry{Slice: 1, Time: last + 1, Data: []byte{1}, Chunks: make([]byte, AddressSize)}})
	l.settle()
	if l.of(at).log.last != serial {
		l.t.Fatalf("%s did not order entry %d", at, serial)
	}
	return serial
}

// hold gives nodes the chunks of everything.
func (l *lagging) hold(nodes ...ids.Node) {
	for _, id := range nodes {
		for _, e := range l.nodes[id].Lacking(1) {
			l.nodes[id].Held(l.now, 1, e.Serial, e.Epoch)
		}
	}
	l.settle()
}

// pass lets time pass.
func (l *lagging) pass(d time.Duration) {
	end := l.now + d
	l.run("time", func() bool { return l.now >= end })
}

func (l *lagging) state(id ids.Node) geoconfig.MemberState {
	m, _ := l.row.Member(id)
	return m.State
}

func TestCoherence_TheActivesChunksSuffice(t *testing.T) {
	l := newLagging(t, coherence)
	serial := l.write("a")
	if got := l.of("a").commit; got != serial {
		t.Errorf("committed up to %d, want %d: the entry is on all disks, and its chunks are at the active", got, serial)
	}
	if got := l.nodes["b"].Lacking(1); len(got) != 1 || got[0].Serial != serial {
		t.Errorf("b lacks %v, want the chunks of entry %d", got, serial)
	}
	without := newLagging(t, 0)
	serial = without.write("a")
	without.hold("b")
	if got := without.of("a").commit; got >= serial {
		t.Error("without a time to coherence, an entry is committed whose chunks a standby lacks")
	}
	without.hold("c")
	if got := without.of("a").commit; got != serial {
		t.Errorf("committed up to %d, want %d once all have the chunks", got, serial)
	}
}

// TestCoherence_WaitsBeforeTheTimePasses has one standby bring no chunks. What is
// ordered when half of the time has passed waits for them.
func TestCoherence_WaitsBeforeTheTimePasses(t *testing.T) {
	l := newLagging(t, coherence)
	first := l.write("a")
	l.hold("c")
	l.pass(coherence/2 + 200*time.Millisecond)
	late := l.write("a")
	l.hold("c")
	if got := l.of("a").commit; got >= late || got < first {
		t.Errorf("committed up to %d, want %d, while b lacks chunks for too long", got, late-1)
	}
	l.hold("b")
	if got := l.of("a").commit; got != late {
		t.Errorf("committed up to %d, want %d once b has the chunks", got, late)
	}
	if next := l.write("a"); l.of("a").commit != next {
		t.Error("the next entry waits, though nothing is late any more")
	}
}

func TestCoherence_BoundsWhatAMemberLacks(t *testing.T) {
	l := newLagging(t, coherence)
	committed := l.of("a").commit
	for range maxLag + 10 {
		l.write("a")
		l.hold("c")
	}
	if got := l.of("a").commit - committed; got > maxLag+1 || got < maxLag/2 {
		t.Errorf("%d entries are committed whose chunks b lacks, want at most %d", got, maxLag)
	}
}

// TestCoherence_TakesAStuckMemberOut has a standby answer everything and bring no
// chunks for the time, while operations wait for it.
func TestCoherence_TakesAStuckMemberOut(t *testing.T) {
	l := newLagging(t, coherence)
	l.write("a")
	l.hold("c")
	l.pass(coherence/2 + 2*time.Second)
	late := l.write("a")
	l.hold("c")
	if got := l.state("b"); got != geoconfig.Normal {
		t.Fatalf("b is %v before it was waited for long enough", got)
	}
	l.run("b is taken out", func() bool { return l.state("b") == geoconfig.Failed })
	l.run("the group goes on", func() bool { return l.of("a").commit >= late })
	l.run("b is back as a junior", func() bool { return l.state("b").Junior() })
	l.pass(4 * time.Second)
	if got := l.state("b"); !got.Junior() {
		t.Errorf("b is %v without the chunks", got)
	}
	l.hold("b")
	l.run("b is normal", func() bool { l.hold("b"); return l.state("b") == geoconfig.Normal })
}

// TestCoherence_GoesOnWithoutLostChunks has the active go away while the others lack
// chunks. One of them takes over and orders; what is new is bounded as before.
func TestCoherence_GoesOnWithoutLostChunks(t *testing.T) {
	l := newLagging(t, coherence)
	lost := l.write("a")
	l.mute = func(from ids.Node) bool { return from == "a" }
	alive := []ids.Node{"b", "c"}
	l.order = alive
	l.run("b leads", func() bool { return l.of("b").phase == phaseLead })
	if got := l.of("b").commit; got < lost {
		t.Errorf("committed up to %d, want what was acknowledged, %d", got, lost)
	}
	serial := l.write("b")
	if got := l.of("b").commit; got != serial {
		t.Errorf("committed up to %d, want %d", got, serial)
	}
	for _, id := range alive {
		if got := l.nodes[id].Lacking(1); len(got) == 0 || got[0].Serial != lost {
			t.Errorf("%s lacks %v, want entry %d first", id, got, lost)
		}
	}
	l.pass(coherence/2 + 200*time.Millisecond)
	late := l.write("b")
	if got := l.of("b").commit; got >= late {
		t.Error("the lag of what the new active orders has no bound")
	}
	c := l.nodes["c"]
	for _, e := range c.Lacking(1) {
		if e.Serial != lost {
			c.Held(l.now, 1, e.Serial, e.Epoch)
		}
	}
	l.settle()
	if got := l.of("b").commit; got != late {
		t.Errorf("committed up to %d, want %d: only what nobody here has is missing", got, late)
	}
	if b := l.of("b"); !b.hasAll(b.memberOf("c")) {
		t.Error("a member that lacks what the active lacks too may not count")
	}
}

// TestCoherence_TakesOutAMemberThatLacksOlderChunks has a standby lack chunks that the new
// active has. It gets them within the time, or counts no more until it has them.
func TestCoherence_TakesOutAMemberThatLacksOlderChunks(t *testing.T) {
	l := newLagging(t, coherence)
	all := l.order
	l.write("a")
	l.hold("b")
	l.mute, l.order = func(from ids.Node) bool { return from == "a" }, []ids.Node{"b", "c"}
	l.run("b leads", func() bool { return l.of("b").phase == phaseLead })
	l.mute, l.order = func(ids.Node) bool { return false }, all
	l.run("a is back", func() bool { return l.state("a") == geoconfig.Normal })
	l.run("c is taken out", func() bool { return l.state("c") == geoconfig.Failed })
	l.run("c is a junior", func() bool { return l.state("c").Junior() })
	l.pass(4 * time.Second)
	if got := l.state("c"); !got.Junior() {
		t.Errorf("c is %v without the chunks", got)
	}
	l.hold("c")
	l.run("c is normal", func() bool { return l.state("c") == geoconfig.Normal })
}

func TestCoherence_HandsOverWhenTheSuccessorHasAll(t *testing.T) {
	l := newLagging(t, coherence)
	l.write("a")
	l.hold("c")
	if got := l.nodes["a"].HandOver(l.now, 1, "b"); got != fault.None {
		t.Fatalf("got %v", got)
	}
	l.pass(time.Second)
	if l.of("a").handover == nil || l.of("a").handover.revokeAsked {
		t.Error("the hand-over goes on without the chunks, or ended")
	}
	l.hold("b")
	l.pass(100 * time.Millisecond)
	if y := l.of("a").handover; y == nil || !y.revokeAsked {
		t.Error("the hand-over does not go on with the chunks")
	}
	l = newLagging(t, coherence)
	for range mostDrained + 1 {
		l.write("a")
		l.hold("c")
	}
	if got := l.nodes["a"].HandOver(l.now, 1, "b"); got != fault.Again {
		t.Errorf("a successor that lacks a lot: got %v, want Again", got)
	}
}

func TestLacks_StayInOrder(t *testing.T) {
	l := newLagging(t, coherence)
	b := l.of("b")
	b.unheld = []EntryID{{3, 5}, {7, 6}}
	l.nodes["b"].Lacks(1, []EntryID{{2, 5}, {3, 5}, {5, 5}, {9, 6}})
	if want := []EntryID{{2, 5}, {3, 5}, {5, 5}, {7, 6}, {9, 6}}; !slices.Equal(b.unheld, want) {
		t.Errorf("got %v, want %v", b.unheld, want)
	}
}

func TestMessage_CarriesLoggedAndTerm(t *testing.T) {
	for _, m := range []Message{{Kind: Ack, Slice: 1, Serial: 3, Logged: 1 << 40}, {Kind: Append, Slice: 1, Term: 9}, {Kind: Offer, Slice: 1, Leases: []byte{1}}} {
		b := AppendMessage(nil, &m)
		var p Pieces
		p.Message(&m)
		list, _ := p.Take()
		if !slices.Equal(slices.Concat(list...), b) {
			t.Errorf("%+v: the pieces are another encoding", m)
		}
		got, rest, err := DecodeMessage(b)
		if err != nil || len(rest) > 0 || got.Logged != m.Logged || got.Term != m.Term || len(got.Leases) != len(m.Leases) {
			t.Errorf("%+v: got %+v, %v", m, got, err)
		}
	}
	bad := AppendMessage(nil, &Message{Kind: Ack, Slice: 1, Leases: []byte{0x80}})
	if _, _, err := DecodeMessage(bad); !fault.Is(err, fault.Corrupt) {
		t.Errorf("a number cut short: got %v, want Corrupt", err)
	}
}
