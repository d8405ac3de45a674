package requests

import (
	"context"
	"math"
	"slices"
	"time"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/cue"
	"cartwheel.dev/node/hlc"
	"cartwheel.dev/node/protocol/pb"
	"cartwheel.dev/node/server/access"
	"cartwheel.dev/node/server/identity"
	"cartwheel.dev/node/server/operate"
	"cartwheel.dev/node/server/reading"
	"cartwheel.dev/node/tree"
	"cartwheel.dev/node/wire"
)

// Sharing ends exclusive leases on directories before their names change.
type Sharing interface {
	// Share begins a change of directories' names. Where it is not ready, then is
	// called once no other session is alone in them. The mark ends with Changed.
	Share(session uint64, dirs []ids.Object, then func()) (mark uint64, ready bool)
	Changed(mark uint64)
}

// Leases grants sessions what they may cache.
type Leases interface {
	// Opened notes that a session has an object open.
	Opened(session uint64, o ids.Object) bool
	// Grant and GrantAlone return nil where the session cannot have the lease now.
	Grant(session uint64, slice ids.Slice, epoch ids.Epoch, o ids.Object, what pb.Grant_What) *pb.Grant
	GrantAlone(session uint64, epoch ids.Epoch, dir ids.Object) *pb.Grant
}

// Intents runs operations over several slices.
type Intents interface {
	Start(op *operate.Operation, done func(operate.Answer))
	// FactsBehind returns what a request asks to read behind its operation.
	FactsBehind(ctx context.Context, op *operate.Operation, a operate.Answer, asks []byte) []byte
}

// Operations takes the operations of clients and nodes in, and answers them.
// Every field is needed, and none changes.
type Operations struct {
	Access  *access.Control
	Sharing Sharing
	Leases  Leases
	Intents Intents
	// Order gives an operation to the loop, which calls its Done once.
	Order func(*operate.Operation)
	// MayCommit refuses the writes of a client that lost a lock.
	MayCommit func(*operate.Operation) error
	Row       func(ids.Slice) (geoconfig.SliceRow, bool)
	// Count counts the round trips that an operation waited for.
	Count func(ids.Slice, operate.Cost) *pb.Spent
	HLC   *hlc.Clock
	// Go runs a function on a goroutine that ends with the node.
	Go func(func(context.Context))
}

// Operate takes an operation in, on the goroutine that reads the connection.
func (s *Operations) Operate(r *wire.Request) {
	w, err := s.Access.Peers.Client(r.Peer) // before anything is decoded
	if err != nil && s.Access.Peers.Node(r.Peer) == nil {
		w, err = nil, nil
	}
	req := &pb.OperateRequest{}
	if err == nil {
		err = r.Decode(req)
	}
	if err != nil {
		r.Fail(err)
		return
	}
	op, who, err := s.operation(w, req)
	if err != nil {
		r.Fail(err)
		return
	}
	op.Admit = s.MayCommit
	op.Body = r.Body()
	var mark uint64
	answer := func(op *operate.Operation, a operate.Answer) { s.answer(r, who, op, a, nil) }
	if op.Held && req.Early {
		answer = s.early(r, op, answer)
	}
	done := func(op *operate.Operation, a operate.Answer) {
		answer(op, a)
		s.Sharing.Changed(mark)
	}
	if len(req.Asks) > 0 {
		done = func(op *operate.Operation, a operate.Answer) {
			s.Go(func(ctx context.Context) { s.answer(r, who, op, a, s.Intents.FactsBehind(ctx, op, a, req.Asks)) })
			s.Sharing.Changed(mark)
		}
	}
	asked := false
	var settle func(*operate.Operation, operate.Answer)
	settle = func(op *operate.Operation, a operate.Answer) {
		switch {
		case a.Across:
			s.Intents.Start(op, func(a operate.Answer) { done(op, a) })
		case a.NotEmpty != 0 && !asked && !op.Internal:
			asked = true
			if op.Done = settle; !s.orderEmptied(op, &mark, a.NotEmpty) {
				done(op, a)
			}
		default:
			done(op, a)
		}
	}
	op.Done = settle
	unproven := s.Access.Unproven(who, req)
	if unproven == nil {
		s.orderShared(op, &mark)
		return
	}
	s.Go(func(context.Context) {
		if err := s.Access.Check(r.Context(), who, unproven); err != nil {
			r.Fail(err)
			return
		}
		s.orderShared(op, &mark)
	})
}

// early has a create answered once it keeps its place. It returns what is to be called
// at its end instead of answer.
func (s *Operations) early(r *wire.Request, op *operate.Operation, answer func(*operate.Operation, operate.Answer)) func(*operate.Operation, operate.Answer) {
	body := r.TakeBody() // it is needed behind an early answer
	op.Body = body.Bytes()
	op.Early = func(_ *operate.Operation, a operate.Answer) {
		r.Reply(&pb.OperateResponse{Early: true, Result: &pb.Result{}, Hlc: uint64(s.HLC.Last()),
			Receipt: &pb.Receipt{Serial: uint64(a.Serial), Epoch: uint64(a.Epoch), Hlc: a.Time}})
		answer = nil
	}
	return func(op *operate.Operation, a operate.Answer) {
		if answer != nil {
			answer(op, a)
		}
		body.Release()
	}
}

// orderShared orders an operation once no other client is alone in the
// directories whose names the operation depends on. It sets the mark before the
// loop can call Done.
func (s *Operations) orderShared(op *operate.Operation, mark *uint64) {
	dirs := namedDirectories(op.Op)
	if len(dirs) == 0 || op.Internal && op.Op.GetMerge() == nil {
		s.Order(op)
		return
	}
	var ready bool
	started := make(chan struct{})
	*mark, ready = s.Sharing.Share(op.Session, dirs, func() {
		<-started // the mark is known
		s.Order(op)
	})
	close(started)
	if ready {
		s.Order(op)
	}
}

// orderEmptied orders an operation once more that met a directory with names, where
// another client has that exclusively: it may have removed the names. False: no
// other client has.
func (s *Operations) orderEmptied(op *operate.Operation, mark *uint64, dir ids.Object) bool {
	before := *mark
	started := make(chan struct{})
	again, ready := s.Sharing.Share(op.Session, append(namedDirectories(op.Op), dir), func() {
		<-started
		s.Order(op)
	})
	if ready {
		s.Sharing.Changed(again)
		close(started)
		return false
	}
	s.Sharing.Changed(before)
	*mark = again
	close(started)
	return true
}

// namedDirectories lists the directories whose names an operation depends on.
func namedDirectories(o *pb.Operation) []ids.Object {
	switch o := o.GetOp().(type) {
	case *pb.Operation_Batch:
		return directoriesOfBatch(o.Batch.GetOperations())
	case *pb.Operation_Merge:
		return directoriesOfMerge(o.Merge)
	case *pb.Operation_Create:
		return []ids.Object{ids.Object(o.Create.Dir)}
	case *pb.Operation_LinkName:
		return []ids.Object{ids.Object(o.LinkName.Dir)}
	case *pb.Operation_Unlink:
		return []ids.Object{ids.Object(o.Unlink.Dir)}
	case *pb.Operation_Link:
		return []ids.Object{ids.Object(o.Link.Dir)}
	case *pb.Operation_Rename:
		if o.Rename.Dir == o.Rename.NewDir {
			return []ids.Object{ids.Object(o.Rename.Dir)}
		}
		return []ids.Object{ids.Object(o.Rename.Dir), ids.Object(o.Rename.NewDir)}
	}
	return nil
}

func directoriesOfMerge(m *pb.Merge) (out []ids.Object) {
	for _, n := range slices.Concat(m.Lost, m.Gained, []*pb.Named{m.Name}) {
		if dir := ids.Object(n.GetDir()); dir != 0 && !slices.Contains(out, dir) {
			out = append(out, dir)
		}
	}
	return out
}

func directoriesOfBatch(list []*pb.Operation) (out []ids.Object) {
	known := map[ids.Object]struct{}{}
	for _, o := range list {
		if o.GetBatch() != nil {
			continue // is refused
		}
		for _, dir := range namedDirectories(o) {
			if _, is := known[dir]; !is {
				known[dir] = struct{}{}
				out = append(out, dir)
			}
		}
	}
	return out
}

// operation makes the loop's operation of the request of a client, or of a node,
// which comes without a Who.
func (s *Operations) operation(w *identity.Who, req *pb.OperateRequest) (*operate.Operation, *reading.Asker, error) {
	const op fault.Op = "requests.operation"
	if req.Operation == nil || req.Slice == 0 {
		return nil, nil, fault.E(fault.Invalid, op, "", "the request names no operation or no slice")
	}
	if err := s.refuseLate(req); err != nil {
		return nil, nil, err
	}
	out := &operate.Operation{Slice: ids.Slice(req.Slice), Epoch: ids.Epoch(req.Epoch), Client: req.Client, Number: req.Number,
		Lowest: req.Lowest, Held: req.Held && mayHold(req) == nil, Unsent: req.Unsent, Age: time.Duration(min(req.AgeNs, math.MaxInt64)), Level: req.SyncLevel, Op: req.Operation}
	if w == nil {
		if err := refuseOwnStep(req); err != nil {
			return nil, nil, err
		}
		out.Trusted, out.Internal = true, true
		return out, &reading.Asker{Trusted: true}, nil
	}
	if err := w.Is(req.Client); err != nil {
		return nil, nil, err
	}
	if req.Number == 0 {
		return nil, nil, fault.E(fault.Invalid, op, "", "an operation needs a number")
	}
	out.Client, out.Session = w.Client, s.Access.OwnSession(w, req.Session)
	out.Principal, out.Trusted, out.User = access.Principal(w, req.Principal), w.Trusted, string(w.User)
	if err := s.Access.MayNameObject(w, req.Operation); err != nil {
		return nil, nil, err
	}
	if err := checkCues(req.Operation); err != nil {
		return nil, nil, err
	}
	if err := s.Access.MayNameChunks(w, req.Operation); err != nil {
		return nil, nil, err
	}
	out.OnlyMade, out.Side = access.Holder(w) != nil, req.ValidNs > 0
	who := s.Access.Asker(w, &pb.ReadHeader{Principal: req.Principal})
	return out, &who, nil
}

// refuseLate refuses a request that came after its caller waited for it, as from a
// connection that was cut and works again: it was done elsewhere.
func (s *Operations) refuseLate(req *pb.OperateRequest) error {
	if req.ValidNs == 0 {
		return nil
	}
	late := s.HLC.Now().Wall().Sub(hlc.Time(req.Hlc).Wall())
	if late <= time.Duration(min(req.ValidNs, math.MaxInt64)) {
		return nil
	}
	return fault.Errorf(fault.TimedOut, "requests.refuseLate", "", "the request came %v after it was sent, and its caller has done without it", late)
}

// checkCues refuses an object whose cues no path can spell.
func checkCues(o *pb.Operation) error {
	for _, part := range o.GetBatch().GetOperations() {
		if err := cue.Check(part.GetCreate().GetCues()); err != nil {
			return err
		}
	}
	if create := o.GetCreate(); create != nil {
		return cue.Check(create.Cues)
	}
	return cue.Check(o.GetMakeObject().GetCues())
}

// refuseOwnStep refuses the steps that a slice's coordinator takes in its own
// slice, where another node sends them. A coordinator proposes them where it
// runs, which is where its slice is led: no node has a reason to send one.
func refuseOwnStep(req *pb.OperateRequest) error {
	step := req.Operation.GetStep()
	if step == nil || step.Phase != pb.Step_BEGIN && tree.Intent(step.Intent).Slice() != ids.Slice(req.Slice) {
		return nil
	}
	return fault.Errorf(fault.Permission, "requests.refuseOwnStep", "", "only the active of slice %d takes %v of its own intents", req.Slice, step.Phase)
}
