package tree

import (
	"encoding/binary"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/protocol/pb"
)

// State is what is counted of a slice as a whole.
type State struct {
	Objects uint64 // that exist, the unlinked and held among them
	Stored  uint64 // bytes of their current versions that are not holes
	Next    uint64 // lowest object number that no member's range holds
	Locks   uint64 // keys that intents hold locked
	Holds   uint64 // objects that clients hold, each client counted
	Given   uint64 // object numbers from clientNumbers on that were given to clients
}

// stateVersion 1 had no Given.
const stateVersion = 2

func appendState(dst []byte, s *State) []byte {
	dst = append(dst, stateVersion)
	for _, v := range [...]uint64{s.Objects, s.Stored, s.Next, s.Locks, s.Holds, s.Given} {
		dst = binary.AppendUvarint(dst, v)
	}
	return dst
}

// ReadState returns a slice's counters.
func ReadState(v View) (State, error) {
	const op fault.Op = "tree.ReadState"
	value, ok, err := v.Get([]byte{keyState})
	if err != nil || !ok {
		return State{}, fault.Wrap(fault.IO, op, "", err)
	}
	r := reader{data: value}
	ver := r.byte()
	if ver == 0 || ver > stateVersion {
		return State{}, newer(op, "", ver, stateVersion)
	}
	s := State{Objects: r.uvarint(), Stored: r.uvarint(), Next: r.uvarint(), Locks: r.uvarint(), Holds: r.uvarint()}
	if ver > 1 {
		s.Given = r.uvarint()
	}
	if !r.done() {
		return State{}, fault.E(fault.Corrupt, op, "", "the slice's state is malformed")
	}
	return s, nil
}

// Format returns the mutations that make an empty slice, for its first entry;
// the root slice gets the root directory, which belongs to root and which
// everybody may read.
func Format(c Context, cues *pb.Cues, now int64) []Mutation {
	s := State{Next: 16}
	var out []Mutation
	if c.Slice == ids.RootSlice {
		root := &Inode{
			Object: ids.RootObject, Mode: TypeDir | 0o755, Nlink: 2, Parent: ids.RootObject,
			Atime: now, Mtime: now, Ctime: now, Btime: now, Change: uint64(c.Serial), Cues: cues,
		}
		out = append(out, Mutation{Key: objectKey(keyInode, root.Object), Value: AppendInode(nil, root)})
		s.Objects = 1
	}
	return append(out, Mutation{Key: []byte{keyState}, Value: appendState(nil, &s)}, wholeSince(c.Time))
}

// clientNumbers is where the object numbers begin that clients get in advance
// (Create.reserve), for files that they make before they tell the active. They
// are counted in the slice's state, so that none is given twice, whoever is
// active; those that are not used are lost.
const clientNumbers = 1 << (ids.NumberBits - 1)

// sideNumbers is where the object numbers begin that side logs choose at random, for
// what is made while the active is away.
const sideNumbers = clientNumbers + clientNumbers/2

// numbers gives the objects of a slice their numbers.
type numbers struct{ *txn }

// numberRange is the object numbers that a member may still give.
type numberRange struct{ next, end uint64 }

func (t numbers) readRange(node ids.Node) (numberRange, error) {
	value, ok, err := t.view.Get(rangeKey(node))
	if err != nil || !ok {
		return numberRange{}, err
	}
	r := reader{data: value}
	out := numberRange{r.uint64(), r.uint64()}
	if !r.done() {
		return out, fault.E(fault.Corrupt, "tree.Evaluate", string(node), "a range of numbers is malformed")
	}
	return out, nil
}

func (t numbers) writeRange(node ids.Node, r numberRange) {
	v := binary.BigEndian.AppendUint64(make([]byte, 0, 16), r.next)
	t.put(rangeKey(node), binary.BigEndian.AppendUint64(v, r.end))
}

// next takes the next number from the active's range, and a new range
// where that one is used up. All of it is state, so no number is given twice.
func (t numbers) next() (ids.Object, error) {
	if t.c.Closed {
		return 0, refusal(fault.Closed)
	}
	r, err := t.readRange(t.c.Node)
	if err != nil {
		return 0, err
	}
	if r.next >= r.end {
		if r, err = t.takeRange(RangeSize); err != nil {
			return 0, err
		}
	}
	o := ids.NewObject(t.c.Slice, r.next)
	r.next++
	t.writeRange(t.c.Node, r)
	t.state.Objects++
	t.stateDirty = true
	return o, nil
}

func (t numbers) takeRange(count uint64) (numberRange, error) {
	r := numberRange{next: max(t.state.Next, 16)}
	r.end = r.next + count
	if r.end > clientNumbers || r.end < r.next {
		return r, refusal(fault.NoSpace)
	}
	t.state.Next = r.end
	t.stateDirty = true
	return r, nil
}

// grant gives a member numbers in advance. A range that it still has is
// used up first by making the new one follow only where it is empty.
func (t numbers) grant(op *pb.GrantRange) error {
	if t.c.Client != 0 || op.Node == "" {
		return refusal(fault.Permission)
	}
	count := op.Count
	if count == 0 {
		count = RangeSize
	}
	if count > 1<<32 {
		return refusal(fault.Invalid)
	}
	have, err := t.readRange(ids.Node(op.Node))
	if err != nil || have.next < have.end {
		return err
	}
	r, err := t.takeRange(count)
	if err != nil {
		return err
	}
	t.writeRange(ids.Node(op.Node), r)
	return nil
}
