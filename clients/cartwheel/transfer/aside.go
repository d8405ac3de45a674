package transfer

import (
	"context"
	"time"

	"cartwheel.dev/clients/cartwheel/timeouts"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/chunk"
	"cartwheel.dev/node/cue"
	"cartwheel.dev/node/protocol/method"
	"cartwheel.dev/node/protocol/pb"
	"cartwheel.dev/node/wire"
)

// Content that is written on eventual terms while the active is away goes to the nodes
// with a copy that can be reached: one that keeps it is enough, and it brings the rest
// to the active when it merges.

// putLimit bounds how long chunks on eventual terms are sent to an active that does
// not take them.
const putLimit = 15 * time.Second

// HaveChunks implements content.Remote. On eventual terms it finds out whether the
// active is there; where it is not, everything is to be sent.
func (s *Service) HaveChunks(ctx context.Context, o ids.Object, addresses []chunk.Address, sizes []uint32, body [][]byte) (missing []bool, err error) {
	if !timeouts.Eventual(ctx) {
		return s.haveAtActive(ctx, o, addresses, sizes, body)
	}
	ctx, cancel := context.WithTimeout(ctx, cue.EventualLimit)
	defer cancel()
	err = s.router.Otherwise(ctx, o.Slice(), func(ctx context.Context) (err error) {
		missing, err = s.haveAtActive(ctx, o, addresses, sizes, body)
		return err
	}, func(context.Context, []ids.Node) error {
		missing = make([]bool, len(addresses))
		for i := range missing {
			missing[i] = true
		}
		return nil
	})
	return missing, err
}

// putEventually stores chunks with the members, or with one that can be reached.
func (s *Service) putEventually(ctx context.Context, o ids.Object, addresses []chunk.Address, sizes []uint32, body [][]byte) error {
	if !s.router.IsAway(o.Slice()) {
		short, cancel := context.WithTimeout(ctx, putLimit)
		defer cancel()
		err := s.putChunks(short, o, addresses, sizes, body)
		if err == nil || ctx.Err() != nil {
			return err
		}
	}
	return s.putAside(ctx, o, addresses, sizes, body)
}

func (s *Service) putAside(ctx context.Context, o ids.Object, addresses []chunk.Address, sizes []uint32, body [][]byte) error {
	var err error = fault.E(fault.Unreachable, "transfer.putAside", "", "no node with a copy of the slice keeps side logs")
	row, known := s.router.Known(o.Slice())
	if !known {
		return err
	}
	nodes := s.cluster.KeepSides(row.Normals())
	s.cluster.Sort(nodes)
	for i, n := range nodes {
		if n == row.Active {
			continue
		}
		req := &pb.PutRequest{Slice: uint32(row.ID), Addresses: join(addresses), Sizes: sizes, Client: s.cluster.Client()}
		part, cancel := context.WithTimeout(ctx, putLimit)
		resp := &pb.PutResponse{}
		buffer, e := s.cluster.Call(part, n, wire.Chunk, method.Put, req, body, resp)
		buffer.Release()
		cancel()
		if e == nil {
			s.tickets.Own(addresses, resp.Owned)
			return nil
		}
		if err = e; i == len(nodes)-1 || ctx.Err() != nil {
			break
		}
	}
	return err
}
