package alone

import (
	"cartwheel.dev/clients/cartwheel/timeouts"
	"context"

	"cartwheel.dev/clients/cartwheel/stream"
	"cartwheel.dev/clients/mount"
	"cartwheel.dev/clients/names"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/protocol/pb"
)

// Making is a new object that is no regular file.
type Making struct {
	Dir    ids.Object
	Name   string
	Who    mount.Caller
	Create *pb.Create // type, mode, device number and target
	Level  uint32
	// ID takes an object ID of a slice that its active gave in advance.
	ID func(ids.Slice) (ids.Object, bool)
}

// Make makes an object, and returns its attributes.
func (a *Actor) Make(ctx context.Context, m Making) (*pb.Attr, bool) {
	if timeouts.Eventual(ctx) {
		return nil, false // others at this side of a cut are to see it
	}
	const special = mount.SetUID | mount.SetGID
	t := m.Create.Mode & mount.TypeMask
	if _, ok := a.opt.Names.Alone(m.Dir, m.Name); !ok || m.Create.Mode&special != 0 || t != mount.TypeDir && t != mount.TypeSymlink {
		return nil, false
	}
	dir, ok := a.directory(m.Dir)
	if !ok || t == mount.TypeSymlink && (len(m.Create.Target) == 0 || len(m.Create.Target) > maxTarget) || t == mount.TypeDir && dir.Nlink >= maxLinks {
		return nil, false
	}
	p, ok := Owner(a.opt.Who(), dir, m.Who)
	if !ok {
		return nil, false
	}
	o, ok := m.ID(m.Dir.Slice())
	if !ok {
		return nil, false
	}
	wall := a.opt.Wall().UnixNano()
	made := &pb.Attr{
		Object: uint64(o), Mode: m.Create.Mode &^ (m.Who.Umask & 0o777), Uid: p.Uid, Gid: p.Gid, Nlink: 1, Parent: uint64(m.Dir),
		AtimeNs: wall, MtimeNs: wall, CtimeNs: wall, BtimeNs: wall, Cues: dir.Cues,
	}
	inherit(made, dir, m.Create)
	create := &pb.Create{Dir: uint64(m.Dir), Name: []byte(m.Name), Mode: m.Create.Mode, Umask: m.Who.Umask, Target: m.Create.Target, Exclusive: true,
		Object: uint64(o), MadeNs: wall, Alone: t == mount.TypeDir}
	op := &stream.Op{Op: &pb.Operation{TimeNs: wall, Op: &pb.Operation_Create{Create: create}}, Principal: p, Level: m.Level, Name: m.Name,
		Dir: m.Dir, Touches: []ids.Object{m.Dir, o}, Made: o}
	return made, a.Append(ctx, op, func() bool { return a.opt.Names.MakeAhead(m.Dir, m.Name, made) })
}

// The nodes' limits of targets and of links, which refuse what is beyond.
const (
	maxTarget = 4095
	maxLinks  = 1 << 20
)

// inherit fills in what depends on the type of an object and on its directory.
func inherit(made, dir *pb.Attr, create *pb.Create) {
	if dir.Mode&mount.SetGID != 0 {
		made.Gid = dir.Gid
	}
	if create.Mode&mount.TypeMask == mount.TypeDir {
		made.Nlink = 2
		made.Mode |= dir.Mode & mount.SetGID
		return
	}
	made.Mode, made.Target, made.Size = mount.TypeSymlink|0o777, create.Target, uint64(len(create.Target))
}

// Removing is a name to be removed.
type Removing struct {
	Dir       ids.Object
	Name      string
	Object    ids.Object // what it means
	Directory bool
	Who       mount.Caller
	Level     uint32
}

// Remove removes a name. The object must not be open here.
func (a *Actor) Remove(ctx context.Context, r Removing) bool {
	if timeouts.Eventual(ctx) {
		return false // others at this side of a cut are to see it
	}
	dir, ok := a.directory(r.Dir)
	if !ok || r.Object == 0 || r.Object.Slice() != r.Dir.Slice() {
		return false
	}
	e, _, known := a.opt.Names.Lookup(r.Dir, r.Name)
	if !known || e.Object != r.Object || (e.Type == mount.TypeDir) != r.Directory {
		return false
	}
	p, ok := Owner(a.opt.Who(), dir, r.Who)
	if !ok {
		return false
	}
	wall := a.opt.Wall().UnixNano()
	op := &stream.Op{Principal: p, Level: r.Level, Name: r.Name, Dir: r.Dir, Touches: []ids.Object{r.Dir, r.Object}, Files: a.files(r.Object),
		Op: &pb.Operation{TimeNs: wall, Op: &pb.Operation_Unlink{Unlink: &pb.Unlink{
			Dir: uint64(r.Dir), Name: []byte(r.Name), Directory: r.Directory, Object: uint64(r.Object)}}}}
	return a.Append(ctx, op, func() bool {
		return a.opt.Names.RemoveAhead(names.Removal{Dir: r.Dir, Name: r.Name, Object: r.Object, At: wall,
			May: func(o *pb.Attr) bool { return mayRemove(dir, p, o) }})
	})
}

// Renaming is a name that is to become another one.
type Renaming struct {
	Dir, To       ids.Object
	Name, NewName string
	Object        ids.Object // what Name means
	Target        ids.Object // what NewName means; 0: nothing
	Who           mount.Caller
	Level         uint32
}

// Rename gives an object another name. What it replaces must not be open here.
func (a *Actor) Rename(ctx context.Context, r Renaming) bool {
	if timeouts.Eventual(ctx) {
		return false // others at this side of a cut are to see it
	}
	from, ok := a.directory(r.Dir)
	to, ok2 := a.directory(r.To)
	if !ok || !ok2 || r.Object == 0 {
		return false
	}
	slice := r.Dir.Slice()
	if r.To.Slice() != slice || r.Object.Slice() != slice || r.Target != 0 && r.Target.Slice() != slice {
		return false
	}
	p, ok := Owner(a.opt.Who(), from, r.Who)
	if !ok || !permits(to, p, wants) {
		return false
	}
	wall := a.opt.Wall().UnixNano()
	op := &stream.Op{Principal: p, Level: r.Level, Name: r.NewName, Dir: r.To, Files: a.files(r.Object, r.Target),
		Touches: []ids.Object{r.Dir, r.Object}, Op: &pb.Operation{TimeNs: wall, Op: &pb.Operation_Rename{Rename: &pb.Rename{
			Dir: uint64(r.Dir), Name: []byte(r.Name), NewDir: uint64(r.To), NewName: []byte(r.NewName), NoReplace: r.Target == 0,
			Object: uint64(r.Object), Target: uint64(r.Target)}}}}
	if r.To != r.Dir {
		op.Touches = append(op.Touches, r.To)
	}
	if r.Target != 0 {
		op.Touches = append(op.Touches, r.Target)
	}
	return a.Append(ctx, op, func() bool {
		return a.opt.Names.MoveAhead(names.Move{Dir: r.Dir, To: r.To, Name: r.Name, NewName: r.NewName, Object: r.Object, Target: r.Target, At: wall,
			May: func(o, target *pb.Attr) bool {
				return mayRemove(from, p, o) && (r.Target == 0 || mayRemove(to, p, target))
			}})
	})
}
