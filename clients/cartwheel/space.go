package cartwheel

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"cartwheel.dev/clients/mount"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/protocol/method"
	"cartwheel.dev/node/protocol/pb"
	"cartwheel.dev/node/wire"
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
	if row, ok := c.router.Known(ids.RootSlice); ok {
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
	copies = min(max(copies, 1), len(nodes))
	var total, free, left []uint64
	var objects, most uint64
	for _, n := range nodes {
		total, free, left = append(total, n.TotalBytes), append(free, n.FreeBytes), append(left, n.FreeObjects)
		objects, most = objects+n.Objects, max(most, n.Objects)
	}
	files := max(most, objects/uint64(copies))
	room := fits(left, copies)
	const unit = 4096
	avail := fits(free, copies) / unit
	return mount.Space{
		BlockSize: unit, Blocks: fits(total, copies) / unit, FreeBlocks: avail, AvailBlocks: avail,
		Files: files + room, FreeFiles: room, NameMax: mount.NameMax,
	}
}

// fits is how much fits into rooms where each part goes into so many different
// ones. The largest rooms may be larger than the others can match: with each
// number of them left aside, the rest must hold the copies that are left.
func fits(rooms []uint64, copies int) uint64 {
	slices.SortFunc(rooms, func(a, b uint64) int { return cmp.Compare(b, a) })
	rest := uint64(0)
	for _, r := range rooms {
		rest += r
	}
	most := rest / uint64(copies)
	for i := 1; i < copies; i++ {
		rest -= rooms[i-1]
		most = min(most, rest/uint64(copies-i))
	}
	return most
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
	by map[ids.Object]*pb.Receipt
}

func (r *receipts) note(o ids.Object, x *pb.Receipt) {
	if x == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.by == nil || len(r.by) >= maxReceipts {
		r.by = make(map[ids.Object]*pb.Receipt, maxReceipts)
	}
	r.by[o] = x
}

func (r *receipts) get(o ids.Object) *pb.Receipt {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.by[o]
}
