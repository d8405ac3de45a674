package stream

import (
	"context"
	"log/slog"
	"time"

	"google.golang.org/protobuf/proto"

	"cartwheel.dev/clients/cartwheel/calls"
	"cartwheel.dev/clients/names"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/logattr"
	"cartwheel.dev/node/protocol/pb"
)

// run sends a slice's operations until there are none.
func (s *Stream) run(slice ids.Slice, q *queue) {
	for {
		batch, wait := s.take(slice, q)
		switch {
		case batch != nil:
			s.send(slice, batch)
			continue
		case wait == 0:
			return
		}
		timer := time.NewTimer(wait)
		select {
		case <-q.wake:
		case <-timer.C:
		case <-s.opt.Context.Done():
			timer.Stop()
			s.mu.Lock()
			s.abandonLocked(slice, q)
			s.mu.Unlock()
			return
		}
		timer.Stop()
	}
}

// take returns the operations to send now; else how long to wait; else the queue
// has ended.
func (s *Stream) take(slice ids.Slice, q *queue) (batch []*Op, wait time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(q.ops) == 0 {
		delete(s.queues, slice)
		return nil, 0
	}
	first := q.ops[0]
	if age := s.opt.Clock() - first.since; q.wanted < first.at && len(q.ops) < batched && age < linger {
		return nil, linger - age
	}
	n, bytes := 1, first.bytes()
	for n < len(q.ops) && n < batched && q.ops[n].follows(first) {
		if bytes += q.ops[n].bytes(); bytes > batchBytes {
			break
		}
		n++
	}
	return q.ops[:n:n], 0
}

// follows reports whether an operation may be in a batch that another one begins.
// Its files may come behind operations of that batch.
func (o *Op) follows(first *Op) bool {
	return len(o.Files) == 0 && o.Level == first.Level && proto.Equal(o.Principal, first.Principal)
}

// send sends a batch, one by one where it is refused whole.
func (s *Stream) send(slice ids.Slice, batch []*Op) {
	ctx, cancel := s.opt.UntilKnown(s.opt.Context)
	defer cancel()
	s.publish(ctx, batch[0])
	mark := s.opt.Names.MarkAhead()
	resp, by, err := s.opt.Send(ctx, s.batch(slice, batch))
	switch {
	case err == nil && len(resp.Result.Results) > 0:
		s.opt.Got(resp.Result)
		s.opt.Names.Learn(&mark, by, resp.Grants, func(*names.Learner) {})
		ran, failed, cut := settle(batch, resp, by)
		if last := len(ran) - 1; cut {
			_, failed[last] = s.sendOne(ctx, slice, ran[last], ran[last].Then, nil)
		}
		s.finish(slice, ran, resp.Result.Serial, failed)
	case err == nil || !calls.IsUnknown(err): // a node of an earlier version takes no batch
		s.sendFirst(ctx, slice, batch[0])
	default:
		failed := make([]error, len(batch))
		for i := range failed {
			failed[i] = err
		}
		s.finish(slice, batch, 0, failed)
	}
}

// settle hands out the results of a batch, and returns the operations that ran with
// what each of them failed with; cut: the batch ended before what is to run behind
// the last of them.
func settle(batch []*Op, resp *pb.OperateResponse, by ids.Node) (ran []*Op, failed []error, cut bool) {
	results := resp.Result.Results
	for i := 0; len(ran) < len(batch) && i < len(results); {
		o, r := batch[len(ran)], results[i]
		err := refusal(o, r)
		i++
		if cut = o.Then != nil && i == len(results) && err == nil; o.Then != nil && i < len(results) {
			if err == nil {
				err = refusal(o, results[i])
			}
			i++
		}
		r.Serial = resp.Result.Serial
		o.got = Got{Result: r, Receipt: resp.Receipt, By: by}
		ran, failed = append(ran, o), append(failed, err)
	}
	return ran, failed, cut
}

func refusal(o *Op, r *pb.Result) error {
	if r.Kind == 0 {
		return nil
	}
	return fault.E(fault.Kind(r.Kind), "stream.send", o.Name, r.Message)
}

// sendFirst sends the first operation of a batch that was refused whole, or could
// not begin: by itself it says why.
func (s *Stream) sendFirst(ctx context.Context, slice ids.Slice, o *Op) {
	resp, err := s.sendOne(ctx, slice, o, o.Op, o.Body)
	serial := resp.GetResult().GetSerial()
	if err == nil && o.Then != nil {
		if resp, err = s.sendOne(ctx, slice, o, o.Then, nil); err == nil {
			serial = resp.Result.Serial
		}
	}
	s.finish(slice, []*Op{o}, serial, []error{err})
}

// sendOne sends an operation, or what is to run behind it, by itself.
func (s *Stream) sendOne(ctx context.Context, slice ids.Slice, o *Op, op *pb.Operation, body [][]byte) (*pb.OperateResponse, error) {
	mark := s.opt.Names.MarkAhead()
	resp, by, err := s.opt.Send(ctx, calls.Operation{Slice: slice, Principal: o.Principal, Level: o.Level, Op: proto.CloneOf(op), Body: body})
	if err != nil {
		return nil, err
	}
	s.opt.Names.Learn(&mark, by, resp.Grants, func(*names.Learner) {})
	if op == o.Op {
		o.got = Got{Result: resp.Result, Receipt: resp.Receipt, By: by}
	}
	return resp, nil
}

// batch is the message for operations.
func (s *Stream) batch(slice ids.Slice, list []*Op) calls.Operation {
	b := &pb.Batch{Operations: make([]*pb.Operation, 0, len(list)), Reserve: s.opt.Reserve(slice)}
	var body [][]byte
	at := uint64(0)
	for _, o := range list {
		op := o.Op
		if len(o.Body) > 0 {
			op = shifted(op, at)
			body = append(body, o.Body...)
			at += o.bytes()
		}
		b.Operations = append(b.Operations, op)
		if o.Then != nil {
			b.Operations = append(b.Operations, o.Then)
		}
	}
	return calls.Operation{Slice: slice, Principal: list[0].Principal, Level: list[0].Level, Body: body,
		Op: &pb.Operation{TimeNs: list[0].Op.TimeNs, Op: &pb.Operation_Batch{Batch: b}}}
}

// shifted is a create whose content begins so far behind the start of the body.
func shifted(op *pb.Operation, by uint64) *pb.Operation {
	out := proto.CloneOf(op)
	for _, e := range out.GetCreate().GetCommit().GetExtents() {
		if src, ok := e.Source.(*pb.Extent_BodyOffset); ok {
			src.BodyOffset += by
		}
	}
	return out
}

// bytes is the length of an operation's body.
func (o *Op) bytes() (n uint64) {
	for _, part := range o.Body {
		n += uint64(len(part))
	}
	return n
}

// publish tells the active of the files that a batch's first operation needs. One
// that is refused is not there when the batch comes to it.
func (s *Stream) publish(ctx context.Context, first *Op) {
	for _, f := range first.Files {
		_ = s.opt.PublishFile(ctx, f) // its close tells
	}
}

// finish takes operations out that their active has, or refused, and tells those
// who wait.
func (s *Stream) finish(slice ids.Slice, list []*Op, serial uint64, failed []error) {
	for i, o := range list {
		s.opt.Names.Settle(serial, o.Made, o.Touches...)
		if failed[i] != nil {
			s.fail(o, failed[i])
		}
	}
	s.mu.Lock()
	q := s.queues[slice]
	q.ops = q.ops[len(list):]
	for i, o := range list {
		for _, t := range o.Touches {
			if s.last[t] == o {
				delete(s.last, t)
			}
		}
		delete(s.made, o.Made)
		if failed[i] == nil {
			s.sent.Add(1)
		} else if len(s.refused) < maxRefused {
			s.refused[o.Dir] = failed[i]
		}
	}
	s.count.Add(-int64(len(list)))
	s.room.Broadcast()
	s.mu.Unlock()
	for i, o := range list {
		o.err = failed[i]
		close(o.done)
	}
}

// fail takes back what programs were told: the next fsync of the directory says
// why, and what is known of the objects is forgotten.
func (s *Stream) fail(o *Op, err error) {
	s.opt.Logger.Warn("what a program did was refused later, when the node heard of it", slog.String("name", o.Name), logattr.Object(o.Dir), logattr.Err(err))
	s.sober.Store(int64(s.opt.Clock() + soberFor))
	s.opt.Doubt(o.Touches...)
}

// abandonLocked lets those go on who wait when the client ends, with mu held. The
// client lists the operations as not saved.
func (s *Stream) abandonLocked(slice ids.Slice, q *queue) {
	s.room.Broadcast()
	for _, o := range q.ops {
		o.err = calls.OutcomeOpen(fault.E(fault.Canceled, "stream.abandonLocked", o.Name, "the mount has ended"))
		close(o.done)
	}
	delete(s.queues, slice)
	s.lost = append(s.lost, q.ops...)
}
