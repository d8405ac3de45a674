package tree

import (
	"encoding/binary"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/node/chunk"
	"cartwheel.dev/node/hlc"
)

// References are counted by occurrence: how often an address stands in the
// manifests of the slice's files as they are now, as a root, a node or a
// chunk. A splice reads every old node on its way and writes every new one, so
// the difference of what those name is the difference of the counts. Subtrees
// that go without having been read, and the manifests of removed files, are
// noted as dead instead: the collector walks them later, and an unlink costs
// the same for every size. A count of zero stays with the time it became so,
// for the collector to find once no retained version can need the chunk.

// recorder remembers the nodes that a splice reads.
type recorder struct {
	under chunk.Reader
	read  []chunk.NewNode
}

func (r *recorder) Node(a chunk.Address) ([]byte, error) {
	data, err := r.under.Node(a)
	if err == nil {
		r.read = append(r.read, chunk.NewNode{Address: a, Data: data})
	}
	return data, err
}

// refChange is what happens to one address. The bytes of a node may be a chunk of
// some file as well: the two kinds of occurrences are counted apart.
type refChange struct {
	address chunk.Address
	chunks  int      // occurrences as a chunk
	nodes   int      // occurrences as a node
	walked  int      // nodes with this address that were written, less those read
	lost    hlc.Time // of a collection: the latest time at which a file lost it
}

// refChanges is a small set; most commits change two or three addresses.
type refChanges struct {
	list  []refChange
	index map[chunk.Address]int // once there are many
}

func (c *refChanges) at(a chunk.Address) *refChange {
	if c.index != nil {
		if i, ok := c.index[a]; ok {
			return &c.list[i]
		}
		c.index[a] = len(c.list)
	} else {
		for i := range c.list {
			if c.list[i].address == a {
				return &c.list[i]
			}
		}
		if len(c.list) == 16 {
			c.index = make(map[chunk.Address]int, 600)
			for i := range c.list {
				c.index[c.list[i].address] = i
			}
			c.index[a] = len(c.list)
		}
	}
	c.list = append(c.list, refChange{address: a})
	return &c.list[len(c.list)-1]
}

// count adds by for everything that the nodes name.
func (c *refChanges) count(nodes []chunk.NewNode, by int) error {
	for i := range nodes {
		c.at(nodes[i].Address).walked += by
		err := chunk.Refs(nodes[i].Data, func(a chunk.Address, isNode bool) {
			if isNode {
				c.at(a).nodes += by
			} else {
				c.at(a).chunks += by
			}
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// countRefs writes the counts that change between two versions of a file.
func (t *txn) countRefs(before, after chunk.Root, read, written []chunk.NewNode) error {
	if before.Address == after.Address {
		return nil
	}
	c := refChanges{list: make([]refChange, 0, 8)}
	if !before.Address.IsZero() {
		c.at(before.Address).nodes--
	}
	if !after.Address.IsZero() {
		c.at(after.Address).nodes++
	}
	if err := c.count(read, -1); err != nil {
		return err
	}
	if err := c.count(written, +1); err != nil {
		return err
	}
	for i := range c.list {
		r := &c.list[i]
		if r.nodes < r.walked { // some went without being read
			if err := t.dead(r.address, r.walked-r.nodes); err != nil {
				return err
			}
		}
		if err := t.addRefs(&r.address, r.chunks+max(r.nodes, r.walked)); err != nil {
			return err
		}
	}
	return nil
}

func (t *txn) addRefs(a *chunk.Address, by int) error {
	if by == 0 {
		return nil
	}
	key := refsKey(a)
	value, ok, err := t.view.Get(key)
	if err != nil {
		return err
	}
	var refs Refs
	if ok {
		refs, err = DecodeRefs(value)
	} else {
		refs.Since, err = since(t)
	}
	if err != nil {
		return err
	}
	refs.Count = uint64(max(int64(refs.Count)+int64(by), 0))
	refs.Time = t.c.Time
	t.put(key, appendRefs(make([]byte, 0, 16), refs))
	return nil
}

// dead notes manifests that lost a file, for the collector.
func (t *txn) dead(a chunk.Address, count int) error {
	refs, err := ReadRefs(t.view, a)
	if err == nil {
		noteDead(t, t.c.Time, refs.Since, a, count)
	}
	return err
}

// noteDead is dead for manifests that were lost at some time, this or an earlier one, and
// that files had since a time; 0: it is not known.
func noteDead(t *txn, lost, since hlc.Time, a chunk.Address, count int) {
	at := t.before + len(t.mutations)
	key := append(pairKey(keyDead, uint64(lost), uint64(t.c.Serial)), byte(at>>8), byte(at))
	value := binary.AppendUvarint(append(make([]byte, 0, 44), a[:]...), uint64(count))
	if since != 0 && since <= lost {
		value = binary.AppendUvarint(value, uint64(lost-since))
	}
	t.put(key, value)
}

// Refs is how often the slice's current files use an address, and when that
// last changed by a change of a file.
type Refs struct {
	Count uint64
	Time  hlc.Time
	// Since is when the count left zero, or an earlier time; 0: it is not known. No version
	// from before it uses the address.
	Since hlc.Time
}

func appendRefs(dst []byte, r Refs) []byte {
	dst = binary.BigEndian.AppendUint64(binary.AppendUvarint(dst, r.Count), uint64(r.Time))
	if r.Since != 0 && r.Since <= r.Time {
		dst = binary.AppendUvarint(dst, uint64(r.Time-r.Since))
	}
	return dst
}

// DecodeRefs reads the value of a count.
func DecodeRefs(value []byte) (Refs, error) {
	r := reader{data: value}
	out := Refs{Count: r.uvarint(), Time: hlc.Time(r.uint64())}
	if !r.done() {
		out.Since = out.Time - hlc.Time(r.uvarint())
	}
	if !r.done() {
		return out, fault.E(fault.Corrupt, "tree.DecodeRefs", "", "a count of references is malformed")
	}
	return out, nil
}

// ReadRefs returns the count of one address; zero where it was never used.
func ReadRefs(v View, a chunk.Address) (Refs, error) {
	value, ok, err := v.Get(refsKey(&a))
	if err != nil || !ok {
		return Refs{}, fault.Wrap(fault.IO, "tree.ReadRefs", a.String(), err)
	}
	return DecodeRefs(value)
}

// Dead is a manifest (or a subtree of one) that so many files lost at a time:
// when no retained version needs it, its nodes' and chunks' counts go down.
type Dead struct {
	Key   []byte
	Root  chunk.Address
	Count uint64
	Time  hlc.Time
	// Since is from when on files had it, or an earlier time; 0: it is not known.
	Since hlc.Time
}

// ListDead calls fn for the dead manifests behind a key, the oldest first, until it returns
// false; a nil key is the beginning.
func ListDead(v View, behind []byte, fn func(Dead) bool) error {
	var bad error
	from := []byte{keyDead}
	if behind != nil {
		from = append(append([]byte(nil), behind...), 0)
	}
	err := v.Scan(from, []byte{keyDead + 1}, func(key, value []byte) bool {
		var d Dead
		if d, bad = decodeDead(key, value); bad != nil {
			return false
		}
		return fn(d)
	})
	if err == nil {
		err = bad
	}
	return fault.Wrap(fault.IO, "tree.ListDead", "", err)
}
