// Package space tells how much room the tree has: it asks the nodes for their
// disks and works out what fits where each file is kept several times. It
// reserves nothing and knows nothing of files.
package space

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"cartwheel.dev/clients/mount"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/boottime"
	"cartwheel.dev/node/protocol/method"
	"cartwheel.dev/node/protocol/pb"
	"cartwheel.dev/node/wire"
	"google.golang.org/protobuf/proto"
)

const (
	// keptFor is how long an answer is kept: some programs ask all the time.
	keptFor = time.Second
	// askLimit is the timeout for all nodes together.
	askLimit = 2 * time.Second
	// moreLimit is the timeout for the other nodes once one has answered.
	moreLimit = 250 * time.Millisecond
	// maxNodes bounds the nodes that are asked; the nearest are.
	maxNodes = 64
)

// Nodes are the nodes that are asked.
type Nodes interface {
	// Nearest returns them, the nearest first.
	Nearest() []ids.Node
	// Call calls one.
	Call(ctx context.Context, to ids.Node, class wire.Class, m wire.Method, req proto.Message, body [][]byte, resp proto.Message) (*wire.Buffer, error)
}

// Options set up a Gauge. None may be missing.
type Options struct {
	Nodes Nodes
	Clock boottime.Func
	// Copies is how many nodes keep each file; it must not block.
	Copies func() int
	// Remotely bounds calls to nodes on behalf of a request.
	Remotely func(context.Context) (context.Context, context.CancelFunc)
}

// Gauge keeps the space of the tree for a second. It is safe for use by many
// goroutines. Its lock is held across no call to a node, so that several may ask
// the nodes at once.
type Gauge struct {
	opt Options

	mu    sync.Mutex // guards below
	space mount.Space
	until time.Duration // boot time
}

// New returns a Gauge that has asked nothing yet.
func New(o Options) *Gauge { return &Gauge{opt: o} }

// Get returns the space of the tree. It fails only where no node answers.
func (g *Gauge) Get(ctx context.Context) (mount.Space, error) {
	g.mu.Lock()
	if g.until > g.opt.Clock() {
		defer g.mu.Unlock()
		return g.space, nil
	}
	g.mu.Unlock()
	ctx, cancel := g.opt.Remotely(ctx)
	defer cancel()
	answers, err := g.ask(ctx)
	if len(answers) == 0 {
		return mount.Space{}, err
	}
	out := spaceOf(answers, g.opt.Copies())
	g.mu.Lock()
	defer g.mu.Unlock()
	g.space, g.until = out, g.opt.Clock()+keptFor
	return out, nil
}

// Room refuses to allocate more of an object than there is free space, with
// NoSpace. It reserves nothing. What is stored of the file, in bytes, counts as
// its beginning. Where no node says how much is free, the writes will.
func (g *Gauge) Room(ctx context.Context, o ids.Object, stored, end, length uint64) error {
	space, err := g.Get(ctx)
	if err != nil {
		return nil
	}
	if lacking := min(length, end-min(end, stored)); lacking > space.AvailBlocks*uint64(space.BlockSize) {
		return fault.Errorf(fault.NoSpace, "cartwheel.Allocate", o.String(), "%d bytes are not free", lacking)
	}
	return nil
}

// ask asks all nodes at once. It returns what came within the limit, or soon
// after the first answer.
func (g *Gauge) ask(ctx context.Context) (answers []*pb.StatfsResponse, failed error) {
	ctx, cancel := context.WithTimeout(ctx, askLimit)
	defer cancel()
	type answer struct {
		resp *pb.StatfsResponse
		err  error
	}
	nodes := g.opt.Nodes.Nearest()
	nodes = nodes[:min(len(nodes), maxNodes)]
	came := make(chan answer, len(nodes))
	var asking sync.WaitGroup
	defer asking.Wait() // they end with ctx
	defer cancel()
	for _, n := range nodes {
		asking.Go(func() {
			resp := &pb.StatfsResponse{}
			_, err := g.opt.Nodes.Call(ctx, n, wire.Operation, method.Statfs, &pb.StatfsRequest{Header: &pb.ReadHeader{}}, nil, resp)
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
				timer := time.NewTimer(moreLimit)
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
