package tree

import (
	"bytes"
	"slices"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/protocol/pb"
)

// plan derives from an evaluation without locks what must be locked.
func (k *Coordinator) plan(t *txn) {
	k.locks = locksFor(t, k.op)
	if len(k.locks) == 0 { // two names of one object, or one name that is just being moved
		k.locks = namesOf(k.op)
	}
	for _, l := range k.locks {
		if s := l.Object.Slice(); !slices.Contains(k.slices, s) {
			k.slices = append(k.slices, s)
		}
	}
	if len(k.locks) == 0 { // nothing changes
		k.result, k.phase = t.result, done
		return
	}
	slices.Sort(k.slices)
	k.phase = beginning
}

// namesOf are the locks of both names of a rename, in ascending order; none
// for other operations.
func namesOf(op *pb.Operation) []LockKey {
	r := op.GetRename()
	if r == nil {
		return nil
	}
	out := []LockKey{{Object: ids.Object(r.Dir), Name: r.Name}, {Object: ids.Object(r.NewDir), Name: r.NewName}}
	slices.SortFunc(out, func(a, b LockKey) int { return bytes.Compare(a.key(), b.key()) })
	return slices.CompactFunc(out, func(a, b LockKey) bool { return bytes.Equal(a.key(), b.key()) })
}

// locksFor lists what an evaluation changes, in ascending order.
func locksFor(t *txn, op *pb.Operation) []LockKey {
	var out []LockKey
	for i := range t.inodes {
		if n := &t.inodes[i]; n.dirty && n.whole {
			out = append(out, LockKey{Object: n.Object})
		}
	}
	for i := range t.mutations {
		if key := t.mutations[i].Key; key[0] == keyEntry {
			out = append(out, LockKey{Object: objectOf(key), Name: key[9:]})
		}
	}
	if r := op.GetRename(); r != nil && r.Dir != r.NewDir {
		for i := range t.inodes {
			if n := &t.inodes[i]; n.dirty && n.whole && n.IsDir() && n.Nlink > 0 {
				out = append(out, LockKey{Object: treeLock})
				break
			}
		}
	}
	slices.SortFunc(out, func(a, b LockKey) int { return bytes.Compare(a.key(), b.key()) })
	return out
}

// decide settles the operation under its locks.
func (k *Coordinator) decide(t *txn) {
	for _, l := range locksFor(t, k.op) {
		if !slices.ContainsFunc(k.locks, func(h LockKey) bool { return h.Object == l.Object && bytes.Equal(h.Name, l.Name) }) {
			k.again = true
			k.outcome = &pb.Result{Kind: uint32(fault.Again), Message: fault.Again.String()}
			k.giveUp()
			return
		}
	}
	k.parts, k.result = k.partition(t), t.result
	k.time++
	k.phase = deciding
}

// partition gives every slice its share of what the evaluation changes.
func (k *Coordinator) partition(t *txn) []part {
	out := make([]part, len(k.slices))
	for i, s := range k.slices {
		p := part{Slice: s, Openers: t.c.Holders}
		for j := range t.inodes {
			n := &t.inodes[j]
			if n.dirty && !n.whole && n.Object.Slice() == s {
				p.Deltas = append(p.Deltas, delta{Dir: n.Object, Links: int64(n.delta), Time: t.now})
			}
		}
		for _, m := range t.mutations {
			o := objectOf(m.Key)
			if o.Slice() != s || (m.Key[0] == keyInode && !whole(t, o)) {
				continue
			}
			p.Mutations = append(p.Mutations, m)
		}
		out[i] = p
	}
	return out
}

func whole(t *txn, o ids.Object) bool {
	for i := range t.inodes {
		if t.inodes[i].Object == o {
			return t.inodes[i].whole
		}
	}
	return false
}
