package tree

import (
	"bytes"
	"fmt"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/chunk"
	"cartwheel.dev/node/protocol/pb"
)

// keepSide keeps the side's content as a file of its own.
func (g *merging) keepSide(won ids.Object, why string) error {
	n, err := g.nameOf(won)
	if err != nil {
		return err
	}
	if n == nil { // it was removed wherever this is known
		o := ids.Object(g.m.Object)
		if n = (&pb.Named{Dir: g.m.Attr.Parent, Name: fmt.Appendf(nil, "removed-%d-%d", o.Slice(), o.Number())}); n.Dir == 0 {
			return refusal(fault.Stale)
		}
	}
	dir, err := g.home(n.Dir)
	if err != nil {
		return err
	}
	name, same, err := g.spareName(dir, n.Name, g.isSame)
	if err != nil || same {
		return err
	}
	return g.keep(won, dir, n.Name, name, why, g.m.Content, g.m.Attr, g.body)
}

// keepHere keeps the content that a file has here as a file of its own.
func (g *merging) keepHere(x *Inode) error {
	n, err := g.nameOf(x.Object)
	if err != nil || n == nil { // it is removed, and nobody can find what is kept of it
		return err
	}
	dir, err := g.home(n.Dir)
	if err != nil {
		return err
	}
	name, _, err := g.spareName(dir, n.Name, func(*Inode) (bool, error) { return false, nil })
	if err != nil {
		return err
	}
	commit, body, err := g.contentHere(x)
	if err != nil {
		return err
	}
	return g.keep(x.Object, dir, n.Name, name, "an older version was written elsewhere", commit, x.Attr(), body)
}

// nameOf is the name beside which a file's content is kept: the one at the side, else the
// one that the file has here, where another side log or the active moved it; nil: it has
// none.
func (g *merging) nameOf(o ids.Object) (*pb.Named, error) {
	if g.m.Name != nil {
		return g.m.Name, nil
	}
	x, err := readInode(g.layer, o)
	if err != nil || x == nil || x.Parent == 0 {
		return nil, err
	}
	name, err := nameIn(g.layer, x.Parent, o)
	if err != nil || name == nil {
		return nil, err
	}
	return &pb.Named{Dir: uint64(x.Parent), Name: name}, nil
}

// contentHere is all of a file's content as a commit.
func (g *merging) contentHere(x *Inode) (*pb.Commit, []byte, error) {
	size := x.Size
	c := &pb.Commit{Extend: &size, MtimeNs: x.Mtime}
	if x.Beside {
		value, _, err := g.layer.Get(objectKey(keyContent, x.Object))
		c.Extents = []*pb.Extent{{Length: uint64(len(value)), Source: &pb.Extent_BodyOffset{}}}
		return c, bytes.Clone(value), err
	}
	if x.Size == 0 {
		return c, nil, nil
	}
	extents, err := chunk.Extents(g.batch, x.root(), 0, x.Size, 0)
	c.Extents = ChunkExtents(extents)
	return c, nil, err
}
