package requests

import (
	"google.golang.org/protobuf/proto"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/hlc"
	"cartwheel.dev/node/protocol/pb"
	"cartwheel.dev/node/server/operate"
	"cartwheel.dev/node/server/reading"
	"cartwheel.dev/node/tree"
	"cartwheel.dev/node/wire"
)

// answer ends a request with what became of its operation, and facts behind it.
func (s *Operations) answer(r *wire.Request, who *reading.Asker, op *operate.Operation, a operate.Answer, facts []byte) {
	out := &pb.OperateResponse{Hlc: uint64(s.HLC.Last()), Facts: facts}
	switch {
	case a.Err != nil:
		r.Fail(a.Err)
		return
	case a.Refused != nil:
		row := a.Refused.Row
		if known, ok := s.Row(op.Slice); ok && (row == nil || known.Epoch > row.Epoch) {
			row = &known
		}
		out.Refusal = reading.Refusal(fault.Kind(a.Refused.Kind), row, a.Refused.Why)
	case a.Result != nil:
		out.Result = a.Result
	default:
		out.Result = &pb.Result{}
		if err := proto.Unmarshal(a.Encoded, out.Result); err != nil {
			r.Fail(fault.Wrap(fault.Corrupt, "requests.answer", "", err))
			return
		}
	}
	if out.Refusal == nil {
		out.Receipt = &pb.Receipt{Serial: uint64(a.Serial), Epoch: uint64(a.Epoch), Hlc: a.Time}
		out.Spent = s.Count(op.Slice, a.Cost)
		s.grantOwn(op, out, a)
		s.Access.SealMade(op.Client, op.Op, out.Result, hlc.Time(a.Time))
		s.Access.StampResult(who, out.Result)
	}
	r.Reply(out)
}

// grantOwn gives the caller's session a lease on a file that it made or opened.
func (s *Operations) grantOwn(op *operate.Operation, out *pb.OperateResponse, a operate.Answer) {
	if b := op.Op.GetBatch(); b != nil && op.Session != 0 {
		s.grantBatch(op, b, out, a)
		return
	}
	create, apart := op.Op.GetCreate(), op.Op.GetMakeObject()
	if out.Result.Kind == 0 && op.Session != 0 {
		for _, dir := range wantedAlone(op.Op) {
			s.grantAlone(op, out, a, dir)
		}
	}
	if create.GetOpen() && op.Session != 0 && out.Result.Kind == 0 && out.Result.Attr != nil {
		s.Leases.Opened(op.Session, ids.Object(out.Result.Attr.Object))
	}
	if op.Session == 0 || create == nil && apart == nil || out.Result.Kind != 0 || out.Result.Attr == nil || out.Result.Existed {
		return
	}
	o := ids.Object(out.Result.Attr.Object)
	what, dir := pb.Grant_FILE, ids.Object(create.GetDir())
	if out.Result.Attr.Mode&tree.TypeMask == tree.TypeDir {
		what, dir = pb.Grant_NAMES, o
	}
	if g := s.Leases.Grant(op.Session, o.Slice(), a.Epoch, o, what); g != nil {
		out.Grants = append(out.Grants, g)
	}
	if dir != 0 && (create.GetAlone() || apart.GetAlone()) {
		s.grantAlone(op, out, a, dir)
		if in := ids.Object(create.GetDir()); in != 0 && in != dir {
			s.grantAlone(op, out, a, in)
		}
	}
}

// grantAlone gives the caller's session a directory exclusively, if it can have it.
func (s *Operations) grantAlone(op *operate.Operation, out *pb.OperateResponse, a operate.Answer, dir ids.Object) {
	if g := s.Leases.GrantAlone(op.Session, a.Epoch, dir); g != nil {
		out.Grants = append(out.Grants, g)
	}
}

// wantedAlone lists the directories that the caller of an operation, which removes
// or moves a name, would have exclusively.
func wantedAlone(o *pb.Operation) []ids.Object {
	switch {
	case o.GetUnlink().GetAlone():
		return []ids.Object{ids.Object(o.GetUnlink().Dir)}
	case o.GetRename().GetAlone():
		return []ids.Object{ids.Object(o.GetRename().Dir), ids.Object(o.GetRename().NewDir)}
	}
	return nil
}

// grantBatch gives the caller's session the leases on what it made with a batch:
// files that it opens, and directories. Those that it has exclusively were given
// before anybody knew of them; a repeated answer gives them as any other would.
func (s *Operations) grantBatch(op *operate.Operation, b *pb.Batch, out *pb.OperateResponse, a operate.Answer) {
	out.Grants = a.Grants
	for i, r := range out.Result.Results[:min(len(out.Result.Results), len(b.Operations))] {
		create := b.Operations[i].GetCreate()
		if create == nil || r.Kind != 0 || r.Attr == nil {
			continue
		}
		o, what, dir := ids.Object(r.Attr.Object), pb.Grant_FILE, r.Attr.Mode&tree.TypeMask == tree.TypeDir
		switch {
		case dir && create.Alone && a.Result != nil:
			continue
		case dir:
			what = pb.Grant_NAMES
		case !create.Open:
			continue
		default:
			s.Leases.Opened(op.Session, o)
		}
		if g := s.Leases.Grant(op.Session, o.Slice(), a.Epoch, o, what); g != nil {
			out.Grants = append(out.Grants, g)
		}
		if dir && create.Alone {
			s.grantAlone(op, out, a, o)
		}
	}
}
