package replicatest

import (
	"bytes"
	"fmt"
	"time"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/replica"
)

// checker holds what must not be contradicted.
type checker struct {
	*sim
	history []*operation
	chosen  map[ids.Serial]content
	states  map[ids.Serial]stateAt
	epochs  map[ids.Node]ids.Epoch
	twoAt   ids.Epoch // two leases were last seen
	errors  []string
	broken  []string // of which those about safety
}

type content struct {
	epoch  ids.Epoch
	client uint64
	number uint64
	data   string
	level  uint32
	by     ids.Node
}

func newChecker(s *sim) *checker {
	return &checker{sim: s, chosen: map[ids.Serial]content{}, states: map[ids.Serial]stateAt{}, epochs: map[ids.Node]ids.Epoch{}}
}

func (c *checker) fail(format string, args ...any) {
	s := fmt.Sprintf("%.3f s: ", (c.now-time.Hour).Seconds()) + fmt.Sprintf(format, args...)
	c.trace("FAIL %s", s)
	if len(c.errors) < 8 {
		c.errors = append(c.errors, s)
		c.broken = append(c.broken, s)
	}
}

func (c *checker) begin(op *operation) { c.history = append(c.history, op) }

// stateAt is the state of a machine that has applied a serial, as text.
type stateAt struct {
	text  string
	epoch ids.Epoch
	by    ids.Node
}

// sameState checks that machines which have applied the same entry have the same
// state (STATE).
func (c *checker) sameState(id ids.Node, state map[string]string, e *replica.Entry) {
	v := stateAt{fmt.Sprint(state), e.Epoch, id}
	had, ok := c.states[e.Serial]
	if !ok || had.epoch != e.Epoch { // another entry: applied judges it
		c.states[e.Serial] = v
	} else if had.text != v.text {
		c.fail("after serial %d the state of %s is %s and that of %s is %s", e.Serial, id, v.text, had.by, had.text)
	}
}

// applied checks that a serial has one content for ever (ONE).
func (c *checker) applied(id ids.Node, state map[string]string, e *replica.Entry) {
	c.sameState(id, state, e)
	v := content{e.Epoch, e.Client, e.Number, string(e.Data), e.Level, id}
	had, ok := c.chosen[e.Serial]
	if !ok || had.level == 1 { // what one machine alone had may be lost with it
		c.chosen[e.Serial] = v
		return
	}
	by := had.by
	had.by = v.by
	if had != v {
		c.fail("serial %d is %+v at %s and was %+v at %s", e.Serial, v, id, had, by)
	}
}

// row checks that the epoch that a machine acts by never falls.
func (c *checker) row(id ids.Node, d *disk, e ids.Epoch) {
	if e < c.epochs[id] && d.sawEpoch(c.epochs[id]) {
		c.fail("%s fell from epoch %d to %d", id, c.epochs[id], e)
	}
	c.epochs[id] = e
}

// twoLeases notes that two machines may act at once.
func (c *checker) twoLeases(a, b ids.Node, epoch ids.Epoch) {
	if c.twoAt != epoch { // once is enough
		c.fail("%s and %s hold leases at once", a, b)
	}
	c.twoAt = epoch
}

// valid checks what a core finds of its parts' invariants (VALID).
func (c *checker) valid(err error) {
	if err != nil && !c.o.Bugs.breaksCore() {
		c.fail("%v", err)
	}
}

// swap checks what a change of the row may do.
func (c *checker) swap(old, row *geoconfig.SliceRow) {
	if row.Epoch != old.Epoch+1 {
		c.fail("epoch %d follows %d", row.Epoch, old.Epoch)
	}
	if n := len(row.Normals()); n < min(2, row.Policy.Level-1) && n < len(old.Normals()) {
		c.fail("epoch %d leaves %d normal members", row.Epoch, n)
	}
	if m, _ := row.Member(row.Active); m.State != geoconfig.Normal {
		c.fail("epoch %d has an active in state %v", row.Epoch, m.State)
	}
	if m, _ := old.Member(row.Active); m.State != geoconfig.Normal {
		c.fail("epoch %d makes %s active, which was %v", row.Epoch, row.Active, m.State)
	}
}

// operation is one call of a client, in the history.
type operation struct {
	client int
	id     uint64
	write  bool
	key    string
	value  string // written or read
	level  uint32
	call   Time
	ret    Time // 0: not answered
	serial uint64
	number uint64 // of a write
	// at and rank are found out in the end: the serial that a write got, and its
	// place among those of the key; of a read, that of the write that it saw.
	at   uint64
	rank int
}

func decodeWrite(b []byte) (key, value string, ok bool) {
	k, v, ok := bytes.Cut(b, []byte{'='})
	return string(k), string(v), ok
}
