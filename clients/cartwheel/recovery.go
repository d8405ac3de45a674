package cartwheel

import (
	"context"
	"slices"
	"time"

	"cartwheel.dev/clients/cartwheel/calls"
	"cartwheel.dev/clients/content"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/protocol/pb"
	"google.golang.org/protobuf/proto"
)

// recoverAgain is the pause before an object is tried again whose active did not
// answer.
const recoverAgain = 2 * time.Second

// recover commits what an earlier process left in the journal. It returns when
// it is decided what becomes of each object, so that all reads are right, or when
// ctx ends. The rest goes on in the background, and opening such an object waits.
func (c *Client) recover(ctx context.Context) {
	if c.disk == nil || len(c.disk.left) == 0 {
		return
	}
	left := c.disk.left
	c.disk.left = nil
	c.recovery.begin(left)
	for _, l := range left { // one goroutine each: those of a slice that is away hold up no others
		c.life.spawn(func() { c.recoverOne(l) })
	}
	c.recovery.awaitAll(ctx)
}

// recoverOne recovers an object, trying again while its active does not answer.
func (c *Client) recoverOne(l content.Leftover) {
	o, last := l.Object, l.Writes[len(l.Writes)-1].Number
	defer c.recovery.decided(o)
	c.opt.Logger.Info("writes that a crash left behind are being committed", "object", o.String(), "writes", len(l.Writes))
	for {
		err := c.tryRecover(o, &l)
		if err == nil {
			c.disk.log.Forget(o, last) // what is written since it was decided stays
			return
		}
		c.opt.Logger.Warn("writes that a crash left behind stay in the journal", "object", o.String(), "err", err)
		select {
		case <-time.After(recoverAgain):
		case <-c.life.ctx.Done():
			return
		}
	}
}

// tryRecover makes one attempt for what the journal has under an object. What is
// done of it stays done in l.
func (c *Client) tryRecover(was ids.Object, l *content.Leftover) error {
	ctx, cancel := context.WithTimeout(c.life.ctx, c.opt.OpTimeout)
	err := c.remake(ctx, l)
	cancel()
	if err != nil || len(l.Writes) == 0 {
		return err
	}
	l.LoggedAs = was
	// Once it is decided, the engine goes on by itself.
	return c.engine.Recover(c.life.ctx, *l, content.Recovery{As: writerOf, Park: c.park, Decided: func() { c.recovery.decided(was) }})
}

// whoOf encodes how a handle writes, for the journal.
func whoOf(o content.Open) []byte {
	how, _ := o.As.(*as)
	if how == nil {
		return nil
	}
	flags := byte(0)
	if o.ClearSetID {
		flags = 1
	}
	out, err := proto.MarshalOptions{}.MarshalAppend([]byte{flags}, &pb.OperateRequest{Principal: how.p, SyncLevel: how.level})
	if err != nil {
		return nil // it is then recovered as by nobody
	}
	return out
}

// writerOf is how writes are committed again of which the journal says who made
// them. Where it does not say, set-id bits are cleared: who knows.
func writerOf(who []byte) content.Open {
	var req pb.OperateRequest
	if len(who) == 0 || proto.Unmarshal(who[1:], &req) != nil || req.Principal == nil {
		return content.Open{As: &as{p: &pb.Principal{}}, ClearSetID: true}
	}
	return content.Open{As: &as{p: req.Principal, level: req.SyncLevel}, ClearSetID: who[0]&1 != 0}
}

// remake makes a file of which a crash kept its active from hearing, if it has
// not; what was written goes to the object that it then is. Where its name was
// taken since, the writes find no object, and are parked.
func (c *Client) remake(ctx context.Context, l *content.Leftover) error {
	var req pb.OperateRequest
	at := slices.IndexFunc(l.Writes, func(w content.Numbered) bool { return w.Kind == content.WriteCreate })
	if at < 0 {
		return nil
	}
	data, rest := l.Writes[at].Data, slices.Delete(slices.Clone(l.Writes), at, at+1)
	if err := proto.Unmarshal(data, &req); err != nil || req.Operation.GetCreate() == nil {
		return fault.Wrap(fault.Corrupt, "cartwheel.recover", l.Object.String(), err)
	}
	a, err := c.calls.Fetch(ctx, l.Object, calls.Wanted{Content: true})
	switch {
	case err == nil && a.Size == 0 && a.Version == a.Change:
		l.Known, l.Writes = max(l.Known, a.Version), rest // only its answer was lost
		return nil
	case err == nil:
		l.Writes = rest
		return nil
	case !fault.Is(err, fault.Stale) && !fault.Is(err, fault.NotFound):
		return err
	}
	// A new ID: who knows whether the old one was not in use for a moment.
	create := req.Operation.GetCreate()
	create.Object = 0
	resp, _, err := c.calls.Operate(ctx, calls.Operation{Slice: l.Object.Slice(), Principal: req.Principal, Op: req.Operation})
	attr := resp.GetResult().GetAttr()
	if fault.Is(err, fault.Closed) && !calls.IsUnknown(err) {
		attr, err = c.remakeApart(ctx, create, req.Principal)
	}
	switch {
	case err == nil:
		l.Writes = rest
		l.Object, l.Known = ids.Object(attr.GetObject()), attr.GetVersion()
	case calls.IsUnknown(err):
		return err
	default:
		l.Writes = rest
		c.opt.Logger.Warn("a file that a crash left behind cannot be made", "name", string(create.Name), "err", err)
	}
	return nil
}

// remakeApart makes a file whose directory's slice has become full since.
func (c *Client) remakeApart(ctx context.Context, create *pb.Create, p *pb.Principal) (*pb.Attr, error) {
	m := making{dir: ids.Object(create.Dir), name: string(create.Name), create: create}
	c.destination.Close(ctx, m.dir.Slice())
	dir, err := c.calls.Attr(ctx, m.dir)
	if err != nil {
		return nil, err
	}
	slice, err := c.destination.Choose(ctx, dir, nil)
	if err != nil {
		return nil, fault.Wrap(fault.Unreachable, "cartwheel.recover", m.name, err)
	}
	res, err := c.createApart(ctx, m, p, dir, slice)
	if fault.Is(err, fault.Closed) { // that one, too: the next attempt looks for another
		c.destination.Close(ctx, slice)
		err = fault.Wrap(fault.Unreachable, "cartwheel.recover", m.name, err)
	}
	return res.attr, err
}
