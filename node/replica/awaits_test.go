package replica

import (
	"testing"
	"time"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/hlc"
)

// standbyRow is the row of a slice in which a is a standby.
func standbyRow() geoconfig.SliceRow {
	return geoconfig.SliceRow{ID: 1, Epoch: 3, Active: "b", Policy: geoconfig.Policy{Level: 2}, Members: []geoconfig.Member{
		{Node: "a", State: geoconfig.Normal, Incarnation: 1}, {Node: "b", State: geoconfig.Normal, Incarnation: 1}}}
}

// withChunks is a member that restored two entries with chunks, neither applied.
func withChunks(t *testing.T) *Node {
	t.Helper()
	n := New(Config{Self: "a", Incarnation: 1, Boot: 1, Start: time.Hour})
	r := Restored{Row: standbyRow()}
	for s := ids.Serial(1); s <= 2; s++ {
		r.Entries = append(r.Entries, &Entry{Slice: 1, Serial: s, Epoch: 1, Time: hlc.Time(s), Chunks: make([]byte, 32)})
	}
	if err := n.Restore(time.Hour, r); err != nil {
		t.Fatal(err)
	}
	return n
}

func TestAwaits_WhileTheEntryIsInTheLog(t *testing.T) {
	for _, c := range []struct {
		name   string
		do     func(n *Node)
		serial ids.Serial
		epoch  ids.Epoch
		want   bool
	}{
		{"of an entry in the log", func(*Node) {}, 2, 1, true},
		{"of another epoch's entry", func(*Node) {}, 2, 2, false},
		{"behind the log", func(*Node) {}, 3, 1, false},
		{"that are here", func(n *Node) { n.Held(time.Hour, 1, 2, 1) }, 2, 1, false},
		{"of an entry that was cut off", func(n *Node) { n.groups[1].cutLog(2) }, 2, 1, false},
		{"of the entry before it", func(n *Node) { n.groups[1].cutLog(2) }, 1, 1, true},
		{"of an entry that the log follows now", func(n *Node) { n.groups[1].log.rebase(1) }, 1, 1, true},
		{"of an entry whose log counts for nothing", func(n *Node) { n.groups[1].voidCopy(0, 0, 0) }, 2, 1, false},
	} {
		n := withChunks(t)
		c.do(n)
		if got := n.Awaits(1, c.serial, c.epoch); got != c.want {
			t.Errorf("chunks %s: awaited: %v, want %v", c.name, got, c.want)
		}
	}
}

// TestAwaits_EntriesAppliedWithoutTheirChunks starts a node whose last life
// applied entries without their chunks. It awaits them, also where its log
// begins behind the entry.
func TestAwaits_EntriesAppliedWithoutTheirChunks(t *testing.T) {
	n := New(Config{Self: "a", Incarnation: 1, Boot: 1, Start: time.Hour})
	r := Restored{Row: standbyRow(), Base: 7, BaseEpoch: 1, Applied: 8, ClientsAt: 7, Unheld: []EntryID{{5, 1}, {8, 1}}}
	for s := ids.Serial(8); s <= 9; s++ {
		r.Entries = append(r.Entries, &Entry{Slice: 1, Serial: s, Epoch: 1, Time: hlc.Time(s), Chunks: make([]byte, 32)})
	}
	if err := n.Restore(time.Hour, r); err != nil {
		t.Fatal(err)
	}
	g := n.groups[1]
	for _, step := range []struct{ held, have ids.Serial }{{5, 7}, {8, 8}, {9, 9}} {
		if !n.Awaits(1, step.held, 1) {
			t.Errorf("the chunks of entry %d are not awaited", step.held)
		}
		n.Held(time.Hour, 1, step.held, 1)
		if got := g.heldSerial(); got != step.have {
			t.Errorf("with the chunks of entry %d this node holds everything to %d, want %d", step.held, got, step.have)
		}
	}
}
