package requests

import (
	"context"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/chunk"
	"cartwheel.dev/node/protocol/pb"
	"cartwheel.dev/node/server/access"
	"cartwheel.dev/node/server/budget"
	"cartwheel.dev/node/server/chunks"
	"cartwheel.dev/node/server/identity"
	"cartwheel.dev/node/server/sharing"
	"cartwheel.dev/node/store/pack"
	"cartwheel.dev/node/wire"
)

// Shared answers for chunks that nodes share: it serves the clients of the node's
// site, and other nodes that do. Every field is needed, and none changes.
type Shared struct {
	Access  *access.Control
	Content *chunks.Server
	Cache   *sharing.Cache
	Given   *sharing.Given
	// Far reports whether a node stands at another site.
	Far    func(peer string) bool
	Budget Budget
}

const (
	// smallChunk is up to what size a member sends a chunk rather than say who
	// has it.
	smallChunk = 8 << 10
	// mostShared and mostSharedBytes bound the chunks of one request of a client.
	mostShared      = 64
	mostSharedBytes = 4 << 20
	// mostAvoided bounds the nodes that a request names.
	mostAvoided = 64
)

// get answers a request for chunks with which nodes share.
func (s *Shared) get(ctx context.Context, r *wire.Request, w *identity.Who, req *pb.GetRequest) {
	const op fault.Op = "requests.get"
	if req.Sharing == pb.Sharing_SITE {
		s.forSite(ctx, r, w, req)
		return
	}
	addresses, err := chunk.Addresses(req.Addresses)
	switch {
	case !w.Node:
		r.Fail(fault.E(fault.Permission, op, r.Peer, "only nodes ask for chunks in this way"))
	case err != nil || len(addresses) != 1 || len(req.Parts) != 0 || len(req.Avoid) > mostAvoided:
		r.Fail(fault.E(fault.Invalid, op, r.Peer, "such a request names one whole chunk, and few nodes to avoid"))
	case req.Sharing == pb.Sharing_SOURCE:
		s.source(ctx, r, req, addresses[0])
	case req.Sharing == pb.Sharing_HELD:
		s.held(ctx, r, addresses[0])
	default:
		r.Fail(fault.E(fault.NotSupported, op, r.Peer, "this node knows no such way to ask for chunks: update it"))
	}
}

// source answers a node that brings a chunk for its site: with nodes that were given
// it lately, or with the bytes.
func (s *Shared) source(ctx context.Context, r *wire.Request, req *pb.GetRequest, a chunk.Address) {
	if n, here := s.Content.Packs.Length(a); here && n > smallChunk && s.Far(r.Peer) {
		if holders := s.Given.Give(a, ids.Node(r.Peer), req.Avoid); len(holders) > 0 {
			names := &pb.GetResponse_Holders{}
			for _, h := range holders {
				names.Nodes = append(names.Nodes, string(h))
			}
			r.Reply(&pb.GetResponse{Sizes: []uint32{0}, Holders: []*pb.GetResponse_Holders{names}})
			return
		}
	}
	answer, body, done, err := s.Content.Get(ctx, &pb.GetRequest{Addresses: a[:]}, chunks.Room{Wait: func(ctx context.Context, bytes int) error {
		return s.Budget.Answer(ctx, r.Peer, budget.Foreground, bytes)
	}})
	if err != nil {
		r.Fail(err)
		return
	}
	r.ReplyOwned(done, answer, body)
}

// held answers a node that a member sent here with what is kept for the site.
func (s *Shared) held(ctx context.Context, r *wire.Request, a chunk.Address) {
	resume, err := wire.Yield(ctx)
	if err != nil {
		r.Fail(err)
		return
	}
	data := s.Cache.Held(ctx, a)
	resume()
	if data == nil {
		r.Reply(&pb.GetResponse{Sizes: []uint32{0}, Missing: []byte{1}})
		return
	}
	if err := s.Budget.Answer(ctx, r.Peer, budget.Foreground, len(data)); err != nil {
		r.Fail(err)
		return
	}
	s.Cache.Served(len(data))
	r.Reply(&pb.GetResponse{Sizes: []uint32{uint32(len(data))}}, data)
}

// forSite answers a client of the node's site with parts of chunks of a version, for
// which a user shows a ticket as everywhere else.
func (s *Shared) forSite(ctx context.Context, r *wire.Request, w *identity.Who, req *pb.GetRequest) {
	addresses, err := checkShared(req)
	if err == nil {
		err = s.Access.MayHave(w, req.Object, req.Root, req.Readable)
	}
	var resume func()
	if err == nil {
		resume, err = wire.Yield(ctx)
	}
	if err != nil {
		r.Fail(err)
		return
	}
	parts, err := s.parts(ctx, access.Holder(w) != nil, req, addresses)
	resume()
	if err != nil {
		r.Fail(err)
		return
	}
	answer := &pb.GetResponse{}
	for _, p := range parts {
		answer.Sizes = append(answer.Sizes, uint32(len(p)))
		s.Cache.Served(len(p))
	}
	r.Reply(answer, parts...)
}

// checkShared validates a client's request.
func checkShared(req *pb.GetRequest) ([]chunk.Address, error) {
	const op fault.Op = "requests.checkShared"
	addresses, err := chunk.Addresses(req.Addresses)
	if err != nil || len(addresses) != len(req.Parts) || len(addresses) > mostShared {
		return nil, fault.Errorf(fault.Invalid, op, "", "a request to a site's node names at most %d chunks, and a part of each", mostShared)
	}
	total := uint64(0)
	for _, p := range req.Parts {
		total += uint64(p.Length)
		if p.Length == 0 || uint64(p.Offset)+uint64(p.Length) > chunk.MaxSize {
			return nil, fault.E(fault.Invalid, op, "", "a part is empty, or leaves its chunk")
		}
	}
	if total > mostSharedBytes {
		return nil, fault.E(fault.TooLarge, op, "", "more than one answer holds: ask for fewer chunks at once")
	}
	return addresses, nil
}

// parts reads parts of chunks, from this node's disk or from what the nodes share.
func (s *Shared) parts(ctx context.Context, isUser bool, req *pb.GetRequest, addresses []chunk.Address) ([][]byte, error) {
	const op fault.Op = "requests.parts"
	if isUser {
		if err := chunks.LeadsTo(&manifests{ctx, s, ids.Slice(req.Slice)}, req); err != nil {
			return nil, err
		}
	}
	whole, err := s.bring(ctx, ids.Slice(req.Slice), addresses)
	if err != nil {
		return nil, err
	}
	for i, p := range req.Parts {
		end := uint64(p.Offset) + uint64(p.Length)
		if end > uint64(len(whole[i])) {
			return nil, fault.E(fault.Invalid, op, addresses[i].String(), "the part leaves its chunk")
		}
		whole[i] = whole[i][p.Offset:end]
	}
	return whole, nil
}

// bring returns whole chunks, which must not be changed.
func (s *Shared) bring(ctx context.Context, slice ids.Slice, addresses []chunk.Address) ([][]byte, error) {
	out := make([][]byte, len(addresses))
	var ranges []pack.Range
	var others []chunk.Address
	for i, a := range addresses {
		if n, here := s.Content.Packs.Length(a); here {
			out[i] = make([]byte, n)
			ranges = append(ranges, pack.Range{Address: a, Into: out[i]})
		} else {
			others = append(others, a)
		}
	}
	if err := s.Content.Packs.Read(ctx, ranges); err != nil {
		return nil, fault.Wrap(fault.IO, "requests.bring", "", err)
	}
	brought, err := s.Cache.Bring(ctx, slice, others)
	if err != nil {
		return nil, err
	}
	for i := range out {
		if out[i] == nil {
			out[i], brought = brought[0], brought[1:]
		}
	}
	return out, nil
}

// manifests reads the nodes of manifests for one request, those of slices too of
// which this node is no member.
type manifests struct {
	ctx   context.Context
	from  *Shared
	slice ids.Slice
}

// Node implements chunk.Reader.
func (m *manifests) Node(a chunk.Address) ([]byte, error) {
	if data, err := m.from.Content.Nodes.Node(a); !fault.Is(err, fault.Missing) {
		return data, err
	}
	data, err := m.from.Cache.Bring(m.ctx, m.slice, []chunk.Address{a})
	if err != nil {
		return nil, err
	}
	return data[0], nil
}
