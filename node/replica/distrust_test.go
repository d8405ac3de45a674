package replica

import (
	"testing"
	"time"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/ids"
)

// standing is a standby that follows its active.
type standing struct{ copied }

// newStanding returns a standby of a slice with these members beside it and an active.
func newStanding(t *testing.T, level int, others ...geoconfig.MemberState) *standing {
	t.Helper()
	row := standbyRow()
	row.Policy.Level = level
	for i, s := range others {
		row.Members = append(row.Members, geoconfig.Member{Node: ids.Node([]string{"c", "d"}[i]), State: s, Incarnation: 1})
	}
	c := &standing{copied{t: t, Node: New(Config{Self: "a", Incarnation: 1, Boot: 1, Start: time.Hour})}}
	if err := c.Restore(time.Hour, Restored{Row: row, Base: copiedBase, BaseEpoch: 3, BaseTime: copiedBase, Applied: copiedBase, ClientsAt: copiedBase}); err != nil {
		t.Fatal(err)
	}
	c.Tick(time.Hour + 50*time.Millisecond)
	c.turn()
	return c
}

// applied is how many entries are applied, of those that were sent.
func (c *standing) applied() ids.Serial {
	at, _ := c.Applied(1)
	return at.Serial - copiedBase
}

// send has the active send committed entries, which count from 1.
func (c *standing) send(first, last ids.Serial) ids.Serial {
	c.t.Helper()
	return c.follow(copiedBase+first, copiedBase+last) - copiedBase
}

// TestHold_StopsApplyingAndNotAcknowledging holds a standby while entries come.
func TestHold_StopsApplyingAndNotAcknowledging(t *testing.T) {
	c := newStanding(t, 2)
	c.send(1, 5)
	if got, ok := c.Hold(c.now, 1, 0); !ok || got != copiedBase+5 {
		t.Fatalf("held at %d, %v", got, ok)
	}
	if last := c.send(6, 12); last != 12 || c.applied() != 5 {
		t.Errorf("its log ends at %d and it has applied %d", last, c.applied())
	}
	c.turn()
	if g := c.groups[1]; g.ackedTo != copiedBase+12 {
		t.Errorf("it acknowledged %d, want 12: writers wait for it", g.ackedTo)
	}
	if got, _ := c.Hold(c.now, 1, copiedBase+9); got != copiedBase+9 || c.applied() != 9 {
		t.Errorf("held at 9 it has applied %d", got)
	}
	if got, _ := c.Hold(c.now, 1, copiedBase+3); got != copiedBase+9 {
		t.Errorf("what is applied is said to be %d", got)
	}
	c.Release(c.now, 1)
	if c.applied() != 12 {
		t.Errorf("released it has applied %d", c.applied())
	}
}

func TestHold_EndsByItself(t *testing.T) {
	c := newStanding(t, 2)
	c.send(1, 5)
	c.Hold(c.now, 1, 0)
	c.send(6, 12)
	began := c.now
	for i := 1; c.applied() == 5; i++ {
		c.Tick(began + time.Duration(i)*c.c.TickEvery)
		c.turn()
		if c.now-began > 2*c.c.Lease {
			t.Fatal("it is held for ever")
		}
	}
	if held := c.now - began; held < c.c.Lease || c.applied() != 12 {
		t.Errorf("it was held for %v of a lease of %v, and has applied %d", held, c.c.Lease, c.applied())
	}
}

func TestHold_IsForStandbys(t *testing.T) {
	c := newCopied(t)
	if _, ok := c.Hold(c.now, 1, 0); ok {
		t.Error("a junior is held")
	}
	if _, ok := c.Hold(c.now, 2, 0); ok || c.Distrust(c.now, 2) || c.Distrust(c.now, 1) {
		t.Error("a slice that is not here is held, or a junior's copy distrusted")
	}
	c.Release(c.now, 2)
}

// TestDistrust_NeedsEnoughOthers distrusts a standby beside members of several states.
func TestDistrust_NeedsEnoughOthers(t *testing.T) {
	const normal, failed = geoconfig.Normal, geoconfig.Failed
	for _, x := range []struct {
		level  int
		others []geoconfig.MemberState
		want   bool
	}{
		{2, nil, true},
		{1, nil, true},
		{3, []geoconfig.MemberState{normal}, true},
		{3, []geoconfig.MemberState{failed}, false},
		{3, nil, false},
		{2, []geoconfig.MemberState{failed}, true},
	} {
		c := newStanding(t, x.level, x.others...)
		c.send(1, 5)
		c.turn()
		c.Hold(c.now, 1, 0)
		if got := c.Distrust(c.now, 1); got != x.want || c.groups[1].diverged != x.want {
			t.Errorf("level %d beside %v: %v", x.level, x.others, got)
		}
		if before := c.groups[1].ackedTo; x.want {
			c.send(6, 8)
			if c.turn(); c.groups[1].ackedTo != before || c.MayGive(1) {
				t.Errorf("level %d beside %v: it acknowledges on, or may be copied", x.level, x.others)
			}
		}
	}
}
