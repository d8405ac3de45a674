package replica

import (
	"testing"

	"cartwheel.dev/geo-config/ids"
)

// TestUnapplied_TellsWhatIsNotKnown has a slice with entries that are not applied, beside
// one whose copy is void because the node is no member any more.
func TestUnapplied_TellsWhatIsNotKnown(t *testing.T) {
	n := New(Config{Self: "a"})
	g := &group{}
	g.n, g.self, g.applied = n, 0, 2
	g.log.reset(1, 1, 5)
	for s := ids.Serial(2); s <= 4; s++ {
		g.log.append(&Entry{Slice: 1, Serial: s, Epoch: 1})
	}
	void := &group{}
	void.n, void.self, void.incomplete = n, -1, true
	n.groups[1], n.groups[2] = g, void
	var serials []ids.Serial
	if known := n.Unapplied(func(e *Entry) { serials = append(serials, e.Serial) }); !known || len(serials) != 2 || serials[0] != 3 || serials[1] != 4 {
		t.Errorf("got %v, %v, want entries 3 and 4", serials, known)
	}
	void.self = 0 // a member again, whose state is being copied
	if n.Unapplied(func(*Entry) {}) {
		t.Error("with a state that is not whole all is said to be known")
	}
	void.self = -1
	g.applied = 1
	g.log.forget(2)
	if n.Unapplied(func(*Entry) {}) {
		t.Error("with an entry that is in the journal alone all is said to be known")
	}
}
