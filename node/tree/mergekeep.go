package tree

import (
	"bytes"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/chunk"
	"cartwheel.dev/node/protocol/pb"
)

// keepSide keeps the side's content as a file of its own.
func (g *merging) keepSide(won ids.Object, why string) error {
	n := g.m.Name
	if n == nil {
		return refusal(fault.Stale)
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
	n := g.m.Name
	if n == nil {
		return refusal(fault.Stale)
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
