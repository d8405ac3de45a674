package replica

import (
	"math"
	"testing"
	"time"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/hlc"
)

const (
	copiedBytes = 1 << 10  // of each entry
	copiedKeep  = 16 << 10 // Limits.KeepBytes
	copiedBase  = 100
)

// copied is a junior that a state is copied to.
type copied struct {
	*Node
	t    *testing.T
	base Snapshot
}

// newCopied returns a junior that has heard that its state is given from copiedBase on.
func newCopied(t *testing.T) *copied {
	t.Helper()
	row := standbyRow()
	row.Members[0].State = geoconfig.Recovering
	c := &copied{t: t, base: Snapshot{Serial: copiedBase, Epoch: 3, Time: copiedBase}}
	c.Node = New(Config{Self: "a", Incarnation: 1, Boot: 1, Start: time.Hour, Limits: Limits{KeepBytes: copiedKeep}})
	if err := c.Restore(time.Hour, Restored{Row: row, Incomplete: true}); err != nil {
		t.Fatal(err)
	}
	c.Tick(time.Hour + 50*time.Millisecond)
	c.turn()
	if wanted, err := c.TransferBegun(c.now, 1, c.base); !wanted || err != nil {
		t.Fatalf("the state is not wanted: %v", err)
	}
	c.turn()
	return c
}

// turn has what the core says carried out at once, and returns it.
func (c *copied) turn() *Outputs {
	out := c.Flush(c.now)
	if n := len(out.Records); n > 0 {
		c.Persisted(c.now, out.Records[n-1].Position)
	}
	return out
}

// follow has the active send committed entries, and returns the last serial that
// this node has on its disk.
func (c *copied) follow(first, last ids.Serial) ids.Serial {
	c.t.Helper()
	m := &Message{Kind: Append, Slice: 1, Epoch: 3, Prev: first - 1, PrevEpoch: 3, Commit: last}
	for s := first; s <= last; s++ {
		m.Entries = append(m.Entries, &Entry{Slice: 1, Serial: s, Epoch: 3, Time: hlc.Time(s), Data: make([]byte, copiedBytes)})
	}
	c.Receive(c.now, "b", m)
	c.turn()
	return c.groups[1].log.last
}

func TestCopy_FollowsMoreThanItsMemoryHolds(t *testing.T) {
	c := newCopied(t)
	for last := ids.Serial(copiedBase); last < copiedBase+200; last += 10 {
		if got := c.follow(last+1, last+10); got != last+10 {
			t.Fatalf("its log ends at %d, where %d was sent: it takes no more", got, last+10)
		}
		if got := c.TransferHold(c.now, 1, math.MaxUint64); got != last+10 {
			t.Fatalf("it has applied %d, where %d is committed", got, last+10)
		}
		c.turn()
		if got := c.TransferHold(c.now, 1, 0); got != last+10 {
			t.Fatalf("it stands at %d, where %d is applied", got, last+10)
		}
	}
	c.TransferDone(c.now, 1, c.base)
	if s, whole := c.Snapshot(1); !whole || s.Serial != copiedBase+200 {
		t.Errorf("got %+v, whole: %v", s, whole)
	}
}

func TestStatus_IsWholeOnceTheCopyIs(t *testing.T) {
	c := newCopied(t)
	if st, _ := c.Status(1); st.Whole {
		t.Error("a copy under way counts as whole")
	}
	c.TransferHold(c.now, 1, math.MaxUint64)
	c.turn()
	c.TransferDone(c.now, 1, c.base)
	if st, _ := c.Status(1); !st.Whole {
		t.Error("a copy that is done does not count as whole")
	}
	c.groups[1].diverged = true
	if st, _ := c.Status(1); st.Whole {
		t.Error("a copy that differs from others counts as whole")
	}
}

func TestCopy_AppliesNothingBeyondItsHold(t *testing.T) {
	c := newCopied(t)
	held := ids.Serial(copiedBase)
	for _, upTo := range []ids.Serial{0, copiedBase + 3, copiedBase + 2, copiedBase + 5} {
		c.TransferHold(c.now, 1, upTo)
		c.follow(copiedBase+1, copiedBase+8)
		held = max(held, upTo)
		if in, _ := c.Incomplete(1); in.At.Serial != held {
			t.Errorf("held at %d it has applied %d, want %d", upTo, in.At.Serial, held)
		}
	}
	if got := c.follow(copiedBase+9, copiedBase+60); got >= copiedBase+60 || got < copiedBase+10 {
		t.Errorf("its log ends at %d: what waits has no bound, or none is taken", got)
	}
}

func TestCopy_BeginsAnewWhereTheLogIsGone(t *testing.T) {
	c := newCopied(t)
	c.follow(copiedBase+1, copiedBase+8)
	behind := &Message{Kind: Behind, Slice: 1, Epoch: 3, SerialEpoch: 3}
	for _, step := range []struct {
		base   ids.Serial // of the active's log
		wanted bool
	}{{copiedBase + 8, true}, {copiedBase + 9, false}} {
		behind.Serial = step.base
		c.Receive(c.now, "b", behind)
		c.turn()
		if got := c.TransferReady(1); got != step.wanted {
			t.Errorf("the active's log begins at %d, that of the copy ends at %d: goes on: %v", step.base, copiedBase+8, got)
		}
	}
	c.TransferFailed(c.now, 1)
	c.Tick(c.now + time.Minute)
	if out := c.turn(); len(out.Transfers) != 1 {
		t.Errorf("got the transfers %+v, want another", out.Transfers)
	}
}
