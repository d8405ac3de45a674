package tree

import (
	"encoding/binary"
	"errors"
	"slices"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/hlc"
	"cartwheel.dev/node/protocol/pb"
)

// Values of a hold's record.
const (
	heldOpen     = 1 // the holder has it open
	heldNameless = 2 // and it was made without a name, which its holder may give it
)

// hold notes that a client has an object open, or no longer has: an object
// without a name goes with its last holder.
func (t *txn) hold(op *pb.Hold) error {
	client := op.Client
	if client == 0 {
		client = t.c.Client
	}
	if client == 0 || (t.c.Client != 0 && client != t.c.Client) {
		return refusal(fault.Permission)
	}
	o := ids.Object(op.Object)
	_, had, err := t.view.Get(pairKey(keyHold, uint64(o), client))
	if err != nil || had && !op.Release {
		return err
	}
	if !op.Release {
		n, err := t.inode(o)
		if err != nil {
			return err
		}
		t.result.Attr = n.Attr()
		return t.addHold(o, client)
	}
	return t.letGo(o, client, had)
}

// letGo ends a client's hold, if it had one. The result says whether the object
// stays: for a name, or for another holder.
func (t *txn) letGo(o ids.Object, client uint64, had bool) error {
	if had {
		t.remove(pairKey(keyHold, uint64(o), client))
		t.remove(pairKey(keyHeld, client, uint64(o)))
		t.state.Holds -= min(t.state.Holds, 1)
		t.stateDirty = true
	}
	n, err := t.inode(o)
	if err != nil {
		if errors.Is(err, refusal(fault.Stale)) {
			return nil
		}
		return err
	}
	t.result.Existed = true
	if had && n.Nlink == 0 {
		n.dirty = true
		t.result.Existed, err = t.holdOrHeld(o)
	}
	return err
}

func (t *txn) addHold(o ids.Object, client uint64) error {
	_, had, err := t.view.Get(pairKey(keyHold, uint64(o), client))
	if err != nil || had {
		return err
	}
	t.state.Holds++
	t.stateDirty = true
	value := byte(heldOpen)
	if t.nameless {
		value = heldNameless
	}
	t.put(pairKey(keyHold, uint64(o), client), []byte{value})
	t.put(pairKey(keyHeld, client, uint64(o)), []byte{1})
	return nil
}

// HasOpen reports whether a client is noted to have an object open.
func HasOpen(v View, o ids.Object, client uint64) (bool, error) {
	if client == 0 {
		return false, nil
	}
	_, held, err := v.Get(pairKey(keyHold, uint64(o), client))
	return held, err
}

// holdOrHeld notes the holders that the context names, and reports whether
// anybody has the object open.
func (t *txn) holdOrHeld(o ids.Object) (bool, error) {
	holders := slices.Clone(t.c.Holders)
	for _, h := range t.c.HeldBy {
		if h.Object == o {
			holders = append(holders, h.Client)
		}
	}
	slices.Sort(holders)
	for _, client := range slices.Compact(holders) {
		if err := t.addHold(o, client); err != nil {
			return false, err
		}
	}
	if len(holders) > 0 || t.state.Holds == 0 {
		return len(holders) > 0, nil
	}
	held := false
	prefix := objectKey(keyHold, o)
	err := t.view.Scan(prefix, endOf(prefix), func(key, _ []byte) bool {
		for i := range t.mutations { // released by this operation?
			if string(t.mutations[i].Key) == string(key) {
				return true
			}
		}
		held = true
		return false
	})
	return held, err
}

// reapNow removes an object and all that belongs to it.
func (t *txn) reapNow(n *Inode) error {
	t.remove(objectKey(keyInode, n.Object))
	if n.Beside {
		t.remove(objectKey(keyContent, n.Object))
	}
	if !n.Root.IsZero() {
		if err := t.dead(n.Root, 1); err != nil {
			return err
		}
	}
	if n.Xattrs > 0 {
		err := scanXattrs(t.view, n.Object, func(name string, _ []byte) bool {
			t.remove(nameKey(keyXattr, n.Object, []byte(name)))
			return true
		})
		if err != nil {
			return err
		}
	}
	if n.Parent.Slice() != t.c.Slice { // it may have been made for another slice
		key := objectKey(keyNoname, n.Object)
		if _, ok, err := t.view.Get(key); err != nil {
			return err
		} else if ok {
			t.remove(key)
		}
	}
	if err := (numbers{t}).useUp(n.Object); err != nil {
		return err
	}
	t.state.Objects -= min(t.state.Objects, 1)
	t.state.Stored -= min(t.state.Stored, n.Stored)
	t.stateDirty = true
	return nil
}

// reap is what a sweeper does; docs/design.md, 4.10.
func (t *txn) reap(op *pb.Reap) error {
	if t.c.Client != 0 {
		return refusal(fault.Permission)
	}
	o := ids.Object(op.Object)
	switch {
	case op.Fence:
		_, named, err := t.view.Get(objectKey(keyNamed, o))
		if err != nil || named {
			t.result.Existed = named
			return err
		}
		t.put(objectKey(keyFence, o), t.mark(ids.Object(op.Dir)))
		return nil
	case op.Forget:
		t.remove(objectKey(keyNamed, o))
		t.remove(objectKey(keyFence, o))
		return nil
	}
	_, ok, err := t.view.Get(objectKey(keyNoname, o))
	if err != nil || !ok {
		return err
	}
	t.remove(objectKey(keyNoname, o))
	if op.Confirm {
		return nil
	}
	n, err := t.inode(o)
	if err != nil {
		return err
	}
	n.Nlink = 0
	t.change(n)
	return nil
}

// Holds returns the objects that a client has open though they may have no
// name, to release them when its session ends.
func Holds(v View, client uint64) ([]ids.Object, error) {
	var out []ids.Object
	prefix := binary.BigEndian.AppendUint64([]byte{keyHeld}, client)
	err := v.Scan(prefix, endOf(prefix), func(key, _ []byte) bool {
		out = append(out, ids.Object(binary.BigEndian.Uint64(key[len(prefix):])))
		return true
	})
	return out, fault.Wrap(fault.IO, "tree.Holds", "", err)
}

// Holders returns every client that holds something in the slice, so that a
// new active can wait for them one lease and then let them go.
func Holders(v View) ([]uint64, error) {
	var out []uint64
	err := v.Scan([]byte{keyHeld}, []byte{keyHeld + 1}, func(key, _ []byte) bool {
		client := binary.BigEndian.Uint64(key[1:])
		if len(out) == 0 || out[len(out)-1] != client {
			out = append(out, client)
		}
		return true
	})
	return out, fault.Wrap(fault.IO, "tree.Holders", "", err)
}

// Duty is what a sweeper finds to do.
type Duty uint8

// The duties. What each asks for is written at Sweep.
const (
	DutyNoname Duty = 1
	DutyNamed  Duty = 2
	DutyFence  Duty = 3
)

// Mark is one object that a create over two slices left a mark of.
type Mark struct {
	Duty   Duty
	Object ids.Object
	Dir    ids.Object
	Time   hlc.Time
}

// Sweep lists marks, at most limit of each duty: those that are older than
// before says, behind the object where the last round of a duty ended. It notes
// in from where the next one goes on, which is the beginning once it met the
// last mark. So marks that cannot be settled hide no others.
//
//	DutyNoname: send Reap{fence} to the slice of Dir. Where it existed, propose
//	Reap{confirm} here; else Reap{} here, which removes the object.
//	DutyNamed: send Reap{confirm} to the slice of Object, then propose
//	Reap{forget} here.
//	DutyFence: once no registration is left that could still send the name
//	(24 h), propose Reap{forget} here.
func Sweep(v View, before func(Duty) hlc.Time, from map[Duty]ids.Object, limit int) ([]Mark, error) {
	const op fault.Op = "tree.Sweep"
	var out []Mark
	var bad error
	for kind, duty := range map[byte]Duty{keyNoname: DutyNoname, keyNamed: DutyNamed, keyFence: DutyFence} {
		oldest, found, last := before(duty), 0, ids.Object(0)
		err := v.Scan(objectKey(kind, from[duty]+1), []byte{kind + 1}, func(key, value []byte) bool {
			if found == limit {
				last = out[len(out)-1].Object
				return false
			}
			r := reader{data: value}
			m := Mark{Duty: duty, Object: objectOf(key), Dir: ids.Object(r.uint64()), Time: hlc.Time(r.uint64())}
			if !r.done() {
				bad = fault.E(fault.Corrupt, op, m.Object.String(), "a mark is malformed")
				return false
			}
			if m.Time < oldest {
				out = append(out, m)
				found++
			}
			return true
		})
		if err == nil {
			err = bad
		}
		if err != nil {
			return nil, fault.Wrap(fault.IO, op, "", err)
		}
		from[duty] = last
	}
	return out, nil
}
