package replica

import (
	"testing"
	"time"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/hlc"
)

// five are the cores of a slice with five members, brought back from their
// disks, over a network that the test cuts.
type five struct {
	t     *testing.T
	nodes map[ids.Node]*Node
	order []ids.Node
	mute  func(from ids.Node) bool // nothing of it arrives
	now   Time
	row   geoconfig.SliceRow
}

// newFive gives each node a log, as the epochs of its entries from serial 1 on.
func newFive(t *testing.T, logs map[ids.Node][]ids.Epoch, applied ids.Serial, row geoconfig.SliceRow) *five {
	f := &five{t: t, nodes: map[ids.Node]*Node{}, mute: func(ids.Node) bool { return false }, now: time.Hour, row: row}
	for i, m := range row.Members {
		n := New(Config{Self: m.Node, Incarnation: 1, Boot: uint64(i + 1), Start: f.now, Limits: Limits{MessageBytes: 1}})
		r := Restored{Row: row.Clone(), Applied: applied}
		for k, epoch := range logs[m.Node] {
			serial := ids.Serial(k + 1)
			r.Entries = append(r.Entries, &Entry{Slice: row.ID, Serial: serial, Epoch: epoch, Time: hlc.Time(serial), Data: []byte{byte(epoch)}})
		}
		if err := n.Restore(f.now, r); err != nil {
			t.Fatal(err)
		}
		f.nodes[m.Node] = n
		f.order = append(f.order, m.Node)
	}
	return f
}

// run lets time pass until done says so.
func (f *five) run(what string, done func() bool) {
	f.t.Helper()
	for range 400 {
		if done() {
			return
		}
		f.now += 50 * time.Millisecond
		for _, id := range f.order {
			f.nodes[id].Tick(f.now)
		}
		f.settle()
	}
	f.t.Fatalf("%s: never", what)
}

func (f *five) settle() {
	for busy := true; busy; {
		busy = false
		for _, id := range f.order {
			n := f.nodes[id]
			out := n.Flush(f.now)
			if out.Empty() {
				continue
			}
			busy = true
			f.carryOut(id, n, out)
		}
	}
}

func (f *five) carryOut(id ids.Node, n *Node, out *Outputs) {
	for _, o := range out.Messages {
		m, _, err := DecodeMessage(AppendMessage(nil, o.Message))
		if err != nil {
			f.t.Fatal(err)
		}
		if to := f.nodes[o.To]; to != nil && !f.mute(id) {
			to.Receive(f.now, id, m)
		}
	}
	swaps := append([]Swap(nil), out.Swaps...)
	if k := len(out.Records); k > 0 {
		n.Persisted(f.now, out.Records[k-1].Position)
	}
	for _, r := range out.Reads {
		n.ReadDone(f.now, r, nil)
	}
	for _, s := range swaps {
		if s.From != f.row.Epoch {
			row := f.row.Clone()
			n.Swapped(f.now, s, Lost, &row)
			continue
		}
		f.row = s.After.Clone()
		row := f.row.Clone()
		n.Swapped(f.now, s, Won, &row)
	}
}

// TestAdopt_TakesAHigherLogHeardLater has an active that made itself equal to
// one log hear of a higher one later. The two differ in what is not committed.
func TestAdopt_TakesAHigherLogHeardLater(t *testing.T) {
	row := geoconfig.SliceRow{ID: 1, Epoch: 5, Active: "a", Hear: 4, Policy: geoconfig.Policy{Level: 5}}
	for _, id := range []ids.Node{"a", "b", "c", "d", "e"} {
		row.Members = append(row.Members, geoconfig.Member{Node: id, State: geoconfig.Normal, Incarnation: 1})
	}
	for name, last := range map[string][]ids.Epoch{"as long": {2, 2, 2, 2, 2, 4, 4, 4}, "shorter": {2, 2, 2, 2, 2, 4, 4}, "longer": {2, 2, 2, 2, 2, 4, 4, 4, 4}} {
		t.Run(name, func(t *testing.T) {
			f := newFive(t, map[ids.Node][]ids.Epoch{
				"a": {2, 2, 2, 2, 2}, "b": {2, 2, 2, 2, 2, 3, 3, 3}, "c": {2, 2, 2, 2, 2}, "d": {2, 2, 2, 2, 2}, "e": last}, 5, row)
			// A message brings one entry: e is heard when a has two of b's three.
			a := f.nodes["a"].groups[1]
			began := false
			part := func() bool {
				began = began || a.log.epochAt(7) == 3
				return began
			}
			heard := func() bool { return a.memberOf("e").tailHeard }
			f.mute = func(from ids.Node) bool { return from == "e" && !part() || from == "b" && part() && !heard() }
			f.run("a has some of what b has", part)
			f.run("a has what e has", func() bool { return a.log.epochAt(ids.Serial(len(last))) == 4 })
			if a.row.Epoch != 6 {
				t.Errorf("the epoch is %d: a change of the row helped", a.row.Epoch)
			}
			f.run("a leads", func() bool { return a.phase == phaseLead })
		})
	}
}

// TestAdopt_KeepsTheHolderOfALongerLog mutes the member that has what was
// acknowledged, before its log was adopted.
func TestAdopt_KeepsTheHolderOfALongerLog(t *testing.T) {
	row := geoconfig.SliceRow{ID: 1, Epoch: 5, Active: "a", Hear: 2, Policy: geoconfig.Policy{Level: 2}, Members: []geoconfig.Member{
		{Node: "a", State: geoconfig.Normal, Incarnation: 1}, {Node: "b", State: geoconfig.Normal, Incarnation: 1},
		{Node: "c", State: geoconfig.Failed, Incarnation: 1}}}
	f := newFive(t, map[ids.Node][]ids.Epoch{"a": {2, 2}, "b": {2, 2, 2, 2}, "c": {2, 2, 2, 2}}, 2, row)
	a := f.nodes["a"].groups[1]
	away := true
	f.mute = func(from ids.Node) bool { return from == "b" && away && a.memberOf("b").tailHeard }
	f.run("a hears of a longer log", func() bool { return a.memberOf("b").tailHeard })
	for range 200 {
		f.now += 50 * time.Millisecond
		f.nodes["a"].Tick(f.now)
		f.settle()
		if b, _ := f.row.Member("b"); b.State != geoconfig.Normal || a.phase == phaseLead {
			t.Fatalf("a goes on without what b has: %+v", f.row)
		}
	}
	away = false
	f.run("a leads", func() bool { return a.phase == phaseLead })
	if got := a.log.epochAt(4); got != 2 {
		t.Errorf("a leads with epoch %d at serial 4, want what b had", got)
	}
}
