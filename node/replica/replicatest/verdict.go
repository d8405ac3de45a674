package replicatest

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/replica"
	"github.com/anishathalye/porcupine"
)

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
func (w *World) final() {
	c := w.check
	row := w.config.row
	active, _ := w.byID[row.Active].core.Status(Slice)
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
		if m := w.byID[mb.Node]; fmt.Sprint(m.state) != fmt.Sprint(want) {
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
				ret = c.now + time.Hour // unknown to the end
			}
			ops = append(ops, porcupine.Operation{ClientId: op.client, Input: op.write, Output: op.rank, Call: int64(op.call), Return: int64(ret)})
		}
		switch porcupine.CheckOperationsTimeout(register, ops, 10*time.Second) {
		case porcupine.Unknown:
			c.fail("whether the history of %s is linearizable was not found out (%d operations)", keyName(k), len(ops))
		case porcupine.Illegal:
			for _, op := range ops {
				c.trace("client %d write %v of %v from %.4f to %.4f", op.ClientId, op.Input, op.Output, (Time(op.Call) - time.Hour).Seconds(), (Time(op.Return) - time.Hour).Seconds())
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
