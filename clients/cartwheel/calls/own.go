package calls

import (
	"cartwheel.dev/clients/mount"
	"cartwheel.dev/clients/names"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/protocol/pb"
)

// rememberOwn keeps what an operation of this client on eventual terms made of names and
// attributes: where no member answers later, that is what was known last.
func (s *Sender) rememberOwn(op *pb.Operation, r *pb.Result) {
	a := r.GetAttr()
	if a.GetObject() != 0 {
		s.opt.Remembered.NoteAttr(a)
	}
	note := func(dir uint64, name []byte, e names.Entry) {
		s.opt.Remembered.NoteEntry(ids.Object(dir), string(name), e)
	}
	named := names.Entry{Object: ids.Object(a.GetObject()), Type: a.GetMode() & mount.TypeMask}
	switch o := op.Op.(type) {
	case *pb.Operation_Create:
		note(o.Create.Dir, o.Create.Name, named)
	case *pb.Operation_Link:
		note(o.Link.Dir, o.Link.Name, named)
	case *pb.Operation_Unlink:
		note(o.Unlink.Dir, o.Unlink.Name, names.Entry{})
	case *pb.Operation_Rename:
		if !o.Rename.Exchange {
			note(o.Rename.Dir, o.Rename.Name, names.Entry{})
		}
		note(o.Rename.NewDir, o.Rename.NewName, named)
	}
}
