package deferred

import (
	"context"
	"fmt"
	"log/slog"

	"cartwheel.dev/clients/cartwheel/alone"
	"cartwheel.dev/clients/cartwheel/calls"
	"cartwheel.dev/clients/cartwheel/stream"
	"cartwheel.dev/clients/content"
	"cartwheel.dev/clients/mount"
	"cartwheel.dev/clients/names"
	"cartwheel.dev/clients/pending"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/logattr"
	"cartwheel.dev/node/protocol/pb"
	"google.golang.org/protobuf/proto"
)

// answer is what an active said of a file that it made.
type answer struct {
	stream.Got
	grants []*pb.Grant
	mark   names.Mark
}

// PublishClaimed sends a claimed file to its active, with its first content if
// commit is not nil. Another client may have made the name meanwhile, once the
// lease was lost. Then the file is kept under another name and the error says so.
func (p *Publisher) PublishClaimed(ctx context.Context, f *pending.File, commit *content.Commit) (*pb.Result, error) {
	set, at := p.Changed(f)
	a, err := p.publishAs(ctx, f, f.Name, commit)
	if fault.Is(err, fault.Missing) && !calls.IsUnknown(err) {
		p.Release(f) // the engine sends the chunks again
		return nil, err
	}
	refused := err
	if fault.Is(err, fault.Exists) && !calls.IsUnknown(err) {
		name := conflictName(f)
		if a, err = p.publishAs(ctx, f, name, commit); err == nil {
			p.opt.Logger.Warn("somebody else made a file of the same name while this client was cut off: both are kept", slog.String("name", f.Name), slog.String("copy", name))
		}
	}
	if err == nil {
		p.learn(f, a, set, at)
	}
	if refused != nil {
		p.refuse(f, refused, commit == nil)
	}
	p.Finish(f, refused)
	if refused != nil {
		return nil, refused
	}
	return a.Result, nil
}

// learn takes what an active said of a file that it made, and then changed as set
// says.
func (p *Publisher) learn(f *pending.File, a answer, set *pb.SetAttr, at int64) {
	p.arrived.Add(1)
	r := a.Result
	old, _, known := p.opt.Names.Attr(f.Object)
	p.Got(r)
	if set != nil && r.Attr != nil {
		alone.Apply(r.Attr, set, at)
	}
	p.opt.Names.Learn(&a.mark, a.By, a.grants, func(l *names.Learner) {
		l.Attr(r.Dir, false)
		l.Attr(r.Attr, true)
	})
	if known && r.Attr != nil {
		p.opt.AdvancePages(f.Object, old.Version, r.Attr.Version)
	}
	p.opt.Receipts.Note(f.Object, a.Receipt)
	p.opt.Told(f.Object, f.Journal, r.Attr.GetVersion())
}

// publishAs sends the create under a name, with what was changed of the file since,
// in the stream where nobody waits for it or more than the create is to be sent.
func (p *Publisher) publishAs(ctx context.Context, f *pending.File, name string, commit *content.Commit) (answer, error) {
	o := calls.Operation{Slice: f.Object.Slice(), Principal: f.Principal, Level: f.Level}
	was := f.Create
	create := &pb.Create{Dir: was.Dir, Name: []byte(name), Mode: was.Mode, Umask: was.Umask, Exclusive: true, Open: true, Object: was.Object, MadeNs: was.MadeNs}
	p.Want(create, o.Slice)
	if commit != nil {
		s := commit.Splice
		// Appends to a new file begin at its start.
		create.Commit = &pb.Commit{Extents: s.Extents, Size: s.Size, Extend: s.Extend, MtimeNs: s.MtimeNs, ClearSetid: s.ClearSetid, Keeps: true}
		o.Body = commit.Body
		if level, ok := calls.LevelOf(commit.As); ok {
			o.Level = level
		}
	}
	o.Op = &pb.Operation{Op: &pb.Operation_Create{Create: create}}
	set, at := p.Changed(f)
	if set != nil && create.Commit != nil && create.Commit.MtimeNs > at { // it was written again
		set = proto.CloneOf(set)
		set.MtimeNow, set.MtimeNs = false, nil
	}
	if (f.Lazy || set != nil) && mayBeBatched(create.Commit) {
		if a, err, ok := p.streamed(ctx, f, o, set, at); ok {
			return a, err
		}
	}
	if f.Behind != nil {
		_ = f.Behind(ctx) // where its directory was refused, so is the file
	}
	p.Order(f) // it is on its way ahead of all that is done from now on
	mark := p.opt.Names.MarkNew(f.Dir, f.Object)
	resp, by, err := p.opt.Send(ctx, o)
	if err != nil {
		return answer{}, err
	}
	if set != nil {
		_, _, err = p.opt.Send(ctx, calls.Operation{Slice: o.Slice, Principal: o.Principal, Level: o.Level, Op: change(set, at)})
	}
	return answer{stream.Got{Result: resp.Result, Receipt: resp.Receipt, By: by}, resp.Grants, mark}, err
}

// change is the operation that changes attributes at a time.
func change(set *pb.SetAttr, at int64) *pb.Operation {
	return &pb.Operation{TimeNs: at, Op: &pb.Operation_SetAttr{SetAttr: set}}
}

// streamed sends a create in the stream; false: it is to be sent by itself.
func (p *Publisher) streamed(ctx context.Context, f *pending.File, o calls.Operation, set *pb.SetAttr, at int64) (a answer, err error, ok bool) {
	o.Op.TimeNs = f.Create.MadeNs
	op := &stream.Op{Op: o.Op, Body: o.Body, Principal: o.Principal, Level: o.Level, Name: f.Name, Dir: f.Dir, Touches: []ids.Object{f.Dir, f.Object}}
	if set != nil {
		op.Then = change(set, at)
	}
	a.mark = p.opt.Names.MarkNew(f.Dir, f.Object)
	if !p.opt.Stream.AddFile(ctx, f, op, func() { p.opt.Names.Lead(op.Touches...) }) {
		return a, nil, false
	}
	p.Order(f)
	wait := op.Wait
	if !f.Lazy {
		wait = func(ctx context.Context) error { return p.opt.Stream.Await(ctx, op) }
	}
	err = wait(ctx)
	a.Got = op.Got()
	return a, err, true
}

// mostBatched bounds the content of a file that goes along in a batch.
const mostBatched = 256 << 10

// mayBeBatched reports whether the first content of a file may go along in a batch:
// a batch names no chunks.
func mayBeBatched(c *pb.Commit) bool {
	bytes := uint64(0)
	for _, e := range c.GetExtents() {
		if _, ok := e.Source.(*pb.Extent_Chunk); ok {
			return false
		}
		bytes += e.Length
	}
	return bytes <= mostBatched
}

// conflictName is the name of a file whose own name was taken.
func conflictName(f *pending.File) string {
	suffix := fmt.Sprintf(".conflict-%x", uint64(f.Object))
	return f.Name[:min(len(f.Name), mount.NameMax-len(suffix))] + suffix
}

// refuse takes back what programs were told of a file; its next close says why,
// unless the engine does.
func (p *Publisher) refuse(f *pending.File, err error, note bool) {
	p.opt.Logger.Warn("a new file could not be told to its active", slog.String("name", f.Name), logattr.Object(f.Object), logattr.Err(err))
	p.sober.Store(int64(p.opt.Clock() + soberFor))
	p.opt.Names.Unmake(f.Dir, f.Name, f.Object)
	p.opt.Doubt(f.Dir, f.Object)
	if note {
		p.mu.Lock()
		if len(p.refused) < max(p.opt.Limit, pending.MaxFiles) {
			p.refused[f.Object] = err
		}
		p.mu.Unlock()
	}
	if !calls.IsUnknown(err) {
		p.opt.Told(f.Object, f.Journal, 0)
	}
}
