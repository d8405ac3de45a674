package tree

import (
	"bytes"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/chunk"
	"cartwheel.dev/node/protocol/pb"
)

// content brings what the side wrote into a file that is here.
func (g *merging) content(x *Inode) error {
	same, err := g.isSame(x)
	if err != nil || same {
		return err
	}
	if x.Sealed {
		g.lost = true
		return g.keepSide(x.Object, "the file is write-once, and was written elsewhere first")
	}
	if (x.Version != g.m.BaseVersion || g.m.Fresh) && !g.goesOn(x) {
		if g.m.AtNs <= x.Ctime && !(g.m.Fresh && x.Size == 0) {
			g.lost = true
			return g.keepSide(x.Object, "a newer version was written elsewhere")
		}
		if !g.m.Fresh || x.Size > 0 { // else its maker sent it to the active too, empty
			if err := g.keepHere(x); err != nil {
				return err
			}
		}
	}
	whole := &pb.Commit{Object: g.m.Object, Extents: g.m.Content.GetExtents(), Size: new(uint64), Extend: g.m.Content.Extend, MtimeNs: g.m.Attr.MtimeNs}
	return g.do(&pb.Operation{Op: &pb.Operation_Commit{Commit: whole}}, g.body)
}

// goesOn reports whether the side wrote over what another side log had of a file, and
// the file is here as that one's merge left it.
func (g *merging) goesOn(x *Inode) bool {
	return ids.Serial(g.m.BaseVersion) >= FirstOfSide && x.Side.Merged == g.m.BaseVersion && x.Side.Began == x.Version
}

// isSame reports whether a file has the side's content.
func (g *merging) isSame(x *Inode) (bool, error) {
	c := g.m.Attr.GetContent()
	if !x.IsRegular() || x.Size != c.GetSize() {
		return false, nil
	}
	if x.Size == 0 {
		return true, nil
	}
	if !x.Beside && len(c.Inline) == 0 {
		return bytes.Equal(x.Root[:], c.Root), nil
	}
	here, err := g.oneChunk(x)
	side := chunk.Sum(c.Inline)
	if list := g.m.Content.GetExtents(); len(c.Inline) == 0 {
		if len(list) != 1 || list[0].Length != x.Size || list[0].ChunkOffset != 0 {
			return false, err
		}
		if side, err = g.addressOf(list[0]); err != nil {
			return false, err
		}
	}
	return here == side, err
}

// addressOf is the address of an extent's chunk, or of its bytes.
func (g *merging) addressOf(e *pb.Extent) (chunk.Address, error) {
	src, inBody := e.Source.(*pb.Extent_BodyOffset)
	if !inBody {
		return chunk.AddressOf(e.GetChunk())
	}
	if src.BodyOffset > uint64(len(g.body)) || e.Length > uint64(len(g.body))-src.BodyOffset {
		return chunk.Address{}, refusal(fault.Invalid)
	}
	return chunk.Sum(g.body[src.BodyOffset:][:e.Length]), nil
}

// oneChunk is the address of a small file's bytes, which lie beside the record or are
// one chunk; zero: they are neither.
func (g *merging) oneChunk(x *Inode) (chunk.Address, error) {
	if x.Beside {
		value, _, err := g.layer.Get(objectKey(keyContent, x.Object))
		return chunk.Sum(value), err
	}
	list, err := chunk.Extents(g.batch, x.root(), 0, x.Size, 2)
	if err != nil || len(list) != 1 || list[0].ChunkOffset != 0 || list[0].Length != uint64(list[0].ChunkSize) {
		return chunk.Address{}, err
	}
	return list[0].Chunk, nil
}

// ChunkExtents names extents of stored chunks as a commit does. Holes are left out.
func ChunkExtents(list []chunk.Extent) (out []*pb.Extent) {
	for i := range list {
		e := &list[i]
		if e.Chunk.IsZero() {
			continue
		}
		out = append(out, &pb.Extent{Offset: e.Offset, Length: e.Length, ChunkOffset: uint64(e.ChunkOffset), ChunkSize: e.ChunkSize,
			Source: &pb.Extent_Chunk{Chunk: bytes.Clone(e.Chunk[:])}})
	}
	return out
}
