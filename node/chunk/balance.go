package chunk

import (
	"slices"

	"cartwheel.dev/geo-config/fault"
)

// balance brings the touched ones among siblings to between a quarter of the
// fan-out and the whole of it in children or extents, and encodes them. An untouched sibling stays as it is,
// unless a small one must be joined to it.
func (s *splicer) balance(kids []child, height int) ([]child, error) {
	kids, err := s.join(kids, height)
	if err != nil {
		return nil, err
	}
	out := make([]child, 0, len(kids)+2)
	for i := range kids {
		k := kids[i]
		if k.mem == nil {
			out = append(out, k)
			continue
		}
		for _, part := range k.mem.split(s.fan, i == len(kids)-1) {
			out = append(out, child{ref: s.encode(part, height)})
		}
	}
	return out, nil
}

// join drops empty siblings and joins small ones to a neighbour. The last one
// may stay small where its neighbour is untouched: files grow there.
func (s *splicer) join(kids []child, height int) ([]child, error) {
	out := kids[:0]
	for i := range kids {
		k := kids[i]
		if k.mem != nil && k.mem.count() == 0 {
			continue
		}
		if n := len(out); n > 0 && (s.small(out[n-1]) || (s.small(k) && (i < len(kids)-1 || out[n-1].mem != nil))) {
			prev := &out[n-1]
			if err := s.load(prev, height, 0); err != nil {
				return nil, err
			}
			if err := s.load(&k, height, 0); err != nil {
				return nil, err
			}
			prev.mem.concat(k.mem)
			continue
		}
		out = append(out, k)
	}
	return out, nil
}

func (s *splicer) small(c child) bool { return c.mem != nil && c.mem.count() < s.fan/4 }

// concat adds the content of the node that follows n.
func (n *node) concat(next *node) {
	n.kids = append(n.kids, next.kids...)
	for _, e := range next.extents {
		e.Offset = 0
		if len(n.extents) > 0 {
			e.Offset = n.extents[len(n.extents)-1].End()
		}
		n.extents = appendExtent(n.extents, e)
	}
}

// split parts a node that is too full: evenly, or, at the file's end, into full
// nodes and a rest, because files grow there.
func (n *node) split(fan int, last bool) []*node {
	count := n.count()
	if count <= fan {
		return []*node{n}
	}
	parts := (count + fan - 1) / fan
	out := make([]*node, 0, parts)
	for i, from := 0, 0; i < parts; i++ {
		to := count * (i + 1) / parts
		if last {
			to = min(count, (i+1)*fan)
		}
		p := &node{}
		if n.extents != nil {
			p.extents = n.extents[from:to]
		} else {
			p.kids = n.kids[from:to]
		}
		out, from = append(out, p), to
	}
	return out
}

// encode turns a node in memory whose children are all encoded into bytes.
func (s *splicer) encode(n *node, height int) ref {
	var r ref
	var data []byte
	if height == 0 {
		data = AppendExtents(make([]byte, 0, 8+len(n.extents)*48), n.extents)
		for i := range n.extents {
			r.length += n.extents[i].Length
			if !n.extents[i].IsHole() {
				r.stored += n.extents[i].Length
			}
		}
	} else {
		refs := make([]ref, len(n.kids))
		for i := range n.kids {
			refs[i] = n.kids[i].ref
			r.length += refs[i].length
			r.stored += refs[i].stored
		}
		data = appendInner(make([]byte, 0, 8+len(refs)*48), refs)
	}
	r.address = Sum(data)
	s.nodes = append(s.nodes, NewNode{Address: r.address, Data: data})
	return r
}

// grow makes a root of the touched top node: more levels where it is too full,
// fewer where a level has one child.
func (s *splicer) grow(top child, height int) (Root, error) {
	const op fault.Op = "chunk.grow"
	if top.mem.count() == 0 {
		return Root{}, nil
	}
	s.growing = true
	for height > 0 && len(top.mem.kids) == 1 {
		only := top.mem.kids[0]
		if height--; height == 0 {
			return rootOf(only.ref, 0), nil
		}
		if err := s.load(&only, height, 0); err != nil {
			return Root{}, err
		}
		if len(only.mem.kids) > 1 {
			return rootOf(only.ref, height), nil
		}
		s.forget(only.address)
		top = only
	}
	kids, err := s.balance([]child{top}, height)
	for err == nil && len(kids) > 1 {
		height++
		kids, err = s.balance([]child{{mem: &node{kids: kids}}}, height)
	}
	if err != nil {
		return Root{}, err
	}
	if height > maxHeight {
		return Root{}, fault.E(fault.TooLarge, op, "", "a manifest is too high")
	}
	return rootOf(kids[0].ref, height), nil
}

// made finds a node of this Splice.
func (s *splicer) made(a Address) int {
	return slices.IndexFunc(s.nodes, func(n NewNode) bool { return n.Address == a })
}

// forget drops a node of this Splice that nothing names after all.
func (s *splicer) forget(a Address) {
	if i := s.made(a); i >= 0 {
		s.nodes = slices.Delete(s.nodes, i, i+1)
	}
}

func rootOf(r ref, height int) Root {
	return Root{Address: r.address, Height: uint8(height), Size: r.length, Stored: r.stored}
}
