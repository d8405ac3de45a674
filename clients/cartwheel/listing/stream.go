package listing

import (
	"context"
	"sync"

	"cartwheel.dev/clients/cartwheel/timeouts"
	"cartwheel.dev/clients/mount"
	"cartwheel.dev/clients/names"
	"cartwheel.dev/clients/trace"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/cue"
	"cartwheel.dev/node/protocol/method"
	"cartwheel.dev/node/protocol/pb"
	"cartwheel.dev/node/wire"
	"google.golang.org/protobuf/proto"
)

// op is what errors of a listing say that they come from.
const op fault.Op = "listing.Next"

// How far a listing runs ahead of its reader: a node pushes so many bytes of
// pages in answer to one question, and the next is asked when no more than so
// many are left. A directory of 10^5 files takes about 14 MB.
const (
	aheadBytes = 16 << 20
	eagerBytes = 2 << 20
)

// page is one page of a listing, with the mark of the question that it answers.
type page struct {
	resp *pb.ListResponse
	data []byte // where resp is nil: it, encoded
	size int
	by   ids.Node
	mark names.Mark
}

// decode makes resp what came in; a page that cannot be read ends the listing.
func (p *page) decode() error {
	if p.resp != nil {
		return nil
	}
	p.resp = &pb.ListResponse{}
	err := proto.Unmarshal(p.data, p.resp)
	p.data = nil
	return fault.Wrap(fault.Corrupt, "listing.Next", string(p.by), err)
}

// stream reads a directory, page by page, in a goroutine of its own: pages come
// in one after the other without being asked for.
type stream struct {
	r     *Reader
	dir   ids.Object
	terms cue.Terms
	most  int // bytes pushed at once
	stop  context.CancelFunc
	ready chan struct{} // capacity 1: something changed

	mu     sync.Mutex // guards below
	pages  []*page
	queued int // bytes in pages
	number uint64
	pushed uint32     // pages of the call under way that came
	mark   names.Mark // of that call
	after  []byte     // the last name of the last page taken
	done   bool
	err    error
	room   chan struct{} // capacity 1: a page was taken

	// What came since it was noted last, for traces.
	begun      bool // something of the call under way came
	wan, local int
	bytes      int
}

func (s *stream) run(ctx context.Context, who mount.Caller) {
	for {
		more, err := s.ask(ctx, who)
		s.mu.Lock()
		s.done, s.err = err != nil || !more, err
		done := s.done
		s.mu.Unlock()
		signal(s.ready)
		if done || !s.wait(ctx) {
			return
		}
	}
}

// wait waits until few pages are left; false: the listing has ended.
func (s *stream) wait(ctx context.Context) bool {
	for {
		s.mu.Lock()
		low := s.queued <= s.most/4
		s.mu.Unlock()
		if low {
			return ctx.Err() == nil
		}
		select {
		case <-s.room:
		case <-ctx.Done():
			return false
		}
	}
}

// ask sends one List call and takes its answer behind what was pushed before.
func (s *stream) ask(ctx context.Context, who mount.Caller) (more bool, err error) {
	ctx, done := timeouts.Within(ctx, s.terms)
	defer done()
	part, over := timeouts.ForOwn(ctx)
	_ = s.r.opt.Publish(part, s.dir) // what is refused is not there
	over()
	var resp *pb.ListResponse
	var by ids.Node
	by, err = s.r.opt.Ask(ctx, who, s.dir, func(h *pb.ReadHeader) (*pb.ListRequest, *pb.ListResponse) {
		resp = &pb.ListResponse{}
		return s.question(h), resp
	})
	s.r.streams.remove(s)
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil {
		return false, err
	}
	if resp.Pushed != s.pushed { // some were lost with a connection: they are asked for again
		if s.pushed == 0 {
			s.most = 0 // one by one
		}
		return true, nil
	}
	size := proto.Size(resp)
	s.cameLocked(by, size)
	if len(resp.Entries) > 0 || !resp.More {
		s.addLocked(&page{resp: resp, size: size, by: by, mark: s.mark})
	}
	return resp.More, nil
}

// question builds the call of one attempt, behind all that has come.
func (s *stream) question(h *pb.ReadHeader) *pb.ListRequest {
	number := s.r.streams.put(s)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.number, s.pushed, s.begun = number, 0, false
	s.mark = s.r.opt.Names.MarkDir(s.dir)
	after := s.after
	if n := len(s.pages); n > 0 && s.pages[n-1].decode() == nil {
		after = last(s.pages[n-1].resp, after)
	}
	h.Ticket = s.r.opt.Tickets.Of(s.dir).Reached
	return &pb.ListRequest{Header: h, Dir: uint64(s.dir), After: after, Limit: pageEntries, Stream: number, PushBytes: uint32(s.most)}
}

// last is the last name of a page, or what was before it.
func last(resp *pb.ListResponse, before []byte) []byte {
	if n := len(resp.Entries); n > 0 {
		return resp.Entries[n-1].Name
	}
	return before
}

// addLocked queues a page; the mutex is held.
func (s *stream) addLocked(p *page) {
	s.pages = append(s.pages, p)
	s.queued += p.size
	signal(s.ready)
}

// cameLocked notes what arrived, for traces; the mutex is held.
func (s *stream) cameLocked(by ids.Node, size int) {
	s.bytes += size
	if s.begun {
		return
	}
	if s.begun = true; s.r.opt.IsNear(by) {
		s.local++
	} else {
		s.wan++
	}
}

func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// take returns the next page, waiting for it. After the last it may not be
// called again.
func (s *stream) take(ctx context.Context) (*page, error) {
	o := trace.From(ctx)
	mark := o.Begin()
	for {
		p, done, err := s.next(o, mark)
		switch {
		case p != nil:
			signal(s.room)
			return p, err
		case done && err == nil:
			return nil, fault.E(fault.Stale, op, s.dir.String(), "the listing has ended")
		case done:
			return nil, err
		}
		select {
		case <-s.ready:
		case <-ctx.Done():
			return nil, fault.Wrap(fault.Interrupted, op, s.dir.String(), ctx.Err())
		case <-s.r.opt.Context.Done():
			return nil, fault.E(fault.Closed, op, s.dir.String(), "")
		}
	}
}

// next takes the page that has come, if there is one. Done says that none is to
// come.
func (s *stream) next(o *trace.Operation, mark trace.Mark) (p *page, done bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.pages) > 0 || s.done {
		o.End(mark, trace.Call{Method: method.Name(method.List), Class: wire.Operation.String(), WAN: s.wan, Local: s.local, In: s.bytes})
		s.wan, s.local, s.bytes = 0, 0, 0
	}
	if len(s.pages) == 0 {
		return nil, s.done, s.err
	}
	p = s.pages[0]
	s.pages = s.pages[1:]
	s.queued -= p.size
	err = p.decode()
	s.after = last(p.resp, s.after)
	return p, false, err
}
