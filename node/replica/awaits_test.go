package replica

import (
	"testing"
	"time"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/node/hlc"
)

// withChunks is a member that restored two entries with chunks, neither applied.
func withChunks(t *testing.T) *Node {
	t.Helper()
	row := geoconfig.SliceRow{ID: 1, Epoch: 3, Active: "b", Policy: geoconfig.Policy{Level: 2}, Members: []geoconfig.Member{
		{Node: "a", State: geoconfig.Normal, Incarnation: 1}, {Node: "b", State: geoconfig.Normal, Incarnation: 1}}}
	n := New(Config{Self: "a", Incarnation: 1, Boot: 1, Start: time.Hour})
	r := Restored{Row: row}
	for s := geoconfig.Serial(1); s <= 2; s++ {
		r.Entries = append(r.Entries, &Entry{Slice: 1, Serial: s, Epoch: 1, Time: hlc.Time(s), Chunks: make([]byte, 32)})
	}
	if err := n.Restore(time.Hour, r); err != nil {
		t.Fatal(err)
	}
	return n
}

func TestChunksAreAwaitedWhileTheirEntryIsInTheLog(t *testing.T) {
	for _, c := range []struct {
		name   string
		do     func(n *Node)
		serial geoconfig.Serial
		epoch  geoconfig.Epoch
		want   bool
	}{
		{"of an entry in the log", func(*Node) {}, 2, 1, true},
		{"of another epoch's entry", func(*Node) {}, 2, 2, false},
		{"behind the log", func(*Node) {}, 3, 1, false},
		{"that are here", func(n *Node) { n.Held(time.Hour, 1, 2, 1) }, 2, 1, false},
		{"of an entry that was cut off", func(n *Node) { n.groups[1].cut(2) }, 2, 1, false},
		{"of the entry before it", func(n *Node) { n.groups[1].cut(2) }, 1, 1, true},
		{"of an entry whose log counts for nothing", func(n *Node) { n.groups[1].void(0, 0, 0) }, 2, 1, false},
	} {
		n := withChunks(t)
		c.do(n)
		if got := n.Awaits(1, c.serial, c.epoch); got != c.want {
			t.Errorf("chunks %s: awaited: %v, want %v", c.name, got, c.want)
		}
	}
}
