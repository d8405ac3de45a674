package chunk

import "cartwheel.dev/geo-config/fault"

// Change is what a commit does to one version of a file, in this order: cut it
// to Size where Truncate is set, put Extents over it, and make it at least
// Extend bytes long. Extents ascend, are disjoint and may lie behind the end;
// what is between becomes a hole.
type Change struct {
	Truncate bool
	Size     uint64
	Extents  []Extent
	Extend   uint64
}

// Splice applies a change to a version and returns the new version's root and
// the nodes that it needs besides those it shares with the old one, children
// before parents. Only nodes on the touched paths, and now and then a
// neighbour, are read.
func Splice(r Reader, root Root, c Change) (Root, []NewNode, error) {
	return splice(r, root, c, MaxFan)
}

func splice(r Reader, root Root, c Change, fan int) (Root, []NewNode, error) {
	const op fault.Op = "chunk.splice"
	limit := root.Size
	if c.Truncate {
		limit = min(limit, c.Size)
	}
	edits, size, err := fillGaps(c, limit)
	if err != nil {
		return Root{}, nil, fault.Wrap(fault.Invalid, op, "", err)
	}
	if len(edits) == 0 && limit == root.Size {
		return root, nil, nil
	}
	s := splicer{reader: r, limit: limit, fan: fan}
	top := child{ref: ref{address: root.Address, length: root.Size, stored: root.Stored}}
	if root.Size == 0 {
		top.mem = &node{}
	}
	if err := s.apply(&top, int(root.Height), 0, edits); err != nil {
		return Root{}, nil, fault.Wrap(fault.Corrupt, op, root.Address.String(), err)
	}
	out, err := s.grow(top, int(root.Height))
	if err != nil {
		return Root{}, nil, fault.Wrap(fault.Corrupt, op, root.Address.String(), err)
	}
	if out.Size != size {
		return Root{}, nil, fault.E(fault.Corrupt, op, root.Address.String(), "the manifest's length is not the file's size")
	}
	return out, s.nodes, nil
}

// fillGaps checks the change and turns everything behind the end that no
// extent covers into holes, so that edits behind limit leave no gap.
func fillGaps(c Change, limit uint64) (edits []Extent, size uint64, err error) {
	const op fault.Op = "chunk.fillGaps"
	end, last := limit, uint64(0)
	edits = make([]Extent, 0, len(c.Extents)+2)
	if c.Truncate && c.Size > end {
		c.Extend = max(c.Extend, c.Size)
	}
	if c.Extend > MaxFileSize {
		return nil, 0, fault.E(fault.TooLarge, op, "", "larger than the largest file")
	}
	for _, e := range c.Extents {
		if err := e.Validate(); err != nil {
			return nil, 0, err
		}
		if e.Offset < last {
			return nil, 0, fault.E(fault.Invalid, op, "", "extents overlap or are out of order")
		}
		if e.Offset > end {
			edits = append(edits, Hole(end, e.Offset-end))
		}
		edits = appendExtent(edits, e)
		last = e.End()
		end = max(end, last)
	}
	if c.Extend > end {
		edits = appendExtent(edits, Hole(end, c.Extend-end))
		end = c.Extend
	}
	return edits, end, nil
}

// splicer carries one Splice: the old file is read up to limit, nodes hold up
// to fan children or extents.
type splicer struct {
	reader Reader
	limit  uint64
	fan    int
	nodes  []NewNode
	// growing is set once the edits are applied and levels are added or removed.
	growing bool
}

// node is a manifest node in memory: extents at height 0, else kids.
type node struct {
	extents []Extent
	kids    []child
}

func (n *node) count() int { return len(n.extents) + len(n.kids) }

// child is a node as its parent knows it; mem is set once it was touched, and
// then the ref is out of date until it is encoded.
type child struct {
	ref
	mem *node
}

// load brings a child's node into memory, its extents from base on.
func (s *splicer) load(c *child, height int, base uint64) error {
	const op fault.Op = "chunk.load"
	if c.mem != nil {
		return nil
	}
	data, err := s.read(c.address)
	if err != nil {
		return err
	}
	n, end := &node{}, base
	if height == 0 {
		n.extents, err = DecodeExtents(make([]Extent, 0, MaxFan+2), data, base)
		if len(n.extents) > 0 {
			end = n.extents[len(n.extents)-1].End()
		}
	} else {
		var kids []ref
		kids, err = decodeInner(make([]ref, 0, MaxFan), data)
		n.kids = make([]child, len(kids), len(kids)+2)
		for i := range kids {
			n.kids[i].ref = kids[i]
			end += kids[i].length
		}
	}
	if err == nil && end-base != c.length {
		err = fault.E(fault.Corrupt, op, c.address.String(), "a manifest node has another length than its parent says")
	}
	c.mem = n
	return err
}

// read finds a node; once all edits are applied it may be one of this Splice's.
func (s *splicer) read(a Address) ([]byte, error) {
	if s.growing {
		if i := s.made(a); i >= 0 {
			return s.nodes[i].Data, nil
		}
	}
	return s.reader.Node(a)
}

// apply puts edits over the child that begins at base. Edits behind the
// child's end belong to it too: its parent gives them only to the last one.
func (s *splicer) apply(c *child, height int, base uint64, edits []Extent) error {
	if c.mem == nil && covered(edits, base, min(base+c.length, s.limit)) {
		c.mem = &node{} // nothing of it stays: no need to read it
	}
	if err := s.load(c, height, base); err != nil {
		return err
	}
	if height == 0 {
		c.mem.extents = overlay(c.mem.extents, edits, s.limit)
		return nil
	}
	kids, at := c.mem.kids, base
	for i := range kids { // what the truncation removes
		if at >= s.limit {
			kids = kids[:i]
			break
		}
		at += kids[i].length
	}
	if len(kids) == 0 {
		kids = append(kids[:0], child{mem: &node{}})
	}
	at = base
	for i := range kids {
		k := &kids[i]
		end := at + k.length
		mine := edits
		if i < len(kids)-1 {
			mine, edits = divide(edits, end)
		}
		if len(mine) > 0 || end > s.limit {
			if err := s.apply(k, height-1, at, mine); err != nil {
				return err
			}
		}
		at = end
	}
	var err error
	c.mem.kids, err = s.balance(kids, height-1)
	return err
}

// covered reports whether edits, which ascend and are disjoint, cover [from, to).
func covered(edits []Extent, from, to uint64) bool {
	for i := range edits {
		if edits[i].Offset > from {
			return false
		}
		from = max(from, edits[i].End())
		if from >= to {
			return true
		}
	}
	return from >= to
}

// divide parts edits at an offset; one that spans it is in both, clipped.
func divide(edits []Extent, at uint64) (left, right []Extent) {
	for i := range edits {
		if edits[i].End() <= at {
			continue
		}
		if edits[i].Offset >= at {
			return edits[:i:i], edits[i:]
		}
		left = append(edits[:i:i], edits[i].Clip(0, at))
		right = append(make([]Extent, 0, len(edits)-i), edits[i].Clip(at, MaxFileSize))
		return left, append(right, edits[i+1:]...)
	}
	return edits, nil
}

// overlay returns old, cut at limit, with edits put over it.
func overlay(old, edits []Extent, limit uint64) []Extent {
	out := make([]Extent, 0, len(old)+2*len(edits)+1)
	at := uint64(0) // everything before it is settled
	for i := range old {
		e := old[i].Clip(at, limit)
		for len(edits) > 0 && edits[0].Offset < e.End() && e.Length > 0 {
			out = appendExtent(out, e.Clip(0, edits[0].Offset))
			out = appendExtent(out, edits[0])
			at = edits[0].End()
			edits = edits[1:]
			e = e.Clip(at, limit)
		}
		out = appendExtent(out, e)
	}
	for i := range edits {
		out = appendExtent(out, edits[i])
	}
	return out
}
