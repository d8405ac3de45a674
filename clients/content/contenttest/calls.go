package contenttest

import (
	"bytes"
	"context"
	"slices"

	"cartwheel.dev/clients/content"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/chunk"
	"cartwheel.dev/node/protocol/pb"
)

// Commit implements content.Remote.
func (c *Cluster) Commit(ctx context.Context, in content.Commit) (*pb.Result, error) {
	after, err := c.enter(ctx, Commit)
	if err != nil {
		return nil, err
	}
	res, err := c.Apply(in)
	if err != nil {
		return nil, err
	}
	return res, after
}

// Apply runs a commit apart from all faults, as another client's.
func (c *Cluster) Apply(in content.Commit) (*pb.Result, error) {
	const op fault.Op = "contenttest.Apply"
	c.mu.Lock()
	defer c.mu.Unlock()
	o := c.getLocked(in.Object)
	body := slices.Concat(in.Body...)
	c.bytes[Commit] += int64(len(body))
	size := o.size()
	if in.Splice.Size != nil {
		size = in.Splice.GetSize()
	}
	shift := uint64(0)
	if in.Splice.Append {
		shift = size
	}
	change := chunk.Change{Truncate: in.Splice.Size != nil, Size: in.Splice.GetSize(), Extend: in.Splice.GetExtend()}
	for _, x := range in.Splice.Extents {
		e := chunk.Extent{Offset: x.Offset + shift, Length: x.Length}
		switch s := x.Source.(type) {
		case *pb.Extent_Chunk:
			e.Chunk, e.ChunkOffset, e.ChunkSize = chunk.Address(s.Chunk), uint32(x.ChunkOffset), x.ChunkSize
			if len(c.chunks[e.Chunk]) != int(e.ChunkSize) {
				return nil, fault.E(fault.Missing, op, e.Chunk.String(), "")
			}
		case *pb.Extent_BodyOffset:
			if s.BodyOffset+x.Length > uint64(len(body)) {
				return nil, fault.E(fault.Invalid, op, "", "an extent leaves the body")
			}
			data := slices.Clone(body[s.BodyOffset:][:x.Length])
			e.Chunk, e.ChunkSize = chunk.Sum(data), uint32(x.Length)
			c.chunks[e.Chunk] = data
		}
		change.Extents = append(change.Extents, e)
	}
	if err := c.splice(o, change); err != nil {
		return nil, err
	}
	c.serial++
	o.version, o.mtime = c.serial, in.Splice.MtimeNs
	return &pb.Result{Serial: c.serial, Attr: c.attr(in.Object, o), Offset: shift}, nil
}

// splice changes an object, which lies in its record while it is small.
func (c *Cluster) splice(o *object, change chunk.Change) error {
	root := o.root
	if root.Size == 0 && len(o.inline) > 0 {
		first := chunk.Whole(0, chunk.Sum(o.inline), uint32(len(o.inline)))
		c.chunks[first.Chunk] = o.inline
		var nodes_ []chunk.NewNode
		var err error
		if root, nodes_, err = chunk.Splice(nodes{c}, root, chunk.Change{Extents: []chunk.Extent{first}}); err != nil {
			return err
		}
		c.keep(nodes_)
	}
	next, fresh, err := chunk.Splice(nodes{c}, root, change)
	if err != nil {
		return err
	}
	c.keep(fresh)
	if next.Size > inlineLimit {
		o.root, o.inline = next, nil
		return nil
	}
	inline := make([]byte, next.Size)
	if err := c.readRoot(next, inline, 0); err != nil {
		return err
	}
	o.root, o.inline = chunk.Root{}, inline
	return nil
}

func (c *Cluster) keep(fresh []chunk.NewNode) {
	for _, n := range fresh {
		c.chunks[n.Address] = n.Data
	}
}

// Write puts bytes into an object as another client does, in one commit.
func (c *Cluster) Write(id ids.Object, off uint64, data []byte) *pb.Attr {
	in := content.Commit{Object: id, Splice: &pb.Commit{Object: uint64(id)}}
	for at := 0; at < len(data); at += chunk.MaxSize {
		n := min(chunk.MaxSize, len(data)-at)
		in.Splice.Extents = append(in.Splice.Extents, &pb.Extent{
			Offset: off + uint64(at), Length: uint64(n), Source: &pb.Extent_BodyOffset{BodyOffset: uint64(at)},
		})
	}
	in.Body = [][]byte{data}
	res, err := c.Apply(in)
	if err != nil {
		panic(err) // the cluster itself is broken
	}
	return res.Attr
}

// HaveChunks implements content.Remote.
func (c *Cluster) HaveChunks(ctx context.Context, _ ids.Object, addresses []chunk.Address, _ []uint32, _ [][]byte) ([]bool, error) {
	after, err := c.enter(ctx, HaveChunks)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	missing := make([]bool, len(addresses))
	for i, a := range addresses {
		_, ok := c.chunks[a]
		missing[i] = !ok
	}
	return missing, after
}

// PutChunks implements content.Remote.
func (c *Cluster) PutChunks(ctx context.Context, _ ids.Object, addresses []chunk.Address, sizes []uint32, body [][]byte) error {
	const op fault.Op = "contenttest.PutChunks"
	after, err := c.enter(ctx, PutChunks)
	if err != nil {
		return err
	}
	all := bytes.Join(body, nil)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.bytes[PutChunks] += int64(len(all))
	for i, a := range addresses {
		if int(sizes[i]) > len(all) {
			return fault.E(fault.Invalid, op, a.String(), "the body is too short")
		}
		data := all[:sizes[i]:sizes[i]]
		if err := chunk.Verify(a, data); err != nil {
			return err
		}
		c.chunks[a] = data
		all = all[sizes[i]:]
	}
	if len(all) > 0 {
		return fault.E(fault.Invalid, op, "", "the body is too long")
	}
	return after
}

// GetChunks implements content.Remote.
func (c *Cluster) GetChunks(ctx context.Context, _ ids.Object, parts []content.Part, _ int) ([]byte, error) {
	const op fault.Op = "contenttest.GetChunks"
	after, err := c.enter(ctx, GetChunks)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	var out []byte
	for _, p := range parts {
		data, ok := c.chunks[p.Address]
		if !ok || len(data) != int(p.Size) {
			return nil, fault.E(fault.Missing, op, p.Address.String(), "")
		}
		out = append(out, data[p.Offset:][:p.Length]...)
	}
	c.bytes[GetChunks] += int64(len(out))
	return out, after
}

// Range implements content.Remote.
func (c *Cluster) Range(ctx context.Context, _ ids.Object, q content.Query) (content.Answer, error) {
	const op fault.Op = "contenttest.Range"
	after, err := c.enter(ctx, Range)
	if err != nil {
		return content.Answer{}, err
	}
	if q.Offset+q.Length > q.Root.Size || (!q.Data && !q.Extents) {
		return content.Answer{}, fault.E(fault.Invalid, op, "", "a range outside its version, or nothing wanted")
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	var a content.Answer
	if q.Extents {
		extents, err := chunk.Extents(nodes{c}, q.Root, q.Offset, q.Length, 0)
		if err != nil {
			return a, err
		}
		a.Extents = chunk.AppendExtents(nil, extents)
	}
	if q.Data {
		a.Data = make([]byte, q.Length)
		if err := c.readRoot(q.Root, a.Data, q.Offset); err != nil {
			return a, err
		}
		c.bytes[Range] += int64(q.Length)
	}
	return a, after
}
