package tree

import (
	"bytes"
	"encoding/binary"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/node/chunk"
	"cartwheel.dev/node/hlc"
	"cartwheel.dev/node/plant"
	"cartwheel.dev/node/protocol/pb"
)

// A row of references is what keeps a chunk in the packs of a slice's members.
// Collection takes rows away, and is an operation like others: it is in the slice's
// log, so that all members have the same rows, and so that a crash or another active
// walks no manifest twice. A row goes once its count is zero and it became so at or
// before the horizon.

// MaxCollected bounds the references that one collection changes: each is read and
// written in the active's loop.
const MaxCollected = 512

// maxWalked bounds the dead manifests of one collection; their index has two bytes.
const maxWalked = MaxCollected

// collection is an evaluation of a collection. It walks dead manifests one node deep: a
// node's children become dead themselves, so that every step is bounded.
type collection struct {
	*txn
	changes refChanges // chunks holds what the counts fall by
	horizon hlc.Time
	keeps   []hlc.Time // effective ones
}

// collect walks dead manifests, drops counts of zero, and says which versions go.
func (t *collection) collect(op *pb.Collect) error {
	if t.c.Client != 0 {
		return refusal(fault.Permission)
	}
	horizon := hlc.Time(op.Horizon)
	unused, err := chunk.Addresses(op.Unused)
	if err != nil || horizon >= t.c.Time || len(op.Dead) > maxWalked || len(unused) > MaxCollected {
		return refusal(fault.Invalid)
	}
	t.horizon = horizon
	if t.keeps, err = t.effective(op); err != nil {
		return err
	}
	if len(op.ForgetFrom) > 0 || len(op.ForgetTo) > 0 {
		f := Forgotten{From: op.ForgetFrom, To: op.ForgetTo, Horizon: horizon, Keeps: t.keeps}
		if bytes.Compare(f.From, f.To) >= 0 {
			return refusal(fault.Invalid)
		}
		t.put([]byte{keyForget}, appendForgotten(nil, &f))
	}
	for i, key := range op.Dead {
		if i > 0 && bytes.Compare(op.Dead[i-1], key) >= 0 {
			return refusal(fault.Invalid) // what is named twice would be walked twice
		}
		if err := t.walk(key); err != nil {
			return err
		}
	}
	if err := t.write(); err != nil {
		return err
	}
	for i := range unused {
		if t.changes.has(unused[i]) {
			continue // the walk has written its row
		}
		refs, ok, err := t.refs(&unused[i])
		if err != nil {
			return err
		}
		if ok && isUnused(refs, horizon, t.keeps) {
			t.remove(refsKey(&unused[i]))
		}
	}
	took := len(t.mutations) > 0
	if op.Kept {
		if err := t.noteKept(); err != nil {
			return err
		}
	}
	if !took {
		return nil
	}
	return t.raiseWhole(horizon)
}

// isUnused reports whether no version of a file that is retained uses an address.
func isUnused(r Refs, horizon hlc.Time, keeps []hlc.Time) bool {
	return r.Count == 0 && (r.Time <= horizon || plant.On(plant.CollectIgnoresTime)) && !Keep(keeps, r.Since, r.Time)
}

// walk takes the reference of a dead manifest off its root, and those of the root
// off what it names.
func (t *collection) walk(key []byte) error {
	d, ok := deadTime(key)
	if !ok || d > t.horizon {
		return refusal(fault.Invalid)
	}
	value, ok, err := t.view.Get(key)
	if err != nil || !ok {
		return err // it was walked before
	}
	dead, err := decodeDead(key, value)
	if err != nil {
		return err
	}
	if Keep(t.keeps, dead.Since, dead.Time) {
		return refusal(fault.Invalid)
	}
	data, err := t.nodes.Node(dead.Root)
	if fault.Is(err, fault.Missing) {
		return refusal(fault.Missing)
	}
	if err != nil {
		return err
	}
	count := int(dead.Count)
	if !plant.On(plant.CollectWalksTwice) {
		t.remove(key)
	}
	t.lose(dead.Root, count, dead.Time)
	var bad error
	err = chunk.Refs(data, func(a chunk.Address, isNode bool) {
		if !isNode {
			t.lose(a, count, dead.Time)
			return
		}
		// It may be older than what named it last.
		refs, err := ReadRefs(t.view, a)
		if err != nil {
			bad = err
		}
		noteDead(t.txn, dead.Time, refs.Since, a, count)
	})
	if err == nil {
		err = bad
	}
	return err
}

// lose notes that what a file lost at a time had an address so often.
func (t *collection) lose(a chunk.Address, count int, at hlc.Time) {
	c := t.changes.at(a)
	c.chunks += count
	c.lost = max(c.lost, at)
}

// write lowers the counts. The time of a count becomes that at which a file lost it, where
// that is later: until then some version used it.
func (t *collection) write() error {
	for i := range t.changes.list {
		c := &t.changes.list[i]
		refs, ok, err := t.refs(&c.address)
		if err != nil {
			return err
		}
		if !ok || refs.Count < uint64(c.chunks) {
			// Something counted wrongly: what is left must keep all that it counts.
			return fault.Errorf(fault.Corrupt, "tree.collect", c.address.String(), "it is counted %d times, and a dead manifest has it %d times", refs.Count, c.chunks)
		}
		refs.Count -= uint64(c.chunks)
		refs.Time = max(refs.Time, c.lost)
		if isUnused(refs, t.horizon, t.keeps) {
			t.remove(refsKey(&c.address))
		} else {
			t.put(refsKey(&c.address), appendRefs(make([]byte, 0, 16), refs))
		}
	}
	return nil
}

// refs reads a row of references.
func (t *collection) refs(a *chunk.Address) (refs Refs, ok bool, err error) {
	value, ok, err := t.view.Get(refsKey(a))
	if err != nil || !ok {
		return Refs{}, false, err
	}
	refs, err = DecodeRefs(value)
	return refs, true, err
}

// Forgotten are versions that go: those of the keys from From to before To which no
// reading as of the horizon or later sees, and none as of a kept time. A mutation says so,
// for the metadata of all members to remove the same.
type Forgotten struct {
	From, To []byte
	Horizon  hlc.Time
	Keeps    []hlc.Time // they ascend
}

func appendForgotten(dst []byte, f *Forgotten) []byte {
	dst = binary.BigEndian.AppendUint64(dst, uint64(f.Horizon))
	dst = appendBytes(appendBytes(dst, f.From), f.To)
	if len(f.Keeps) > 0 { // programs of before there were kept times end here
		dst = appendTimes(dst, f.Keeps)
	}
	return dst
}

// IsForgetting reports whether a mutation says that versions go.
func IsForgetting(m *Mutation) bool { return len(m.Key) == 1 && m.Key[0] == keyForget }

// ForgottenOf returns the versions that go by a mutation that IsForgetting.
func ForgottenOf(m *Mutation) (Forgotten, error) {
	r := reader{data: m.Value}
	f := Forgotten{Horizon: hlc.Time(r.uint64()), From: r.bytes(), To: r.bytes()}
	for !r.bad && !r.done() {
		f.Keeps = append(f.Keeps, hlc.Time(r.uint64()))
	}
	if !r.done() {
		return Forgotten{}, fault.E(fault.Corrupt, "tree.ForgottenOf", "", "what is to be forgotten is malformed")
	}
	return f, nil
}

// has reports whether an address is in the set.
func (c *refChanges) has(a chunk.Address) bool {
	if c.index != nil {
		_, ok := c.index[a]
		return ok
	}
	for i := range c.list {
		if c.list[i].address == a {
			return true
		}
	}
	return false
}

// deadTime is when a dead manifest lost its file, by its key.
func deadTime(key []byte) (hlc.Time, bool) {
	if len(key) != 19 || key[0] != keyDead {
		return 0, false
	}
	return hlc.Time(binary.BigEndian.Uint64(key[1:])), true
}

// decodeDead reads a row of a dead manifest; it copies the key.
func decodeDead(key, value []byte) (Dead, error) {
	r := reader{data: value}
	d := Dead{Key: append([]byte(nil), key...), Root: chunk.Address(r.take(chunk.AddressSize)), Count: r.uvarint()}
	var ok bool
	d.Time, ok = deadTime(key)
	if !r.done() {
		d.Since = d.Time - hlc.Time(r.uvarint())
	}
	if !ok || !r.done() || d.Count == 0 || d.Count > 1<<31 {
		return Dead{}, fault.E(fault.Corrupt, "tree.ListDead", "", "a dead manifest is malformed")
	}
	return d, nil
}

// RefsKey is the key of the row that keeps a chunk for a slice. The row is one of
// those without versions.
func RefsKey(a chunk.Address) []byte { return refsKey(&a) }

// DroppedRef returns the address of a chunk that a mutation says the slice needs no
// more.
func DroppedRef(m *Mutation) (chunk.Address, bool) {
	if m.Value != nil || len(m.Key) != 1+chunk.AddressSize || m.Key[0] != keyRefs {
		return chunk.Address{}, false
	}
	return chunk.Address(m.Key[1:]), true
}

// Unused returns the addresses whose counts became zero at or before the horizon, and which
// no kept time needs, of those behind one of them, up to limit rows of any count. last is where the next call
// goes on; zero: there are no more.
func Unused(v View, behind chunk.Address, horizon hlc.Time, keeps []hlc.Time, limit int) (unused []chunk.Address, last chunk.Address, err error) {
	var bad error
	seen := 0
	err = v.Scan(append(refsKey(&behind), 0), []byte{keyRefs + 1}, func(key, value []byte) bool {
		if seen++; seen > limit {
			return false
		}
		var refs Refs
		if refs, bad = DecodeRefs(value); bad != nil {
			return false
		}
		last = chunk.Address(key[1:])
		if isUnused(refs, horizon, keeps) {
			unused = append(unused, last)
		}
		return len(unused) < MaxCollected
	})
	if err == nil {
		err = bad
	}
	if seen <= limit && len(unused) < MaxCollected {
		last = chunk.Address{}
	}
	return unused, last, fault.Wrap(fault.IO, "tree.Unused", "", err)
}
