package cartwheel

import (
	"context"
	"sync"
	"time"

	"cartwheel.dev/clients/mount"
	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/node/wire"
	"cartwheel.dev/node/wire/method"
	"cartwheel.dev/node/wire/pb"
	"google.golang.org/protobuf/proto"
)

type protoMessage = proto.Message

// spaceLimit is how long one node is waited for.
const spaceLimit = 2 * time.Second

// spaceCache keeps the answer to statfs.
type spaceCache struct {
	mu    sync.Mutex // guards below
	space mount.Space
	until time.Duration
}

func (s *spaceCache) get(ctx context.Context, c *Client) (mount.Space, error) {
	s.mu.Lock()
	if s.until > c.boot() {
		defer s.mu.Unlock()
		return s.space, nil
	}
	s.mu.Unlock()
	ctx, cancel := c.remotely(ctx)
	defer cancel()
	var failed error
	for _, n := range c.cluster.Nearest() {
		var resp pb.StatfsResponse
		one, stop := context.WithTimeout(ctx, spaceLimit)
		_, err := c.cluster.Call(one, n, wire.Operation, method.Statfs, &pb.StatfsRequest{Header: &pb.ReadHeader{}}, nil, &resp)
		stop()
		if err != nil {
			failed = err
			continue
		}
		const unit = 4096
		out := mount.Space{
			BlockSize: unit, Blocks: resp.TotalBytes / unit, FreeBlocks: resp.FreeBytes / unit, AvailBlocks: resp.FreeBytes / unit,
			Files: resp.Objects + resp.FreeObjects, FreeFiles: resp.FreeObjects, NameMax: mount.NameMax,
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		s.space, s.until = out, c.boot()+spaceFor
		return out, nil
	}
	return mount.Space{}, failed
}

// maxReceipts bounds the objects whose last receipt is kept.
const maxReceipts = 4096

// receipts keeps what the active said of an object's last operation here.
type receipts struct {
	mu sync.Mutex // guards by
	by map[geoconfig.ObjectID]*pb.Receipt
}

func (r *receipts) note(o geoconfig.ObjectID, x *pb.Receipt) {
	if x == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.by == nil || len(r.by) >= maxReceipts {
		r.by = make(map[geoconfig.ObjectID]*pb.Receipt, maxReceipts)
	}
	r.by[o] = x
}

func (r *receipts) get(o geoconfig.ObjectID) *pb.Receipt {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.by[o]
}
