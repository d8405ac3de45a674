package tree

import (
	"encoding/binary"
	"slices"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/node/hlc"
	"cartwheel.dev/node/protocol/pb"
)

// A snapshot is a hybrid time that is kept: what a reading as of it shows stays, however far
// behind the horizon it is. Each collection brings the kept times along. A row of the slice
// has those behind the horizon, so that all members agree on what can be read. A time comes
// into that row only while the slice is whole as of it, and leaves it with the first
// collection that does not name it. So what the row names can be read, whatever became of
// the list of snapshots meanwhile.

// keptVersion is of the row of kept times.
const keptVersion = 1

// MaxKeeps bounds the times that a slice keeps.
const MaxKeeps = 1024

// Keep reports whether one of some ascending times is in the half-open span [since, until).
func Keep(keeps []hlc.Time, since, until hlc.Time) bool {
	i, _ := slices.BinarySearch(keeps, since)
	return i < len(keeps) && keeps[i] < until
}

// Kept returns the times before that of WholeSince as of which a slice has all versions, in
// ascending order. ok is false until a collection has noted any list, also an empty one.
func Kept(v View) (keeps []hlc.Time, ok bool, err error) {
	const op fault.Op = "tree.Kept"
	value, ok, err := v.Get([]byte{keyKept})
	if err != nil || !ok {
		return nil, false, fault.Wrap(fault.IO, op, "", err)
	}
	r := reader{data: value}
	if v := r.byte(); v != keptVersion {
		return nil, false, newer(op, "", v, keptVersion)
	}
	for !r.bad && !r.done() {
		keeps = append(keeps, hlc.Time(r.uint64()))
	}
	if r.bad {
		return nil, false, fault.E(fault.Corrupt, op, "", "the list of kept times is malformed")
	}
	return keeps, true, nil
}

// Keepable returns those of some ascending times that a collection with a horizon can keep:
// those as of which the slice is still whole. Times from the horizon on are not among them.
func Keepable(v View, horizon hlc.Time, wanted []hlc.Time) ([]hlc.Time, error) {
	since, _, err := WholeSince(v)
	if err != nil {
		return nil, err
	}
	kept, _, err := Kept(v)
	if err != nil {
		return nil, err
	}
	var out []hlc.Time
	for _, at := range wanted {
		_, is := slices.BinarySearch(kept, at)
		if at < max(horizon, since) && (is || at >= since) {
			out = append(out, at)
		}
	}
	return out, nil
}

// effective returns the times that a collection keeps.
func (t *collection) effective(op *pb.Collect) ([]hlc.Time, error) {
	if len(op.Keeps) > MaxKeeps {
		return nil, refusal(fault.Invalid)
	}
	wanted := make([]hlc.Time, 0, len(op.Keeps))
	for i, at := range op.Keeps {
		if i > 0 && at <= op.Keeps[i-1] {
			return nil, refusal(fault.Invalid)
		}
		wanted = append(wanted, hlc.Time(at))
	}
	return Keepable(t.view, t.horizon, wanted)
}

// noteKept writes the times that are kept where they are others than before.
func (t *collection) noteKept() error {
	was, ok, err := Kept(t.view)
	if err == nil && (!ok || !slices.Equal(was, t.keeps)) {
		t.put([]byte{keyKept}, appendTimes([]byte{keptVersion}, t.keeps))
	}
	return err
}

// since is what a count that leaves zero now notes: the time, where the programs of all
// members know of kept times. The first list that a collection noted says so.
func since(t *txn) (hlc.Time, error) {
	_, ok, err := t.view.Get([]byte{keyKept})
	if err != nil || !ok {
		return 0, err
	}
	return t.c.Time, nil
}

func appendTimes(dst []byte, times []hlc.Time) []byte {
	for _, at := range times {
		dst = binary.BigEndian.AppendUint64(dst, uint64(at))
	}
	return dst
}
