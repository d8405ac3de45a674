package server

import (
	"context"
	"encoding/json"
	"math"
	"slices"
	"time"

	"google.golang.org/protobuf/proto"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/hlc"
	"cartwheel.dev/node/protocol/method"
	"cartwheel.dev/node/protocol/pb"
	"cartwheel.dev/node/replica"
	"cartwheel.dev/node/server/identity"
	"cartwheel.dev/node/server/operate"
	"cartwheel.dev/node/server/reading"
	"cartwheel.dev/node/server/ticket"
	"cartwheel.dev/node/tree"
	"cartwheel.dev/node/wire"
)

// handle registers everything that the node answers.
func (s *Server) handle() {
	h := s.host
	h.Inline(method.Hello, s.hello)
	h.Inline(method.KeepAlive, s.keepAlive)
	h.Inline(method.Operate, s.operate)
	h.Message(method.Replica, s.frame)
	h.Message(method.Beacon, s.frame)

	h.Spawn(method.Resolve, client(s, func(ctx context.Context, w *identity.Who, req *pb.ResolveRequest) (proto.Message, error) {
		return s.reading.Resolve(ctx, s.asker(w, req.Header), req)
	}))
	h.Spawn(method.List, s.list)
	h.Spawn(method.GetAttr, client(s, func(ctx context.Context, w *identity.Who, req *pb.GetAttrRequest) (proto.Message, error) {
		return s.reading.GetAttr(ctx, s.asker(w, req.Header), req)
	}))
	h.Spawn(method.Files, s.files)
	h.Spawn(method.Statfs, client(s, s.statfs))
	h.Spawn(method.Place, client(s, s.slices.Place))
	h.Spawn(method.Rows, client(s, s.rows))
	h.Spawn(method.Claim, client(s, s.locks.Claim))
	h.Inline(method.Lock, s.locks.Set)

	h.Spawn(method.Have, s.have)
	h.Spawn(method.Put, s.put)
	h.Spawn(method.Get, s.get)
	h.Spawn(method.Range, s.ranges)

	h.Spawn(method.Status, client(s, s.status))
	h.Spawn(method.SliceList, client(s, s.sliceList))
	h.Spawn(method.Where, client(s, s.where))
	h.Spawn(method.HandOver, client(s, s.handOver))
	h.Spawn(method.Net, client(s, s.survey.Net))
	h.Spawn(method.DropCaches, client(s, s.dropCaches))

	h.Spawn(method.Intent, node(s, s.intents.Intent))
	h.Spawn(method.Facts, node(s, s.intents.Facts))
	h.Spawn(method.Transfer, s.sender.Send)
}

// request is a message that a handler decodes.
type request[T any] interface {
	*T
	proto.Message
}

// client makes a handler for clients that said hello, and for nodes, which
// come without a Who.
func client[T any, M request[T]](s *Server, f func(context.Context, *identity.Who, M) (proto.Message, error)) func(context.Context, *wire.Request) {
	return func(ctx context.Context, r *wire.Request) {
		w, err := s.caller(r.Peer)
		if err != nil {
			r.Fail(err)
			return
		}
		serve(ctx, r, func(ctx context.Context, m M) (proto.Message, error) { return f(ctx, w, m) })
	}
}

// node makes a handler for nodes alone.
func node[T any, M request[T]](s *Server, f func(context.Context, M) (proto.Message, error)) func(context.Context, *wire.Request) {
	return func(ctx context.Context, r *wire.Request) {
		if err := s.who.Node(r.Peer); err != nil {
			r.Fail(err)
			return
		}
		serve(ctx, r, f)
	}
}

func serve[T any, M request[T]](ctx context.Context, r *wire.Request, f func(context.Context, M) (proto.Message, error)) {
	m := M(new(T))
	if err := r.Decode(m); err != nil {
		r.Fail(err)
		return
	}
	answer, err := f(ctx, m)
	if err != nil {
		r.Fail(err)
		return
	}
	r.Reply(answer)
}

func (s *Server) hello(r *wire.Request) {
	var req pb.HelloRequest
	if err := r.Decode(&req); err != nil {
		r.Fail(err)
		return
	}
	w, err := s.who.Hello(r.Peer, &req)
	if err != nil {
		r.Fail(err)
		return
	}
	r.Reply(&pb.HelloResponse{Cluster: string(s.Cluster()), Node: string(s.id), Site: s.config.Site, Version: method.ProtocolVersion,
		Trusted: w.Trusted, Uid: w.UID, Gids: w.GIDs, MaxSessionNs: uint64(s.config.Session),
		Nonce: w.Nonce[:], TicketNs: ticketLife(w)})
}

func (s *Server) keepAlive(r *wire.Request) {
	w, err := s.who.Client(r.Peer)
	if err != nil {
		r.Fail(err)
		return
	}
	var req pb.KeepAliveRequest
	if err := r.Decode(&req); err != nil {
		r.Fail(err)
		return
	}
	if err := w.Is(req.Client); err != nil {
		r.Fail(err)
		return
	}
	answer, err := s.sessions.KeepAlive(r.Peer, string(w.User), w.Client, &req)
	if err != nil {
		r.Fail(err)
		return
	}
	r.Reply(answer)
}

// frame takes replica messages in. Entries and leases share the payload's
// memory, which is then left to the garbage collector.
func (s *Server) frame(m wire.Message) {
	if s.who.Node(m.Peer) != nil {
		m.Payload.Release()
		return
	}
	messages, err := operate.DecodeFrame(m.Payload.Bytes())
	if err != nil {
		s.log.Warn("a frame of a peer makes no sense", "peer", m.Peer, "error", err)
		return
	}
	shared := slices.ContainsFunc(messages, func(m *replica.Message) bool { return len(m.Entries)+len(m.Leases) > 0 })
	if !shared {
		m.Payload.Release()
	}
	s.loop.Receive(ids.Node(m.Peer), messages)
}

// operate takes an operation in, on the goroutine that reads the connection.
func (s *Server) operate(r *wire.Request) {
	w, err := s.who.Client(r.Peer) // before anything is decoded
	if err != nil && s.who.IsNode(r.Peer) {
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
	op.Admit = s.locks.MayCommit
	op.Body = r.Body()
	var mark uint64
	done := func(op *operate.Operation, a operate.Answer) {
		s.answer(r, who, op, a, nil)
		s.sessions.Changed(mark)
	}
	if len(req.Asks) > 0 {
		done = func(op *operate.Operation, a operate.Answer) {
			s.life.spawn(func(ctx context.Context) { s.answer(r, who, op, a, s.intents.FactsBehind(ctx, op, a, req.Asks)) })
			s.sessions.Changed(mark)
		}
	}
	op.Done = func(op *operate.Operation, a operate.Answer) {
		if a.Across {
			s.intents.Start(op, func(a operate.Answer) { done(op, a) })
			return
		}
		done(op, a)
	}
	unreached, apart := s.unreached(who, req), req.Operation.GetMakeObject()
	if s.provedMake(who, req) {
		apart = nil
	}
	if len(unreached) == 0 && apart == nil {
		s.alone(op, &mark)
		return
	}
	s.life.spawn(func(context.Context) {
		if err := s.checkApart(r.Context(), who, unreached, apart); err != nil {
			r.Fail(err)
			return
		}
		s.alone(op, &mark)
	})
}

// alone takes an operation in once nobody else is alone in the directories
// whose names it depends on.
func (s *Server) alone(op *operate.Operation, mark *uint64) {
	dirs := named(op.Op)
	if len(dirs) == 0 || op.Internal {
		s.loop.Operate(op)
		return
	}
	var ready bool
	started := make(chan struct{})
	*mark, ready = s.sessions.Share(op.Session, dirs, func() {
		<-started // the mark is known
		s.loop.Operate(op)
	})
	close(started)
	if ready {
		s.loop.Operate(op)
	}
}

// named lists the directories whose names an operation depends on.
func named(o *pb.Operation) []ids.Object {
	switch o := o.Op.(type) {
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

// operation makes the loop's operation of the request of a client, or of a node,
// which comes without a Who.
func (s *Server) operation(w *identity.Who, req *pb.OperateRequest) (*operate.Operation, *reading.Asker, error) {
	const op fault.Op = "server.Operate"
	if req.Operation == nil || req.Slice == 0 {
		return nil, nil, fault.E(fault.Invalid, op, "", "the request names no operation or no slice")
	}
	out := &operate.Operation{Slice: ids.Slice(req.Slice), Epoch: ids.Epoch(req.Epoch), Client: req.Client, Number: req.Number,
		Lowest: req.Lowest, Unsent: req.Unsent, Age: time.Duration(min(req.AgeNs, math.MaxInt64)), Level: req.SyncLevel, Op: req.Operation}
	if w != nil {
		if err := w.Is(req.Client); err != nil {
			return nil, nil, err
		}
		if req.Number == 0 {
			return nil, nil, fault.E(fault.Invalid, op, "", "an operation needs a number")
		}
		out.Client, out.Session = w.Client, s.own(w, req.Session)
		out.Principal, out.Trusted, out.User = principal(w, req.Principal), w.Trusted, string(w.User)
		if link := req.Operation.GetLinkName(); link != nil {
			made := ticket.Made{Client: w.Client, Object: ids.Object(link.Object), Dir: ids.Object(link.Dir), Mode: link.Mode & tree.TypeMask}
			if err := s.tickets.OpenMade(link.Made, made); err != nil {
				return nil, nil, err
			}
		}
		if err := checkCues(req.Operation); err != nil {
			return nil, nil, err
		}
		if err := s.mayNameChunks(w, req.Operation); err != nil {
			return nil, nil, err
		}
		who := s.asker(w, &pb.ReadHeader{Principal: req.Principal})
		return out, &who, nil
	}
	if err := othersIntent(req); err != nil {
		return nil, nil, err
	}
	out.Trusted, out.Internal = true, true
	return out, &reading.Asker{Trusted: true}, nil
}

// othersIntent refuses the steps that a slice's coordinator takes in its own
// slice, where another node sends them. A coordinator proposes them where it
// runs, which is where its slice is led: no node has a reason to send one.
func othersIntent(req *pb.OperateRequest) error {
	step := req.Operation.GetStep()
	if step == nil || step.Phase != pb.Step_BEGIN && tree.Intent(step.Intent).Slice() != ids.Slice(req.Slice) {
		return nil
	}
	return fault.Errorf(fault.Permission, "server.Operate", "", "only the active of slice %d takes %v of its own intents", req.Slice, step.Phase)
}

// answer ends a request with what became of its operation, and facts behind it.
func (s *Server) answer(r *wire.Request, who *reading.Asker, op *operate.Operation, a operate.Answer, facts []byte) {
	out := &pb.OperateResponse{Hlc: uint64(s.hlc.Last()), Facts: facts}
	switch {
	case a.Err != nil:
		r.Fail(a.Err)
		return
	case a.Refused != nil:
		row := a.Refused.Row
		if known, ok := s.directory.Slice(op.Slice); ok && (row == nil || known.Epoch > row.Epoch) {
			row = &known
		}
		out.Refusal = reading.Refusal(fault.Kind(a.Refused.Kind), row, a.Refused.Why)
	case a.Result != nil:
		out.Result = a.Result
	default:
		out.Result = &pb.Result{}
		if err := proto.Unmarshal(a.Encoded, out.Result); err != nil {
			r.Fail(fault.Wrap(fault.Corrupt, "server.Operate", "", err))
			return
		}
	}
	if out.Refusal == nil {
		out.Receipt = &pb.Receipt{Serial: uint64(a.Serial), Epoch: uint64(a.Epoch), Hlc: a.Time}
		out.Spent = s.cost.Count(op.Slice, a.Cost)
		s.grantOwn(op, out, a)
		s.sealMade(op, out.Result, a)
		s.stampResult(who, out.Result)
	}
	r.Reply(out)
}

// grantOwn gives the caller's session a lease on a file that it made or opened.
func (s *Server) grantOwn(op *operate.Operation, out *pb.OperateResponse, a operate.Answer) {
	create, apart := op.Op.GetCreate(), op.Op.GetMakeObject()
	if create.GetOpen() && op.Session != 0 && out.Result.Kind == 0 && out.Result.Attr != nil {
		s.sessions.Opened(op.Session, ids.Object(out.Result.Attr.Object))
	}
	if op.Session == 0 || create == nil && apart == nil || out.Result.Kind != 0 || out.Result.Attr == nil || out.Result.Existed {
		return
	}
	o := ids.Object(out.Result.Attr.Object)
	what, dir := pb.Grant_FILE, ids.Object(create.GetDir())
	if out.Result.Attr.Mode&tree.TypeMask == tree.TypeDir {
		what, dir = pb.Grant_NAMES, o
	}
	if g := s.sessions.Grant(op.Session, o.Slice(), a.Epoch, o, what); g != nil {
		out.Grants = append(out.Grants, g)
	}
	if dir != 0 && (create.GetAlone() || apart.GetAlone()) {
		if g := s.sessions.GrantAlone(op.Session, a.Epoch, dir); g != nil {
			out.Grants = append(out.Grants, g)
		}
	}
}

// sealMade gives the maker of an object the ticket to name it. A repeated
// answer has the first one's end, so that it names nothing later.
func (s *Server) sealMade(op *operate.Operation, result *pb.Result, a operate.Answer) {
	apart := op.Op.GetMakeObject()
	if apart == nil || op.Client == 0 || result.Kind != 0 || result.Attr == nil {
		return
	}
	result.Made = s.tickets.SealMade(ticket.Made{Client: op.Client, Object: ids.Object(result.Attr.Object),
		Dir: ids.Object(apart.Parent), Mode: result.Attr.Mode & tree.TypeMask}, hlc.Time(a.Time).Wall())
}

func (s *Server) rows(_ context.Context, _ *identity.Who, req *pb.RowsRequest) (proto.Message, error) {
	out := &pb.RowsResponse{Revision: uint64(s.directory.Revision()), Cluster: string(s.Cluster())}
	var err error
	add := func(list *[][]byte, row any) {
		encoded, e := json.Marshal(row)
		if e != nil {
			err = e
		}
		*list = append(*list, encoded)
	}
	if req.AllSlices {
		for _, r := range s.directory.Slices() {
			add(&out.Slices, r)
		}
	}
	for _, id := range req.Slices {
		if r, ok := s.directory.Slice(ids.Slice(id)); ok {
			add(&out.Slices, r)
		}
	}
	if req.Nodes {
		for _, n := range s.directory.Nodes() {
			add(&out.Nodes, n)
		}
	}
	if req.Sites {
		for _, x := range s.directory.Sites() {
			add(&out.Sites, x)
		}
	}
	return out, fault.Wrap(fault.Corrupt, "server.Rows", "", err)
}
