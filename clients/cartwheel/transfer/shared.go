package transfer

import (
	"bytes"
	"context"
	"encoding/binary"
	"sync"
	"time"

	"cartwheel.dev/clients/content"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/chunk"
	"cartwheel.dev/node/protocol/method"
	"cartwheel.dev/node/protocol/pb"
	"cartwheel.dev/node/wire"
)

const (
	// sharedAtOnce bounds the chunks of one request to a node of this client's site.
	// A node answers when it has all of them.
	sharedAtOnce = 4
	// siteStall is for how long nothing may come from a node of this site, which may
	// wait for another one itself, until a member of the slice is asked.
	siteStall = 15 * time.Second
)

// getShared asks the nodes of this client's site, each for its own chunks, so that
// the site fetches each chunk once. What they do not answer with is asked of a
// member of the slice.
func (s *Service) getShared(ctx context.Context, o ids.Object, parts []content.Part, readable []byte) ([]byte, error) {
	nodes := s.cluster.Sharers()
	if len(nodes) == 0 {
		return s.getNear(ctx, o, parts, readable)
	}
	by := map[ids.Node][]int{}
	for i := range parts {
		n := sharer(nodes, parts[i].Address)
		by[n] = append(by[n], i)
	}
	out := make([][]byte, len(parts))
	var all sync.WaitGroup
	for node, list := range by {
		for len(list) > 0 {
			some := list[:min(len(list), sharedAtOnce)]
			list = list[len(some):]
			all.Go(func() { s.fromSharer(ctx, node, o, parts, some, readable, out) })
		}
	}
	all.Wait()
	var rest []content.Part
	for i := range parts {
		if out[i] == nil {
			rest = append(rest, parts[i])
		}
	}
	var body []byte
	if len(rest) > 0 {
		var err error
		if body, err = s.getNear(ctx, o, rest, readable); err != nil {
			return nil, err
		}
	}
	for i := range out {
		if n := int(parts[i].Length); out[i] == nil {
			out[i], body = body[:n], body[n:]
		}
	}
	return bytes.Join(out, nil), nil
}

// fromSharer asks one node of this site for those of the parts that are in some, and
// puts them into out.
func (s *Service) fromSharer(ctx context.Context, node ids.Node, o ids.Object, parts []content.Part, some []int, readable []byte, out [][]byte) {
	wanted := make([]content.Part, len(some))
	for i, at := range some {
		wanted[i] = parts[at]
	}
	req, size := s.getRequest(o, wanted, readable)
	req.Sharing = pb.Sharing_SITE
	short, cancel := wire.Patient(ctx, s.cluster.Host(), string(node), wire.Chunk, siteStall, contentMost)
	defer cancel()
	resp := &pb.GetResponse{}
	buffer, err := s.cluster.Call(short, node, wire.Chunk, method.Get, req, nil, resp)
	if err != nil || resp.Refusal != nil || len(resp.Missing) > 0 || len(buffer.Bytes()) != size {
		if ctx.Err() == nil && short.Err() != nil {
			s.cluster.Avoid(node)
		}
		return
	}
	body := buffer.Bytes() // left to the garbage collector: it is copied later
	for i, at := range some {
		n := int(wanted[i].Length)
		out[at], body = body[:n:n], body[n:]
	}
}

// sharer is the node that fetches a chunk for a site: the same for all clients there
// that know the same nodes.
func sharer(nodes []ids.Node, a chunk.Address) ids.Node {
	var best ids.Node
	var most uint64
	for _, n := range nodes {
		sum := chunk.SumParts(a[:], []byte(n))
		if w := binary.BigEndian.Uint64(sum[:8]); best == "" || w > most {
			best, most = n, w
		}
	}
	return best
}
