package deferred

import (
	"context"
	"fmt"
	"log/slog"

	"cartwheel.dev/clients/cartwheel/calls"
	"cartwheel.dev/clients/content"
	"cartwheel.dev/clients/mount"
	"cartwheel.dev/clients/names"
	"cartwheel.dev/clients/pending"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/logattr"
	"cartwheel.dev/node/protocol/pb"
)

// PublishClaimed sends a claimed file to its active, with its first content if
// commit is not nil. Another client may have made the name meanwhile, once the
// lease was lost. Then the file is kept under another name and the error says so.
func (p *Publisher) PublishClaimed(ctx context.Context, f *pending.File, commit *content.Commit) (*pb.Result, error) {
	resp, by, mark, err := p.publishAs(ctx, f, f.Name, commit)
	if fault.Is(err, fault.Missing) && !calls.IsUnknown(err) {
		p.Release(f) // the engine sends the chunks again
		return nil, err
	}
	refused := err
	if fault.Is(err, fault.Exists) && !calls.IsUnknown(err) {
		name := conflictName(f)
		if resp, by, mark, err = p.publishAs(ctx, f, name, commit); err == nil {
			p.opt.Logger.Warn("somebody else made a file of the same name while this client was cut off: both are kept", slog.String("name", f.Name), slog.String("copy", name))
		}
	}
	if err == nil {
		p.arrived.Add(1)
		r := resp.Result
		old, _, known := p.opt.Names.Attr(f.Object)
		p.Got(r)
		p.opt.Names.Learn(&mark, by, resp.Grants, func(l *names.Learner) {
			l.Attr(r.Dir, false)
			l.Attr(r.Attr, true)
		})
		if known && r.Attr != nil {
			p.opt.AdvancePages(f.Object, old.Version, r.Attr.Version)
		}
		p.opt.Receipts.Note(f.Object, resp.Receipt)
		p.opt.Told(f.Object, f.Journal, r.Attr.GetVersion())
	}
	if refused != nil {
		p.refuse(f, refused, commit == nil)
	}
	p.Finish(f, refused)
	if refused != nil {
		return nil, refused
	}
	return resp.Result, nil
}

// publishAs sends the create under a name.
func (p *Publisher) publishAs(ctx context.Context, f *pending.File, name string, commit *content.Commit) (*pb.OperateResponse, ids.Node, names.Mark, error) {
	o := calls.Operation{Slice: f.Object.Slice(), Principal: f.Principal, Level: f.Level}
	was := f.Create
	create := &pb.Create{Dir: was.Dir, Name: []byte(name), Mode: was.Mode, Umask: was.Umask, Exclusive: true, Open: true, Object: was.Object, MadeNs: was.MadeNs}
	p.Want(create, o.Slice)
	if commit != nil {
		s := commit.Splice
		// Appends to a new file begin at its start.
		create.Commit = &pb.Commit{Extents: s.Extents, Size: s.Size, Extend: s.Extend, MtimeNs: s.MtimeNs, ClearSetid: s.ClearSetid}
		o.Body = commit.Body
		if level, ok := calls.LevelOf(commit.As); ok {
			o.Level = level
		}
	}
	o.Op = &pb.Operation{Op: &pb.Operation_Create{Create: create}}
	mark := p.opt.Names.MarkNew(f.Dir, f.Object)
	resp, by, err := p.opt.Send(ctx, o)
	return resp, by, mark, err
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
