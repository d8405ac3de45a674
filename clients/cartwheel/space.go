package cartwheel

import (
	"context"
	"sync"
	"time"

	"cartwheel.dev/clients/mount"
	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/node/wire"
	"cartwheel.dev/node/wire/method"
	"cartwheel.dev/node/wire/pb"
	"google.golang.org/protobuf/proto"
)

type protoMessage = proto.Message

const (
	// spaceLimit is how long the nodes are waited for, all together.
	spaceLimit = 2 * time.Second
	// spaceMore is how long the others are waited for once one has answered.
	spaceMore = 250 * time.Millisecond
	// maxSpace bounds the nodes that are asked; the nearest are.
	maxSpace = 64
)

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
	answers, err := c.askSpace(ctx)
	if len(answers) == 0 {
		return mount.Space{}, err
	}
	copies := 1
	if row, ok := c.router.Known(geoconfig.RootSlice); ok {
		copies = max(len(row.Members), 1)
	}
	out := spaceOf(answers, copies)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.space, s.until = out, c.boot()+spaceFor
	return out, nil
}

// askSpace asks all nodes at once. It returns what came within the limit, or soon
// after the first answer.
func (c *Client) askSpace(ctx context.Context) (answers []*pb.StatfsResponse, failed error) {
	ctx, cancel := context.WithTimeout(ctx, spaceLimit)
	defer cancel()
	type answer struct {
		resp *pb.StatfsResponse
		err  error
	}
	nodes := c.cluster.Nearest()
	nodes = nodes[:min(len(nodes), maxSpace)]
	came := make(chan answer, len(nodes))
	var asking sync.WaitGroup
	defer asking.Wait() // they end with ctx
	defer cancel()
	for _, n := range nodes {
		asking.Go(func() {
			resp := &pb.StatfsResponse{}
			_, err := c.cluster.Call(ctx, n, wire.Operation, method.Statfs, &pb.StatfsRequest{Header: &pb.ReadHeader{}}, nil, resp)
			came <- answer{resp, err}
		})
	}
	var enough <-chan time.Time // nil: nothing came yet
	for range nodes {
		select {
		case a := <-came:
			if a.err != nil {
				failed = a.err
				continue
			}
			if answers = append(answers, a.resp); enough == nil {
				timer := time.NewTimer(spaceMore)
				defer timer.Stop()
				enough = timer.C
			}
		case <-enough:
			return answers, nil
		}
	}
	return answers, failed
}

// spaceOf is the space of the tree over the disks of the nodes, where so many of
// them keep each file: as much as fits so often. Where each node has a copy of
// all, the fullest disk counts.
func spaceOf(nodes []*pb.StatfsResponse, copies int) mount.Space {
	var total, free, objects, left uint64
	least := &pb.StatfsResponse{TotalBytes: nodes[0].TotalBytes, FreeBytes: nodes[0].FreeBytes, FreeObjects: nodes[0].FreeObjects}
	for _, n := range nodes {
		total, free = total+n.TotalBytes, free+n.FreeBytes
		objects, left = objects+n.Objects, left+n.FreeObjects
		least.TotalBytes, least.FreeBytes = min(least.TotalBytes, n.TotalBytes), min(least.FreeBytes, n.FreeBytes)
		least.Objects, least.FreeObjects = max(least.Objects, n.Objects), min(least.FreeObjects, n.FreeObjects)
	}
	if k := uint64(copies); len(nodes) > copies {
		total, free, objects, left = total/k, free/k, objects/k, left/k
	} else {
		total, free, objects, left = least.TotalBytes, least.FreeBytes, least.Objects, least.FreeObjects
	}
	const unit = 4096
	return mount.Space{
		BlockSize: unit, Blocks: total / unit, FreeBlocks: free / unit, AvailBlocks: free / unit,
		Files: objects + left, FreeFiles: left, NameMax: mount.NameMax,
	}
}

// roomFor refuses to allocate more than there is free space. It reserves nothing.
// What is stored of the file counts as the beginning of it, and where no node
// says how much is free, the writes will.
func (c *Client) roomFor(ctx context.Context, h *handle, end, length uint64) error {
	space, err := c.space.get(ctx, c)
	if err != nil {
		return nil
	}
	stored := uint64(0)
	if a, _, ok := c.names.Attr(h.object); ok {
		stored = a.Stored
	}
	if lacking := min(length, end-min(end, stored)); lacking > space.AvailBlocks*uint64(space.BlockSize) {
		return fault.Errorf(fault.NoSpace, "cartwheel.Allocate", h.object.String(), "%d bytes are not free", lacking)
	}
	return nil
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
