package replicatest

import (
	"fmt"
	"time"

	"github.com/anishathalye/porcupine"

	geoconfig "cartwheel.dev/geo-config"
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

// checker holds what must not be contradicted.
type checker struct {
	w       *World
	history []*operation
	chosen  map[geoconfig.Serial]content
	epochs  map[geoconfig.NodeID]geoconfig.Epoch
	errors  []string
	broken  []string // of which those about safety
}

type content struct {
	epoch  geoconfig.Epoch
	client uint64
	number uint64
	data   string
	level  uint32
	by     geoconfig.NodeID
}

func (c *checker) init(w *World) {
	*c = checker{w: w, chosen: map[geoconfig.Serial]content{}, epochs: map[geoconfig.NodeID]geoconfig.Epoch{}}
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

// applied checks that a serial has one content for ever (ONE).
func (c *checker) applied(m *machine, e *replica.Entry) {
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
func (c *checker) row(m *machine, e geoconfig.Epoch) {
	if e < c.epochs[m.id] && m.disk.sawEpoch(c.epochs[m.id]) {
		c.fail("%s fell from epoch %d to %d", m.id, c.epochs[m.id], e)
	}
	c.epochs[m.id] = e
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
		v, ok := c.chosen[geoconfig.Serial(op.serial)]
		if !ok || v.client != op.id || v.data != op.key+"="+op.value {
			c.fail("acknowledged write %s=%s at serial %d is gone; there is %+v", op.key, op.value, op.serial, v)
		}
	}
}

// linearizable checks the history of every key (LIN).
func (c *checker) linearizable() {
	for k := range keys {
		var ops []porcupine.Operation
		for _, op := range c.history {
			if op.key != keyName(k) || (!op.write && op.ret == 0) {
				continue
			}
			ret := op.ret
			if ret == 0 {
				ret = c.w.now + time.Hour // unknown to the end
			}
			ops = append(ops, porcupine.Operation{ClientId: op.client, Input: op.write, Output: op.value, Call: int64(op.call), Return: int64(ret)})
		}
		if porcupine.CheckOperationsTimeout(register, ops, 10*time.Second) == porcupine.Illegal {
			for _, op := range ops {
				c.w.trace("client %d write %v %v from %.4f to %.4f", op.ClientId, op.Input, op.Output, (Time(op.Call) - time.Hour).Seconds(), (Time(op.Return) - time.Hour).Seconds())
			}
			c.fail("the history of %s is not linearizable (%d operations)", keyName(k), len(ops))
		}
	}
}

// register is one key: a write sets it, a read gives the last value.
var register = porcupine.Model{
	Init: func() any { return "" },
	Step: func(state, input, output any) (bool, any) {
		if input.(bool) {
			return true, output
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
