// Package listing reads directories page by page: it runs ahead of a kernel that
// reads on, keeps the names around the place that the kernel reads at, and learns
// what comes. It hands names over and knows no inode.
package listing

import (
	"context"
	"encoding/binary"

	"cartwheel.dev/clients/cartwheel/tickets"
	"cartwheel.dev/clients/mount"
	"cartwheel.dev/clients/names"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/cue"
	"cartwheel.dev/node/protocol/pb"
	"cartwheel.dev/node/wire"
)

// Pages of listings.
const (
	pageEntries = 2048
	// eagerPages bounds what is read of a directory ahead of being asked for.
	eagerPages = 8
	// maxSorted bounds the names of a known directory that are listed in their
	// order, as nodes list them: files that are read in that order are prefetched.
	maxSorted = 1 << 14
)

// Options set up a Reader. None may be missing.
type Options struct {
	// Context ends with the client, and with it every listing.
	Context context.Context
	Names   *names.Cache
	Tickets *tickets.Table
	// Ask sends a List to the active of a directory, for a caller. build makes
	// the request of each attempt and returns where its answer goes.
	Ask func(ctx context.Context, who mount.Caller, dir ids.Object,
		build func(*pb.ReadHeader) (*pb.ListRequest, *pb.ListResponse)) (ids.Node, error)
	// Publish returns when the active knows all files of a directory that were
	// made here, or refused them.
	Publish func(ctx context.Context, dir ids.Object) error
	// IsNear reports whether a node is near, for traces.
	IsNear func(ids.Node) bool
	// Spawn runs a function in a goroutine that the client joins.
	Spawn func(func()) bool
}

// Reader reads directories. It is safe for use by many goroutines. Locks are
// taken in this order: a Listing, its stream, names. The table of streams has a
// lock that is held over no call. No lock but a Listing's is held while a node is
// asked.
type Reader struct {
	opt     Options
	streams streams
}

// New returns a Reader that reads nothing yet.
func New(o Options) *Reader { return &Reader{opt: o} }

// readOn begins to read a directory behind a name.
func (r *Reader) readOn(who mount.Caller, dir ids.Object, t cue.Terms, after string, most int) *stream {
	ctx, cancel := context.WithCancel(r.opt.Context)
	s := &stream{r: r, dir: dir, terms: t, most: most, stop: cancel, after: []byte(after), ready: make(chan struct{}, 1), room: make(chan struct{}, 1)}
	r.opt.Spawn(func() { s.run(ctx, who) })
	return s
}

// learnPage learns a page. The mark is that of the first one: when the last
// comes and nothing was in between, all is known.
func (r *Reader) learnPage(dir ids.Object, p *page, going bool, first *names.Mark, kept *bool) []names.Named {
	out := make([]names.Named, len(p.resp.Entries))
	if p.resp.Copy.GetAgeNs() > 0 {
		p.mark.OfCopy()
	}
	r.opt.Names.Learn(&p.mark, p.by, p.resp.Grants, func(l *names.Learner) {
		if !going {
			*first = l.Anchor(dir)
		}
		*kept = *kept && l.Unbroken(first, dir)
		for i, e := range p.resp.Entries {
			out[i] = names.Named{Name: string(e.Name), Entry: names.Entry{Object: ids.Object(e.Object), Type: e.Mode}}
			l.Attr(e.Attr, false)
			r.opt.Tickets.Note(ids.Object(e.Object), e.Ticket)
			l.Entry(dir, out[i].Name, out[i].Entry)
		}
		if *kept && !p.resp.More {
			l.Complete(dir)
		}
	})
	return out
}

// Prefetch reads and learns a directory whose names are asked for one by one, as
// far as that is not too much. It blocks until pages come; a directory that may
// not be read is left as it is.
func (r *Reader) Prefetch(ctx context.Context, who mount.Caller, dir ids.Object) {
	s := r.readOn(who, dir, cue.Terms{}, "", eagerBytes)
	defer s.stop()
	var mark names.Mark
	kept := true
	for n := range eagerPages {
		p, err := s.take(ctx)
		if err != nil {
			break // it may not be read: names are asked for one by one
		}
		r.learnPage(dir, p, n > 0, &mark, &kept)
		if !p.resp.More {
			return
		}
	}
	r.opt.Names.Tried(dir)
}

// pageFrame is what stands before a pushed page: the numbers of its stream and
// of the page.
const pageFrame = 12

// Pushed takes a page that a node pushed. It runs on the goroutine that reads
// the connection and does not block. Pages of calls that have ended, or out of
// order, are dropped: they are asked for again.
func (r *Reader) Pushed(m wire.Message) {
	data := m.Payload.Bytes() // left to the garbage collector
	if len(data) < pageFrame {
		return
	}
	number := binary.LittleEndian.Uint64(data)
	r.streams.mu.Lock()
	s := r.streams.by[number]
	r.streams.mu.Unlock()
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.number != number || s.pushed != binary.LittleEndian.Uint32(data[8:]) || s.queued > 2*s.most {
		return
	}
	s.pushed++
	s.cameLocked(ids.Node(m.Peer), len(data))
	s.addLocked(&page{data: data[pageFrame:], size: len(data), by: ids.Node(m.Peer), mark: s.mark})
}
