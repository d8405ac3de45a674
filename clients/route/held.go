package route

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/protobuf/proto"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/protocol/method"
	"cartwheel.dev/node/protocol/pb"
	"cartwheel.dev/node/wire"
)

// holdFor bounds how long a create waits for the standbys once the active has it. The
// log, which brings it to them too, takes no longer then.
const holdFor = time.Second

// Held is a create on its way to all normal members of a slice at once. The active
// answers as soon as it has the create on its disk, and each standby keeps it apart from
// the log. With all these answers, of one epoch, it is done. Otherwise the same
// operation is sent to the active again, which answers when the log has brought it
// everywhere.
type Held struct {
	// Others returns the members beside the active that are to keep the create; none:
	// the active alone does it. Those are all normal members, or none.
	Others func(geoconfig.SliceRow) []ids.Node

	begun bool // it was tried; a later attempt is an ordinary one
	holds *holds
}

// holds are the requests to the standbys.
type holds struct {
	cancel  context.CancelFunc
	running sync.WaitGroup
	failed  chan struct{} // closed once one of them refused, or did not answer
	once    sync.Once
	lacking atomic.Int32 // standbys that have not answered
	all     chan struct{}
}

// hold sends a create to the standbys. The caller ends it.
func (o *Operator) hold(ctx context.Context, members []ids.Node, req *pb.OperateRequest, body [][]byte) *holds {
	ctx, cancel := context.WithCancel(ctx)
	h := &holds{cancel: cancel, failed: make(chan struct{}), all: make(chan struct{})}
	h.lacking.Store(int32(len(members)))
	same := proto.CloneOf(req) // the original changes with each attempt
	same.Early = false
	for _, n := range members {
		h.running.Go(func() {
			var answer pb.OperateResponse
			b, err := o.router.cluster.Call(ctx, n, wire.Operation, method.Hold, same, body, &answer)
			b.Release()
			switch {
			case err != nil || !answer.Early:
				h.once.Do(func() { close(h.failed) })
			case h.lacking.Add(-1) == 0:
				close(h.all)
			}
		})
	}
	return h
}

// await reports whether all standbys keep the create.
func (h *holds) await(ctx context.Context) bool {
	timer := time.NewTimer(holdFor)
	defer timer.Stop()
	select {
	case <-h.all:
		return true
	case <-h.failed:
	case <-timer.C:
	case <-ctx.Done():
	}
	return false
}

// end ends the requests to the standbys.
func (h *Held) end() {
	if h != nil && h.holds != nil {
		h.holds.cancel()
		h.holds.running.Wait()
	}
}

// begin begins the first attempt of a create: it sends it to the standbys, if there are
// any to send it to. body is not changed by then.
func (h *Held) begin(ctx context.Context, o *Operator, node ids.Node, epoch ids.Epoch, req *pb.OperateRequest, body [][]byte) {
	if h == nil {
		return
	}
	req.Early = false
	if h.begun {
		return
	}
	h.begun = true
	row, ok := o.router.Known(ids.Slice(req.Slice))
	if !ok || row.Active != node || row.Epoch != epoch {
		return
	}
	if others := h.Others(row); len(others) > 0 {
		req.Held, req.Early = true, true
		h.holds = o.hold(ctx, others, req, body)
	}
}

// settled reports whether the active's answer counts: it is the last one, or all
// standbys keep the create.
func (h *Held) settled(ctx context.Context, resp *pb.OperateResponse, epoch ids.Epoch) bool {
	if h == nil || !resp.Early {
		return true
	}
	return ids.Epoch(resp.Receipt.GetEpoch()) == epoch && h.holds.await(ctx)
}
