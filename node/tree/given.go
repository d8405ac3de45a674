package tree

import (
	"bytes"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/protocol/pb"
)

// MaxReserve bounds the numbers of one answer; who asks for more gets so many.
const MaxReserve = 4096

// usedBlock is how many given numbers one key speaks for (keyUsed). Its value
// has a bit for each, set once an object of that number is gone. Nothing else
// remembers a number that a client chose; those of the active's ranges are used
// in their order.
const usedBlock = 256

// give gives a client object numbers. Closed slices give none, and where there
// are no more, none come: neither fails the create that asked beside.
func (t numbers) give(reserve uint32) {
	count := min(uint64(reserve), MaxReserve, sideNumbers-clientNumbers-t.state.Given)
	if count == 0 || t.c.Closed || t.wide || t.part || t.c.Client == 0 {
		return
	}
	t.result.First = uint64(ids.NewObject(t.c.Slice, clientNumbers+t.state.Given))
	t.result.Numbers = uint32(count)
	t.state.Given += count
	t.stateDirty = true
}

// given takes an object ID that the client chose from those it got. Each is
// taken once: one whose object is gone is Stale. A slice that closed meanwhile
// takes it still: the client's program was told that the file is made.
func (t numbers) given(o ids.Object) (ids.Object, error) {
	chosen := t.c.Side && o.Number() >= sideNumbers
	if o.Slice() != t.c.Slice || o.Number() < clientNumbers || !chosen && o.Number()-clientNumbers >= t.state.Given {
		return 0, refusal(fault.Invalid)
	}
	n, err := readInode(t.view, o)
	if err != nil {
		return 0, err
	}
	if n != nil {
		return 0, refusal(fault.Exists)
	}
	if bits, err := t.usedBits(usedKey(o)); err != nil {
		return 0, err
	} else if at := o.Number() % usedBlock; bits != nil && bits[at/8]&(1<<(at%8)) != 0 {
		return 0, refusal(fault.Stale)
	}
	t.state.Objects++
	t.stateDirty = true
	return o, nil
}

func usedKey(o ids.Object) []byte {
	return objectKey(keyUsed, ids.NewObject(o.Slice(), o.Number()&^(usedBlock-1)))
}

// usedBits reads which numbers of a block are used up; nil says none.
func (t numbers) usedBits(key []byte) ([]byte, error) {
	value, ok, err := t.view.Get(key)
	if err != nil || !ok {
		return nil, err
	}
	if len(value) != usedBlock/8 {
		return nil, fault.E(fault.Corrupt, "tree.Evaluate", "", "a block of used numbers is malformed")
	}
	return value, nil
}

// useUp notes that the number of an object that goes is never to be taken again.
func (t numbers) useUp(o ids.Object) error {
	if o.Number() < clientNumbers {
		return nil
	}
	key, at := usedKey(o), o.Number()%usedBlock
	for i := range t.mutations { // one operation may remove several
		if m := &t.mutations[i]; bytes.Equal(m.Key, key) {
			m.Value[at/8] |= 1 << (at % 8)
			return nil
		}
	}
	before, err := t.usedBits(key)
	if err != nil {
		return err
	}
	bits := make([]byte, usedBlock/8)
	copy(bits, before)
	bits[at/8] |= 1 << (at % 8)
	t.put(key, bits)
	return nil
}

// first splices the content that came with a create into the new file, or, with
// replace, in the place of what an existing one has. The caller has checked
// that it may.
func (t *txn) first(n *loaded, op *pb.Commit, body []byte, replace bool) error {
	if !n.IsRegular() || op.Append {
		return refusal(fault.Invalid)
	}
	if err := mayRewrite(n.Inode); err != nil {
		return err
	}
	s := splice{txn: t, n: n, keeps: op.Keeps}
	if op.Size != nil {
		s.change.Truncate, s.change.Size = true, *op.Size
	}
	if replace {
		s.change.Truncate, s.change.Size = true, 0
	}
	if op.Extend != nil {
		s.change.Extend = *op.Extend
	}
	if err := s.addExtents(op, 0, body); err != nil {
		return err
	}
	if err := s.run(); err != nil {
		return err
	}
	if op.ClearSetid || (len(op.Extents) > 0 && !t.c.root()) {
		t.clearSetID(n.Inode)
		if !n.fresh {
			if err := t.dropCapability(n); err != nil {
				return err
			}
		}
	}
	if !n.fresh {
		t.change(n)
		n.Mtime = t.now
	}
	n.rewrote(t.c.Serial)
	if op.MtimeNs != 0 {
		n.Mtime = op.MtimeNs
		n.Ctime = max(n.Ctime, n.Mtime)
	}
	return sealed(n.Inode, op)
}
