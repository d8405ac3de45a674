package route

import (
	"context"
	"sync"
	"time"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/plant"
	"cartwheel.dev/node/protocol/method"
	"cartwheel.dev/node/protocol/pb"
	"cartwheel.dev/node/wire"
)

// DefaultInFlight and MaxInFlight bound the operations under way on one slice:
// others wait. The journal keeps the last 1,024 results of a client, so that no
// process may have as many under way.
const (
	DefaultInFlight = 512
	MaxInFlight     = 960
)

// firstPatience and lastPatience bound how long one attempt of an operation
// waits before the same operation is sent again: an answer may be lost with
// nobody knowing. It doubles, for slow links.
const (
	firstPatience = 2 * time.Second
	lastPatience  = 30 * time.Second
)

// numbers gives the operations of one slice their numbers and remembers the
// lowest whose result is still awaited.
type numbers struct {
	room   chan struct{} // one token for each operation that has a number
	window *window

	mu      sync.Mutex // guards below
	next    uint64
	waiting map[uint64]struct{}
	lowest  uint64
}

// Operator sends operations with this process's registration, each exactly
// once however often it travels. It is safe for use by many goroutines.
type Operator struct {
	router   *Router
	inFlight int // operations under way on one slice

	mu     sync.Mutex // guards slices
	slices map[ids.Slice]*numbers
}

// NewOperator makes an Operator that has so many operations under way on one
// slice at a time; 0: DefaultInFlight.
func NewOperator(r *Router, inFlight int) *Operator {
	if inFlight <= 0 {
		inFlight = DefaultInFlight
	}
	return &Operator{router: r, inFlight: min(inFlight, MaxInFlight), slices: map[ids.Slice]*numbers{}}
}

func (o *Operator) numbers(id ids.Slice) *numbers {
	o.mu.Lock()
	defer o.mu.Unlock()
	n, ok := o.slices[id]
	if !ok {
		n = &numbers{room: make(chan struct{}, o.inFlight), window: newWindow(o.inFlight, o.router.jitter), next: 1, lowest: 1, waiting: map[uint64]struct{}{}}
		o.slices[id] = n
	}
	return n
}

func (n *numbers) begin(ctx context.Context) (number uint64, err error) {
	select {
	case n.room <- struct{}{}:
	case <-ctx.Done():
		return 0, ctx.Err() // nothing was sent
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	number = n.next
	n.next++
	n.waiting[number] = struct{}{}
	return number, nil
}

func (n *numbers) end(number uint64) {
	n.mu.Lock()
	delete(n.waiting, number)
	for n.lowest < n.next {
		if _, ok := n.waiting[n.lowest]; ok {
			break
		}
		n.lowest++
	}
	n.mu.Unlock()
	<-n.room
}

// another gives a number that nobody waits for. What was sent before under
// another one may run a second time: only a mistake made on purpose does that.
func (n *numbers) another() uint64 {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.next++
	return n.next - 1
}

func (n *numbers) low() uint64 {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.lowest
}

// placed runs attempts of an operation when the window has a place for them.
func (n *numbers) placed(number uint64, run runner) runner {
	return func(ctx context.Context, row geoconfig.SliceRow, attempt Attempt) (*pb.Refusal, error) {
		p, err := n.window.enter(ctx, number)
		if err != nil {
			return nil, err
		}
		refusal, err := run(ctx, row, attempt)
		p.leave(verdictOf(ctx, refusal, err))
		return refusal, err
	}
}

// verdictOf says what an attempt's outcome tells of its node's load.
func verdictOf(ctx context.Context, refusal *pb.Refusal, err error) verdict {
	switch kind := fault.KindOf(err); {
	case err == nil && refusal == nil:
		return answered
	case kind == fault.Overloaded || err == nil && fault.Kind(refusal.Kind) == fault.Overloaded:
		return refused
	case kind == fault.TimedOut && ctx.Err() == nil:
		return late
	}
	return nothing
}

// Operate sends one operation to the active of its slice and returns the
// answer with the node that gave it. Client, number, lowest, slice and epoch of
// the request are filled in here; session, if not nil, names the session with
// the node at each attempt. An operation that could not be done has its kind in
// the result, not in the error; an error means that the outcome is not known,
// or that nothing was sent.
func (o *Operator) Operate(ctx context.Context, id ids.Slice, req *pb.OperateRequest, body [][]byte,
	session func(ids.Node) uint64) (*pb.OperateResponse, ids.Node, error) {
	return o.OperateHeld(ctx, id, req, body, session, nil)
}

// OperateHeld is Operate for a create that standbys may keep. The answer is Early where
// they do: then it has no result, and nothing was refused. Held is used once; nil: the
// active alone does it.
func (o *Operator) OperateHeld(ctx context.Context, id ids.Slice, req *pb.OperateRequest, body [][]byte,
	session func(ids.Node) uint64, held *Held) (*pb.OperateResponse, ids.Node, error) {
	n := o.numbers(id)
	number, err := n.begin(ctx)
	if err != nil {
		return nil, "", fault.Wrap(fault.Canceled, "route.Operate", "", err)
	}
	defer n.end(number)
	req.Slice, req.Client, req.Number = uint32(id), o.router.cluster.Client(), number
	var resp *pb.OperateResponse
	var by ids.Node
	patience := firstPatience
	clean := true // no attempt so far can have been run
	began := o.router.cluster.Now()
	defer held.end()
	err = o.router.active(ctx, id, func(ctx context.Context, node ids.Node, epoch ids.Epoch) (*pb.Refusal, error) {
		ctx, cancel := context.WithTimeout(ctx, patience)
		defer cancel()
		patience = min(2*patience, lastPatience)
		req.Epoch, req.Lowest = uint64(epoch), n.low()
		req.Unsent = clean && req.Lowest == number
		req.AgeNs = uint64(max(o.router.cluster.Now()-began, 1))
		if plant.On(plant.ClientRetriesAnew) && !clean {
			req.Number = n.another()
		}
		if session != nil {
			req.Session = session(node)
		}
		held.begin(ctx, o, node, epoch, req, body)
		var err error
		by, resp, err = o.send(ctx, node, req, body)
		if err == nil && !held.settled(ctx, resp, epoch) {
			req.Early = false
			by, resp, err = o.send(ctx, node, req, body)
		}
		switch {
		case clean && fault.Is(err, fault.Expired):
			// Idle for longer than a registration lasts. The lowest operation
			// registers anew; the others come back until it has.
			return nil, fault.Wrap(fault.Again, "route.Operate", "", err)
		case err != nil:
			clean = false
		}
		return resp.GetRefusal(), err
	}, n.placed(number, o.router.watched))
	if err != nil {
		return nil, by, err
	}
	return resp, by, nil
}

// send sends an operation once.
func (o *Operator) send(ctx context.Context, node ids.Node, req *pb.OperateRequest, body [][]byte) (ids.Node, *pb.OperateResponse, error) {
	resp := &pb.OperateResponse{}
	buffer, err := o.router.cluster.Call(ctx, node, wire.Operation, method.Operate, req, body, resp)
	buffer.Release()
	return node, resp, err
}
