package replicatest

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/anishathalye/porcupine"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/replica"
	"cartwheel.dev/node/replica/internal/bug"
)

// Bugs are mistakes planted to show that the checkers find them.
type Bugs struct {
	Core bug.Set
	// LeaseOutlivesActive: clients honour an object lease for a fixed time,
	// even if its active was replaced meanwhile.
	LeaseOutlivesActive bool
}

// breaksCore reports whether a planted mistake is in the core itself, whose
// invariants it may break before a promise is.
func (b Bugs) breaksCore() bool { return b.Core != bug.Set{} }

// checker holds what must not be contradicted.
type checker struct {
	w       *World
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

func (c *checker) init(w *World) {
	*c = checker{w: w, chosen: map[ids.Serial]content{}, states: map[ids.Serial]stateAt{}, epochs: map[ids.Node]ids.Epoch{}}
}

func (c *checker) fail(format string, args ...any) {
	s := fmt.Sprintf("%.3f s: ", (c.w.now-time.Hour).Seconds()) + fmt.Sprintf(format, args...)
	c.w.trace("FAIL %s", s)
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
func (c *checker) sameState(m *machine, e *replica.Entry) {
	v := stateAt{fmt.Sprint(m.state), e.Epoch, m.id}
	had, ok := c.states[e.Serial]
	if !ok || had.epoch != e.Epoch { // another entry: applied judges it
		c.states[e.Serial] = v
	} else if had.text != v.text {
		c.fail("after serial %d the state of %s is %s and that of %s is %s", e.Serial, m.id, v.text, had.by, had.text)
	}
}

// applied checks that a serial has one content for ever (ONE).
func (c *checker) applied(m *machine, e *replica.Entry) {
	c.sameState(m, e)
	v := content{e.Epoch, e.Client, e.Number, string(e.Data), e.Level, m.id}
	had, ok := c.chosen[e.Serial]
	if !ok || had.level == 1 { // what one machine alone had may be lost with it
		c.chosen[e.Serial] = v
		return
	}
	by := had.by
	had.by = v.by
	if had != v {
		c.fail("serial %d is %+v at %s and was %+v at %s", e.Serial, v, m.id, had, by)
	}
}

// row checks that the epoch that a machine acts by never falls.
func (c *checker) row(m *machine, e ids.Epoch) {
	if e < c.epochs[m.id] && m.disk.sawEpoch(c.epochs[m.id]) {
		c.fail("%s fell from epoch %d to %d", m.id, c.epochs[m.id], e)
	}
	c.epochs[m.id] = e
}

// oneLease checks that no two machines may act at once (LEASE). A machine that
// stands still may, if its clock says so when it goes on.
func (c *checker) oneLease() {
	var acts *machine
	for _, m := range c.w.machines {
		if !m.up || m.core.Until(Slice) <= m.clock() {
			continue
		}
		if acts == nil {
			acts = m
			continue
		}
		if c.twoAt != c.w.config.row.Epoch { // once is enough
			c.fail("%s and %s hold leases at once", acts.id, m.id)
		}
		c.twoAt = c.w.config.row.Epoch
	}
}

// valid checks the invariants of a core's parts (VALID).
func (c *checker) valid(m *machine) {
	if err := m.core.Valid(); err != nil && !c.w.o.Bugs.breaksCore() {
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

// acknowledged checks that every acknowledged write is in the order (DUR).
func (c *checker) acknowledged() {
	for _, op := range c.history {
		if !op.write || op.ret == 0 {
			continue
		}
		v, ok := c.chosen[ids.Serial(op.serial)]
		if !ok || v.client != op.id || v.data != op.key+"="+op.value {
			c.fail("acknowledged write %s=%s at serial %d is gone; there is %+v", op.key, op.value, op.serial, v)
		}
	}
}

// final checks that what each member of the row has in the end is what the
// order says (DUR): nothing that was acknowledged is missing anywhere.
func (c *checker) final() {
	row := c.w.config.row
	active, _ := c.w.byID[row.Active].core.Status(Slice)
	want := map[string]string{}
	for s := ids.Serial(1); s <= active.Commit; s++ {
		v, ok := c.chosen[s]
		if !ok {
			c.fail("serial %d is committed and was applied nowhere", s)
		}
		if key, value, ok := decodeWrite([]byte(v.data)); ok {
			want[key] = value
		}
	}
	for _, op := range c.history {
		if op.write && ids.Serial(op.serial) > active.Commit {
			c.fail("acknowledged write %s=%s at serial %d is above what is committed", op.key, op.value, op.serial)
		}
	}
	for _, mb := range row.Members {
		if m := c.w.byID[mb.Node]; fmt.Sprint(m.state) != fmt.Sprint(want) {
			c.fail("%s has %v in the end, the order says %v", m.id, m.state, want)
		}
	}
}

// linearizable checks the history of every key (LIN), with its writes in the
// order that their serials give: where writes overlap, any other order would
// take for ever to be ruled out, and would not be that of the final state.
func (c *checker) linearizable() {
	serials := map[[2]uint64]uint64{} // of a client's write
	for s, v := range c.chosen {
		serials[[2]uint64{v.client, v.number}] = uint64(s)
	}
	for k := range keys {
		var ops []porcupine.Operation
		for _, op := range c.ordered(keyName(k), serials) {
			ret := op.ret
			if ret == 0 {
				ret = c.w.now + time.Hour // unknown to the end
			}
			ops = append(ops, porcupine.Operation{ClientId: op.client, Input: op.write, Output: op.rank, Call: int64(op.call), Return: int64(ret)})
		}
		switch porcupine.CheckOperationsTimeout(register, ops, 10*time.Second) {
		case porcupine.Unknown:
			c.fail("whether the history of %s is linearizable was not found out (%d operations)", keyName(k), len(ops))
		case porcupine.Illegal:
			for _, op := range ops {
				c.w.trace("client %d write %v of %v from %.4f to %.4f", op.ClientId, op.Input, op.Output, (Time(op.Call) - time.Hour).Seconds(), (Time(op.Return) - time.Hour).Seconds())
			}
			c.fail("the history of %s is not linearizable (%d operations)", keyName(k), len(ops))
		}
	}
}

// ordered returns what was done with a key: its writes that were ordered, and
// its reads that were answered. Their ranks tell which write, by its serial, is
// written or read; 0: none.
func (c *checker) ordered(key string, serials map[[2]uint64]uint64) []*operation {
	var writes, all []*operation
	for _, op := range c.history {
		switch {
		case op.key != key:
		case !op.write && op.ret > 0:
			all = append(all, op)
		case op.write:
			if op.at = serials[[2]uint64{op.id, op.number}]; op.at > 0 {
				writes = append(writes, op)
			}
		}
	}
	slices.SortFunc(writes, func(a, b *operation) int { return cmp.Compare(a.at, b.at) })
	ranks := map[string]int{"": 0}
	for i, op := range writes {
		op.rank, ranks[op.value] = i+1, i+1
	}
	for _, op := range all {
		rank, known := ranks[op.value]
		if !known {
			c.fail("client %d read %q of %s, which was never ordered", op.client, op.value, key)
		}
		op.rank = rank
	}
	return append(all, writes...)
}

// register is one key: each write follows the one before, and a read gives the
// last.
var register = porcupine.Model{
	Init: func() any { return 0 },
	Step: func(state, input, output any) (bool, any) {
		if input.(bool) {
			return state.(int)+1 == output.(int), output
		}
		return state == output, state
	},
}

// converged reports what keeps the cluster from being whole and equal, "" if
// nothing does (CONV).
func (w *World) converged() string {
	row := w.config.row
	a, ok := w.byID[row.Active].core.Status(Slice)
	if !ok || a.Role != replica.RoleLeading {
		return fmt.Sprintf("%s is %v, not leading", row.Active, a.Role)
	}
	if n := len(row.Normals()); n < len(row.Members) {
		return "not all members are normal: " + rowText(row)
	}
	for _, mb := range row.Members {
		m := w.byID[mb.Node]
		s, ok := m.core.Status(Slice)
		if !ok || s.Row.Epoch != row.Epoch || s.Commit != a.Commit || s.Last != a.Last {
			return fmt.Sprintf("%s is at epoch %d serial %d/%d, the active at %d %d/%d", m.id, s.Row.Epoch, s.Commit, s.Last, row.Epoch, a.Commit, a.Last)
		}
		snap, _ := m.core.Snapshot(Slice)
		mine, _ := w.byID[row.Active].core.Snapshot(Slice)
		if snap.Serial != mine.Serial || string(snap.Clients) != string(mine.Clients) || fmt.Sprint(m.state) != fmt.Sprint(w.byID[row.Active].state) {
			return fmt.Sprintf("%s has another state than the active", m.id)
		}
	}
	return ""
}
