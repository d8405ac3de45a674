package cartwheel

import (
	"context"
	"errors"

	"cartwheel.dev/clients/cartwheel/deferred"
	"cartwheel.dev/clients/mount"
	"cartwheel.dev/clients/names"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/protocol/method"
	"cartwheel.dev/node/protocol/pb"
	"cartwheel.dev/node/wire"
	"google.golang.org/protobuf/proto"
)

// principal is who a request acts as. Supplementary groups cost a look into
// the process table, so they come only where the answer may depend on them.
func principal(c mount.Caller) *pb.Principal { return &pb.Principal{Uid: c.UID, Gid: c.GID} }

func withGroups(c mount.Caller) *pb.Principal {
	p := principal(c)
	if c.UID != 0 {
		p.Groups = mount.Groups(c)
	}
	return p
}

// denied reports whether a refusal may be for want of groups.
func denied(err error) bool {
	k := fault.KindOf(err)
	return k == fault.Permission || k == fault.NotOwner
}

// asCaller runs fn with the caller's principal, and once more with its groups
// where it was refused without them. A refusal changed nothing, so that the
// second is an operation of its own.
func asCaller(c mount.Caller, fn func(p *pb.Principal) error) error {
	err := fn(principal(c))
	if err == nil || c.UID == 0 || !denied(err) {
		return err
	}
	p := withGroups(c)
	if len(p.Groups) == 0 {
		return err
	}
	return fn(p)
}

// answer is what a read's response has.
type answer interface {
	proto.Message
	GetRefusal() *pb.Refusal
}

// ask sends a read to the active of a slice: make builds the request for the
// header of each attempt, and returns where the answer goes.
func (c *Client) ask(ctx context.Context, slice ids.Slice, p *pb.Principal, m wire.Method,
	build func(*pb.ReadHeader) (proto.Message, answer)) (ids.Node, error) {
	ctx, cancel := c.limits.Remotely(ctx)
	defer cancel()
	var by ids.Node
	err := c.router.Active(ctx, slice, func(ctx context.Context, node ids.Node, epoch ids.Epoch) (*pb.Refusal, error) {
		h := &pb.ReadHeader{Slice: uint32(slice), Epoch: uint64(epoch), Session: c.sessions.With(ctx, node), Principal: p, Client: c.cluster.Client()}
		req, resp := build(h)
		by = node
		body, err := c.cluster.Call(ctx, node, wire.Operation, m, req, nil, resp)
		body.Release()
		return resp.GetRefusal(), err
	})
	return by, err
}

// wanted is what is asked for beside an object's plain attributes.
type wanted struct {
	content, xattrs bool
	opening         bool // the active is to know that it is open here
}

// fetch reads an object's attributes from its active and learns them.
func (c *Client) fetch(ctx context.Context, o ids.Object, want wanted) (*pb.Attr, error) {
	if err := c.deferred.Publish(ctx, o); err != nil {
		return nil, err
	}
	var mark names.Mark
	var resp *pb.GetAttrResponse
	by, err := c.ask(ctx, o.Slice(), nil, method.GetAttr, func(h *pb.ReadHeader) (proto.Message, answer) {
		mark, resp = c.names.MarkObject(o), &pb.GetAttrResponse{}
		t := c.tickets.Of(o)
		h.Ticket = t.Reached
		req := &pb.GetAttrRequest{Header: h, Object: uint64(o), Content: want.content, Xattrs: want.xattrs, Opening: want.opening}
		if root, ticket := t.Current(); ticket != nil { // an open file is read on, whatever the mode is now
			req.Root, req.Readable = root[:], ticket
		}
		return req, resp
	})
	if err != nil {
		return nil, err
	}
	if resp.Attr == nil {
		return nil, fault.E(fault.Corrupt, "cartwheel.fetch", o.String(), "the answer has no attributes")
	}
	c.names.Learn(&mark, by, resp.Grants, func(l *names.Learner) { l.Attr(resp.Attr, want.xattrs) })
	return resp.Attr, nil
}

// attr returns an object's attributes, from the cache where a lease covers them.
func (c *Client) attr(ctx context.Context, o ids.Object) (*pb.Attr, error) {
	if a, _, ok := c.names.Attr(o); ok {
		return a, nil
	}
	return c.fetch(ctx, o, wanted{content: true})
}

// whole is attr with Content, of a regular file.
func (c *Client) whole(ctx context.Context, o ids.Object) (*pb.Attr, error) {
	if a, _, ok := c.names.Attr(o); ok && (a.Content != nil || a.Size == 0 || a.Mode&mount.TypeMask != mount.TypeRegular) {
		return a, nil
	}
	return c.fetch(ctx, o, wanted{content: true})
}

// operation is one operation on its way.
type operation struct {
	slice ids.Slice
	p     *pb.Principal
	op    *pb.Operation
	body  [][]byte
	level uint32
	// publishes: it is what publishes a file, and waits for no other.
	publishes bool
}

// operate runs one operation exactly once. A failure that the active decided
// has its kind; any other means that the outcome is not known: see unknown.
func (c *Client) operate(ctx context.Context, o operation) (*pb.OperateResponse, ids.Node, error) {
	const op fault.Op = "cartwheel.operate"
	if !o.publishes {
		c.deferred.PublishFor(ctx, o.op)
	}
	if o.op.TimeNs == 0 {
		o.op.TimeNs = c.opt.Now().UnixNano()
	}
	req := &pb.OperateRequest{Principal: o.p, Operation: o.op, SyncLevel: o.level, Hlc: uint64(c.hlc.Last()), Tickets: c.tickets.With(method.Names(o.op)...)}
	// Sent again, it stays under the session under which it was sent first: what
	// was written under a lock that went with that session is refused.
	under := map[ids.Node]uint64{}
	resp, by, err := c.operator.Operate(ctx, o.slice, req, o.body, func(node ids.Node) uint64 {
		if o.op.GetCommit() == nil || under[node] == 0 {
			under[node] = c.sessions.With(ctx, node)
		}
		return under[node]
	})
	if err != nil {
		return nil, by, &outcome{err}
	}
	if k := fault.Kind(resp.Result.GetKind()); k != fault.None {
		return nil, by, fault.E(k, op, "", resp.Result.Message)
	}
	if r := resp.Result; c.tickets.IsUser() {
		for _, a := range []*pb.Attr{r.GetAttr(), r.GetDir(), r.GetNewDir()} {
			c.tickets.Learn(a)
		}
	}
	return resp, by, nil
}

// publish sends what publishes a file.
func (c *Client) publish(ctx context.Context, o deferred.Operation) (*pb.OperateResponse, ids.Node, error) {
	return c.operate(ctx, operation{slice: o.Slice, p: o.Principal, op: o.Op, body: o.Body, level: o.Level, publishes: true})
}

// outcome marks an error after which nobody knows whether the operation was
// done.
type outcome struct{ error }

func (o *outcome) Unwrap() error { return o.error }

// unknown reports whether an operation that failed may have been done.
func unknown(err error) bool {
	var o *outcome
	if !errors.As(err, &o) {
		return false
	}
	switch fault.KindOf(err) {
	case fault.TimedOut, fault.Canceled, fault.Expired, fault.Other, fault.Unreachable, fault.IO, fault.Corrupt, fault.Again, fault.Overloaded:
		return true
	}
	return false
}
