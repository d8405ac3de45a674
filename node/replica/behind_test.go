package replica

import (
	"testing"
	"time"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/hlc"
)

// TestOnMismatch_BehindUntilTheLogsAgree has a member, once an active itself,
// whose entries from 2 on are of an epoch that the log of the new active, which
// begins at 3, replaced. Two messages were in flight, and it answers both.
func TestOnMismatch_BehindUntilTheLogsAgree(t *testing.T) {
	row := geoconfig.SliceRow{ID: 1, Epoch: 2, Active: "a", Policy: geoconfig.Policy{Level: 2}, Members: []geoconfig.Member{
		{Node: "a", State: geoconfig.Normal, Incarnation: 1}, {Node: "b", State: geoconfig.Recovering, Incarnation: 1}}}
	n := New(Config{Self: "a", Incarnation: 1, Boot: 1, Start: time.Hour})
	r := Restored{Row: row, Base: 3, BaseEpoch: 2, BaseTime: 3, Applied: 3}
	for s := ids.Serial(4); s <= 6; s++ {
		r.Entries = append(r.Entries, &Entry{Slice: 1, Serial: s, Epoch: 2, Time: hlc.Time(s)})
	}
	if err := n.Restore(time.Hour, r); err != nil {
		t.Fatal(err)
	}
	g := n.groups[1]
	m := g.memberOf("b")
	has := Message{Kind: Mismatch, Prev: 5, PrevEpoch: 1, Commit: 1, CommitEpoch: 1} // its last entry, and what it committed
	asked := has
	asked.Serial, asked.SerialEpoch = 3, 1
	if g.onMismatch(m, &asked); !m.behind {
		t.Error("it has another entry where the log begins, and is not behind")
	}
	if g.onMismatch(m, &has); !m.behind {
		t.Error("it is not behind any more, as its answer to the second message says nothing of where the log begins")
	}
	cut := has
	cut.Prev, cut.PrevEpoch = 3, 2
	if g.onMismatch(m, &cut); m.behind || m.next != 4 {
		t.Errorf("it has what the log begins with: behind %v, next %d, want 4", m.behind, m.next)
	}
}
