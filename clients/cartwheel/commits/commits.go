// Package commits makes written ranges part of files, for the content engine. A
// file that was made here and that its active has not heard of is published with
// the first of them. The package keeps nothing.
package commits

import (
	"context"
	"time"

	"cartwheel.dev/clients/cartwheel/calls"
	"cartwheel.dev/clients/cartwheel/deferred"
	"cartwheel.dev/clients/cartwheel/owed"
	"cartwheel.dev/clients/cartwheel/timeouts"
	"cartwheel.dev/clients/content"
	"cartwheel.dev/clients/names"
	"cartwheel.dev/clients/route"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/protocol/pb"
)

// Calls runs operations; a *calls.Sender does.
type Calls interface {
	Operate(ctx context.Context, o calls.Operation) (*pb.OperateResponse, ids.Node, error)
	// Learn takes the attributes that an operation left behind.
	Learn(mark *names.Mark, by ids.Node, resp *pb.OperateResponse, a *pb.Attr)
}

var _ Calls = (*calls.Sender)(nil)

// Options set up a Committer. None may be missing.
type Options struct {
	Calls    Calls
	Names    *names.Cache
	Deferred *deferred.Publisher
	// ShowOwned adds to a commit what shows that the user has its chunks.
	ShowOwned func(*pb.Commit) error
	// MayCommit waits until it is known whether the locks on an object are held,
	// and fails where bytes that were written under one are not to be committed.
	MayCommit func(context.Context, ids.Object) error
	// Owed has the files whose ctime a commit moves for a change before it.
	Owed *owed.Table
	// Doubt forgets objects whose state is not known.
	Doubt func(...ids.Object)
	// DropPages has the kernel drop what it knows of a file.
	DropPages func(ids.Object)
}

// Committer commits. It has no state and is safe for use by many goroutines.
type Committer struct{ opt Options }

// New returns a Committer.
func New(o Options) *Committer { return &Committer{opt: o} }

// Commit makes written ranges part of a file, as content.Remote says.
func (c *Committer) Commit(ctx context.Context, commit content.Commit) (*pb.Result, error) {
	o := commit.Object
	w, _ := commit.As.(*calls.Writer)
	if w == nil {
		w = &calls.Writer{Principal: &pb.Principal{}}
	}
	if err := c.opt.ShowOwned(commit.Splice); err != nil {
		return nil, err
	}
	if f := c.opt.Deferred.Of(o); f != nil {
		if c.opt.Deferred.Claim(f) {
			return c.opt.Deferred.PublishClaimed(ctx, f, &commit)
		}
		if err := f.Wait(ctx); err != nil {
			return nil, err
		}
	}
	if err := c.opt.MayCommit(ctx, o); err != nil {
		return nil, err
	}
	before, _, known := c.opt.Names.Attr(o)
	debt, _ := c.opt.Owed.Of(o)
	mark := c.opt.Names.MarkChange(o)
	resp, by, err := c.operate(ctx, w, calls.Operation{Slice: o.Slice(), Principal: w.Principal, Body: commit.Body, Level: w.Level,
		Op: &pb.Operation{TimeNs: commit.Splice.MtimeNs, Op: &pb.Operation_Commit{Commit: commit.Splice}}})
	if err != nil {
		if calls.IsUnknown(err) {
			c.opt.Doubt(o)
		} else if !fault.Is(err, fault.Missing) { // the kernel's pages have what was refused
			c.opt.DropPages(o)
		}
		return nil, err
	}
	c.opt.Owed.Paid(o, debt)
	if a := resp.Result.Attr; a != nil {
		c.opt.Calls.Learn(&mark, by, resp, a)
		if commit.Splice.Append && (!known || before.Size != resp.Result.Offset) {
			// The kernel put the pages where it took the end to be.
			c.opt.DropPages(o)
		}
	}
	return resp.Result, nil
}

// eventualPause is how long a commit on eventual terms waits until it is tried again.
const eventualPause = 200 * time.Millisecond

// operate runs a commit. On eventual terms each try has the terms' time, and it goes on
// until ctx ends: what is written again is the same. An append is tried once.
func (c *Committer) operate(ctx context.Context, w *calls.Writer, o calls.Operation) (resp *pb.OperateResponse, by ids.Node, err error) {
	if !w.Terms.Eventual || o.Op.GetCommit().Append {
		return c.opt.Calls.Operate(ctx, o)
	}
	for {
		part, cancel := timeouts.Within(ctx, w.Terms)
		resp, by, err = c.opt.Calls.Operate(part, o)
		cancel()
		if err == nil || !route.MayComeLater(err) || ctx.Err() != nil {
			return resp, by, err
		}
		pause := time.NewTimer(eventualPause)
		select {
		case <-pause.C:
		case <-ctx.Done():
		}
		pause.Stop()
	}
}
