// Package calls sends requests to the actives of slices, and has the caches learn
// the answers. A read goes to the active of its slice under the session with that
// node, so that the answer may carry leases. An operation is done exactly once. The
// package keeps nothing of its own: what an answer says goes to the cache of names,
// to the tickets and to the receipts, always under a mark that was taken before the
// request was sent.
package calls

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"cartwheel.dev/clients/cartwheel/receipts"
	"cartwheel.dev/clients/cartwheel/remembered"
	"cartwheel.dev/clients/cartwheel/tickets"
	"cartwheel.dev/clients/cartwheel/timeouts"
	"cartwheel.dev/clients/contact"
	"cartwheel.dev/clients/names"
	"cartwheel.dev/clients/route"
	"cartwheel.dev/clients/session"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/hlc"
	"cartwheel.dev/node/protocol/pb"
	"cartwheel.dev/node/wire"
	"google.golang.org/protobuf/proto"
)

// Deferred publishes the files that this client made by itself.
type Deferred interface {
	// Publish returns when an object's active knows it.
	Publish(ctx context.Context, o ids.Object) error
	// PublishFor publishes what an operation depends on.
	PublishFor(ctx context.Context, op *pb.Operation)
}

// Options set up a Sender. None may be missing.
type Options struct {
	Router   *route.Router
	Operator *route.Operator
	Cluster  *contact.Cluster
	Sessions *session.Manager
	Names    *names.Cache
	Tickets  *tickets.Table
	Receipts *receipts.Table
	// Remembered is what an eventual read takes where no node answers in time.
	Remembered *remembered.Table
	Deferred   Deferred
	HLC        *hlc.Clock // of all nodes that were heard of
	Wall       func() time.Time
	// Remotely returns the context for calls on behalf of one request.
	Remotely func(context.Context) (context.Context, context.CancelFunc)
	// AdvancePages moves the version of the kernel's pages of a file on.
	AdvancePages func(o ids.Object, from, to uint64)
	// Doubt forgets objects whose state is not known.
	Doubt func(...ids.Object)
}

// Sender sends requests. It is safe for use by many goroutines. Its methods block
// until a node answers or the context ends.
type Sender struct {
	opt   Options
	sides atomic.Uint64 // operations that were done at the side

	means meanings // on eventual terms

	asideMu sync.Mutex // guards below
	asides  map[ids.Object]side
	known   map[ids.Object]versions
}

// New returns a Sender.
func New(o Options) *Sender { return &Sender{opt: o} }

// Answer is what a read's response has.
type Answer interface {
	proto.Message
	GetRefusal() *pb.Refusal
	GetCopy() *pb.Copy
}

// IsCopy reports whether an answer is that of a member that does not act for the
// slice.
func IsCopy(a Answer) bool { return a.GetCopy().GetAgeNs() > 0 }

// Ask sends a read to the active of a slice, and returns which node answered.
// build makes the request for the header of each attempt, and returns where the
// answer goes. On eventual terms another normal member may answer with a copy.
func (s *Sender) Ask(ctx context.Context, slice ids.Slice, p *pb.Principal, m wire.Method,
	build func(*pb.ReadHeader) (proto.Message, Answer)) (ids.Node, error) {
	ctx, cancel := s.opt.Remotely(ctx)
	defer cancel()
	var by ids.Node
	eventual := timeouts.Eventual(ctx)
	send := func(ctx context.Context, node ids.Node, epoch ids.Epoch, session uint64) (*pb.Refusal, error) {
		h := &pb.ReadHeader{Slice: uint32(slice), Epoch: uint64(epoch), Session: session, Principal: p, Client: s.opt.Cluster.Client(), Eventual: eventual}
		req, resp := build(h)
		by = node
		body, err := s.opt.Cluster.Call(ctx, node, wire.Operation, m, req, nil, resp)
		body.Release()
		if err == nil && eventual && resp.GetRefusal() == nil {
			err = s.noteRead(ctx, req, resp)
		}
		return resp.GetRefusal(), err
	}
	active := func(ctx context.Context, node ids.Node, epoch ids.Epoch) (*pb.Refusal, error) {
		return send(ctx, node, epoch, s.opt.Sessions.With(ctx, node))
	}
	if !eventual {
		err := s.opt.Router.Active(ctx, slice, active)
		return by, err
	}
	err := s.opt.Router.Eventually(ctx, slice, active, func(ctx context.Context, node ids.Node, epoch ids.Epoch) (*pb.Refusal, error) {
		return send(ctx, node, epoch, 0)
	})
	return by, err
}
