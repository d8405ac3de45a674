package chunk

import "cartwheel.dev/geo-config/fault"

// Builder makes the manifest of a whole file from extents that come in order.
// It holds one unfinished node of each level; nodes that are full go to emit.
type Builder struct {
	emit   func(NewNode) error
	fan    int
	levels [][]child
	leaf   []Extent
	size   uint64
}

// NewBuilder returns a Builder that hands finished nodes to emit, children
// before parents.
func NewBuilder(emit func(NewNode) error) *Builder { return &Builder{emit: emit, fan: MaxFan} }

// Add appends an extent; its Offset is ignored: it begins where the last ended.
func (b *Builder) Add(e Extent) error {
	const op fault.Op = "chunk.Add"
	e.Offset = b.size
	if err := e.Validate(); err != nil {
		return fault.Wrap(fault.Invalid, op, "", err)
	}
	b.size = e.End()
	if n := len(b.leaf); n == b.fan && !b.leaf[n-1].joins(e) {
		if err := b.flushLeaf(); err != nil {
			return err
		}
	}
	b.leaf = appendExtent(b.leaf, e)
	return nil
}

// Finish returns the root of everything added. The Builder is then empty.
func (b *Builder) Finish() (Root, error) {
	if b.size == 0 {
		return Root{}, nil
	}
	if len(b.levels) == 0 {
		r, err := b.put(&node{extents: b.leaf}, 0)
		*b = Builder{emit: b.emit, fan: b.fan}
		return rootOf(r, 0), err
	}
	if err := b.flushLeaf(); err != nil {
		return Root{}, err
	}
	for h := 1; ; h++ {
		kids := b.levels[h-1]
		top := h == len(b.levels)
		if top && len(kids) == 1 {
			*b = Builder{emit: b.emit, fan: b.fan}
			return rootOf(kids[0].ref, h-1), nil
		}
		r, err := b.put(&node{kids: kids}, h)
		if err != nil {
			return Root{}, err
		}
		if top {
			*b = Builder{emit: b.emit, fan: b.fan}
			return rootOf(r, h), nil
		}
		b.levels[h-1] = nil
		if err := b.push(r, h+1); err != nil {
			return Root{}, err
		}
	}
}

func (b *Builder) flushLeaf() error {
	r, err := b.put(&node{extents: b.leaf}, 0)
	if err != nil {
		return err
	}
	b.leaf = b.leaf[:0]
	return b.push(r, 1)
}

// push adds a finished node to the unfinished one of height h.
func (b *Builder) push(r ref, h int) error {
	if len(b.levels) < h {
		b.levels = append(b.levels, nil)
	}
	if kids := b.levels[h-1]; len(kids) == b.fan {
		up, err := b.put(&node{kids: kids}, h)
		if err != nil {
			return err
		}
		b.levels[h-1] = nil
		if err := b.push(up, h+1); err != nil {
			return err
		}
	}
	b.levels[h-1] = append(b.levels[h-1], child{ref: r})
	return nil
}

func (b *Builder) put(n *node, height int) (ref, error) {
	var s splicer
	r := s.encode(n, height)
	return r, b.emit(s.nodes[0])
}
