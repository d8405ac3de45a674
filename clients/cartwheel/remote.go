package cartwheel

import (
	"context"
	"slices"
	"time"

	"cartwheel.dev/clients/content"
	"cartwheel.dev/clients/mount"
	"cartwheel.dev/clients/trace"
	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/chunk"
	"cartwheel.dev/node/protocol/method"
	"cartwheel.dev/node/protocol/pb"
	"cartwheel.dev/node/wire"
)

// remote is the Client as the content engine sees it.
type remote Client

var _ content.Remote = (*remote)(nil)

// Commit implements content.Remote.
func (r *remote) Commit(ctx context.Context, commit content.Commit) (*pb.Result, error) {
	c, o := (*Client)(r), commit.Object
	how, _ := commit.As.(*as)
	if how == nil {
		how = &as{p: &pb.Principal{}}
	}
	if err := c.showOwned(commit.Splice); err != nil {
		return nil, err
	}
	if f := c.alone.table.Of(o); f != nil {
		if c.alone.table.Claim(f) {
			return c.tell(ctx, f, &commit)
		}
		if err := f.Wait(ctx); err != nil {
			return nil, err
		}
	}
	if err := c.locks.mayCommit(ctx, o); err != nil {
		return nil, err
	}
	before, _, known := c.names.Attr(o)
	mark := c.names.MarkChange(o)
	resp, by, err := c.operate(ctx, operation{slice: o.Slice(), p: how.p, body: commit.Body, level: how.level,
		op: &pb.Operation{TimeNs: commit.Splice.MtimeNs, Op: &pb.Operation_Commit{Commit: commit.Splice}}})
	if err != nil {
		if unknown(err) {
			c.doubt(o)
		} else if !fault.Is(err, fault.Missing) { // the kernel's pages have what was refused
			c.kernel(func(n mount.Notifier) { n.InvalidateInode(plain(o), 0, 0) })
		}
		return nil, err
	}
	if a := resp.Result.Attr; a != nil {
		c.learn(&mark, by, resp, a)
		if commit.Splice.Append && (!known || before.Size != resp.Result.Offset) {
			// The kernel put the pages where it took the end to be.
			c.kernel(func(n mount.Notifier) { n.InvalidateInode(plain(o), 0, 0) })
		}
	}
	return resp.Result, nil
}

// bulk sends a request about content to the active of a slice and returns the
// body of the answer. Small ones go beside operations, large ones apart.
func (r *remote) bulk(ctx context.Context, slice ids.Slice, class wire.Class, m wire.Method, req answerless, body [][]byte,
	fresh func() answer) ([]byte, error) {
	c := (*Client)(r)
	var out []byte
	err := c.router.Active(ctx, slice, func(ctx context.Context, node ids.Node, _ ids.Epoch) (*pb.Refusal, error) {
		resp := fresh()
		buffer, err := c.cluster.Call(ctx, node, class, m, req, body, resp)
		if err == nil {
			out = buffer.Bytes() // left to the garbage collector: it is kept
		}
		return resp.GetRefusal(), err
	})
	return out, err
}

// answerless is a request.
type answerless = protoMessage

func join(addresses []chunk.Address) []byte {
	out := make([]byte, 0, len(addresses)*chunk.AddressSize)
	for i := range addresses {
		out = append(out, addresses[i][:]...)
	}
	return out
}

// replicaPatience bounds what is asked of another member than the active, who
// is asked instead then.
const replicaPatience = 5 * time.Second

// immutable sends a request about what never changes to the nearest normal
// member of a slice; where that one lacks some of it or does not answer, to the
// active.
func (r *remote) immutable(ctx context.Context, slice ids.Slice, class wire.Class, m wire.Method, req answerless,
	fresh func() answer, whole func(body []byte) bool) ([]byte, error) {
	c := (*Client)(r)
	row, known := c.router.Known(slice)
	if near := c.cluster.Closest(row.Active, row.Normals()); known && near != row.Active {
		short, cancel := context.WithTimeout(ctx, replicaPatience)
		defer cancel()
		resp := fresh()
		buffer, err := c.cluster.Call(short, near, class, m, req, nil, resp)
		if err == nil && resp.GetRefusal() == nil && whole(buffer.Bytes()) {
			return buffer.Bytes(), nil
		}
		if ctx.Err() == nil && short.Err() != nil {
			c.cluster.Avoid(near)
		}
	}
	return r.bulk(ctx, slice, class, m, req, nil, fresh)
}

// chain is the normal members of a slice in the order in which chunks pass from
// one to the next, the one nearest to this client first.
func (c *Client) chain(row geoconfig.SliceRow) []ids.Node {
	nodes := row.Normals()
	first := c.cluster.Closest(row.Active, nodes)
	if i := slices.Index(nodes, first); i > 0 {
		nodes[0], nodes[i] = nodes[i], nodes[0]
	}
	c.cluster.Chain(nodes)
	return nodes
}

// putNear sends chunks to the nearest normal member, which passes them on while
// it takes them, and reports whether they are at the active too.
func (r *remote) putNear(ctx context.Context, row geoconfig.SliceRow, addresses []chunk.Address, sizes []uint32, body [][]byte) bool {
	c := (*Client)(r)
	nodes := c.chain(row)
	if len(nodes) == 0 || nodes[0] == row.Active {
		return false
	}
	req := &pb.PutRequest{Slice: uint32(row.ID), Addresses: join(addresses), Sizes: sizes, Client: c.cluster.Client()}
	for _, n := range nodes[1:] {
		req.Chain = append(req.Chain, string(n))
	}
	resp := &pb.PutResponse{}
	buffer, err := c.cluster.Call(ctx, nodes[0], wire.Chunk, method.Put, req, body, resp)
	buffer.Release()
	if err == nil {
		c.tickets.own(addresses, resp.Owned)
	}
	return err == nil && slices.Contains(resp.Stored, string(row.Active))
}

// PutChunks implements content.Remote: the nearest member takes them and passes
// them on along the chain of the other normal ones; where that does not bring
// them to the active, the active takes them itself.
func (r *remote) PutChunks(ctx context.Context, o ids.Object, addresses []chunk.Address, sizes []uint32, body [][]byte) error {
	c := (*Client)(r)
	if row, ok := c.router.Known(o.Slice()); ok && r.putNear(ctx, row, addresses, sizes, body) {
		return nil
	}
	return c.router.Active(ctx, o.Slice(), func(ctx context.Context, node ids.Node, _ ids.Epoch) (*pb.Refusal, error) {
		req := &pb.PutRequest{Slice: uint32(o.Slice()), Addresses: join(addresses), Sizes: sizes, Client: c.cluster.Client()}
		if row, ok := c.router.Known(o.Slice()); ok {
			var chain []ids.Node
			for _, n := range row.Normals() {
				if n != node {
					chain = append(chain, n)
				}
			}
			c.cluster.Sort(chain)
			for _, n := range chain {
				req.Chain = append(req.Chain, string(n))
			}
		}
		resp := &pb.PutResponse{}
		buffer, err := c.cluster.Call(ctx, node, wire.Chunk, method.Put, req, body, resp)
		buffer.Release()
		c.tickets.own(addresses, resp.Owned)
		return resp.Refusal, err
	})
}

// GetChunks implements content.Remote.
func (r *remote) GetChunks(ctx context.Context, o ids.Object, parts []content.Part, try int) ([]byte, error) {
	const op fault.Op = "cartwheel.GetChunks"
	req := (*Client)(r).getRequest(o, parts[0].Root, (*Client)(r).readable(ctx, o, parts[0].Root.Address))
	req.Addresses = make([]byte, 0, len(parts)*chunk.AddressSize)
	size := 0
	for i := range parts {
		req.Addresses = append(req.Addresses, parts[i].Address[:]...)
		req.Parts = append(req.Parts, &pb.GetRequest_Part{Offset: parts[i].Offset, Length: parts[i].Length, At: parts[i].At})
		size += int(parts[i].Length)
	}
	if try > 0 {
		return r.getElsewhere(ctx, o, req, size, try)
	}
	var resp *pb.GetResponse
	body, err := r.immutable(ctx, o.Slice(), wire.Chunk, method.Get, req, func() answer { resp = &pb.GetResponse{}; return resp },
		func(body []byte) bool { return len(body) == size })
	if err != nil {
		return nil, err
	}
	if len(body) != size {
		return nil, fault.Errorf(fault.Missing, op, o.String(), "%d bytes of %d came", len(body), size)
	}
	return body, nil
}

// getElsewhere asks one member of the slice for chunks that came damaged: the
// active first, which has most to lose, then the others.
func (r *remote) getElsewhere(ctx context.Context, o ids.Object, req *pb.GetRequest, size, try int) ([]byte, error) {
	const op fault.Op = "cartwheel.GetChunks"
	c := (*Client)(r)
	row, err := c.router.Row(ctx, o.Slice())
	if err != nil {
		return nil, err
	}
	nodes := []ids.Node{row.Active}
	for _, n := range row.Normals() {
		if n != row.Active {
			nodes = append(nodes, n)
		}
	}
	short, cancel := context.WithTimeout(ctx, replicaPatience)
	defer cancel()
	resp := &pb.GetResponse{}
	buffer, err := c.cluster.Call(short, nodes[(try-1)%len(nodes)], wire.Chunk, method.Get, req, nil, resp)
	switch {
	case err != nil:
		return nil, err
	case resp.Refusal != nil || len(buffer.Bytes()) != size:
		return nil, fault.E(fault.Missing, op, o.String(), "this member does not have it")
	}
	return buffer.Bytes(), nil
}

// getRequest begins a request for chunks of a version of a file. Only users say
// which version that is.
func (c *Client) getRequest(o ids.Object, root chunk.Root, readable []byte) *pb.GetRequest {
	req := &pb.GetRequest{Slice: uint32(o.Slice())}
	if readable != nil {
		req.Object, req.Root, req.Height, req.Readable = uint64(o), root.Address[:], uint32(root.Height), readable
	}
	return req
}

// startLimit bounds a request that nobody waits for: about how long the active
// may take before it is suspected. Who waits asks again then.
const startLimit = time.Second

var _ content.Starter = (*remote)(nil)

// StartGet implements content.Starter: it asks the nearest member, once.
func (r *remote) StartGet(o ids.Object, part content.Part, of *trace.Operation, then func(data []byte, ok bool)) bool {
	c := (*Client)(r)
	row, known := c.router.Known(o.Slice())
	if !known {
		return false
	}
	var shown []byte
	if c.isUser() {
		if shown = c.tickets.of(o).version(part.Root.Address).ticket; shown == nil {
			return false // who waits gets one
		}
	}
	req := c.getRequest(o, part.Root, shown)
	req.Addresses, req.Parts = part.Address[:], []*pb.GetRequest_Part{{Offset: part.Offset, Length: part.Length, At: part.At}}
	resp := &pb.GetResponse{}
	return c.cluster.Start(c.cluster.Closest(row.Active, row.Normals()), wire.Chunk, method.Get, req, resp, startLimit, of, func(body []byte, err error) {
		whole := part.Offset == 0 && part.Length == part.Size
		if err != nil || resp.Refusal != nil || len(body) != int(part.Length) || whole && chunk.Verify(part.Address, body) != nil {
			then(nil, false)
			return
		}
		then(body, true)
	})
}

// smallRange is up to what size a range travels beside operations.
const smallRange = 64 << 10

// Range implements content.Remote. A node answers at most so many bytes at
// once; the rest is asked for.
func (r *remote) Range(ctx context.Context, o ids.Object, q content.Query) (content.Answer, error) {
	const op fault.Op = "cartwheel.Range"
	var out content.Answer
	class := wire.Chunk
	if !q.Data || q.Length <= smallRange {
		class = wire.Operation
	}
	readable := (*Client)(r).readable(ctx, o, q.Root.Address)
	for done := uint64(0); ; {
		var resp *pb.RangeResponse
		req := &pb.RangeRequest{Slice: uint32(o.Slice()), Root: q.Root.Address[:], Height: uint32(q.Root.Height), Offset: q.Offset + done, Length: q.Length - done, Data: q.Data,
			Readable: readable}
		if readable != nil {
			req.Object = uint64(o)
		}
		body, err := r.immutable(ctx, o.Slice(), class, method.Range, req, func() answer { resp = &pb.RangeResponse{}; return resp },
			func(body []byte) bool { return !q.Data || len(body) > 0 || q.Length == done })
		if err != nil {
			return out, err
		}
		if done == 0 {
			out.Extents = resp.Extents
		} else if q.Extents {
			out.Extents = append(out.Extents, resp.Extents...)
		}
		if !q.Data {
			return out, nil
		}
		if len(body) == 0 && done < q.Length {
			return out, fault.Errorf(fault.Corrupt, op, o.String(), "%d bytes of %d came", done, q.Length)
		}
		if done == 0 {
			out.Data = body
		} else {
			out.Data = append(out.Data, body...)
		}
		if done += uint64(len(body)); done >= q.Length {
			return out, nil
		}
	}
}

// Version implements content.Remote.
func (r *remote) Version(ctx context.Context, o ids.Object) (*pb.Attr, error) {
	return (*Client)(r).whole(ctx, o)
}
