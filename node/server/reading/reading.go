// Package reading answers what clients ask about objects, on the goroutines of
// their requests, from the committed state: names, attributes, listings. It
// reads only while the node may act for the slice, which it checks before and
// after. It grants leases before it reads, so that a change that comes between
// revokes them. A Server is safe for concurrent use.
package reading

import (
	"context"
	"encoding/json"
	"time"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/boottime"
	"cartwheel.dev/node/hlc"
	"cartwheel.dev/node/protocol/pb"
	"cartwheel.dev/node/server/operate"
	"cartwheel.dev/node/server/ticket"
	"cartwheel.dev/node/tree"
	"cartwheel.dev/node/wire"
)

// Leases grants sessions what they may cache.
type Leases interface {
	// Grant gives a session a lease on an object, or nil where it cannot have
	// one now: no such session, too many leases, or a change is under way.
	Grant(session uint64, slice ids.Slice, epoch ids.Epoch, object ids.Object, what pb.Grant_What) *pb.Grant
	// Opened notes that a session has an object open: it is asked before the last
	// name goes. It reports false where that is about to happen unasked.
	Opened(session uint64, object ids.Object) bool
	// Shared waits until no other session than this one (0: no session at all) is
	// alone in the directories. Until end is called, none will be.
	Shared(ctx context.Context, session uint64, dirs ...ids.Object) (end func(), err error)
}

// Server reads.
type Server struct {
	Published func(ids.Slice) *operate.Published
	Committed func(ids.Slice) tree.View
	// Side is a slice's copy with what its side log has; nil where there is none.
	Side func(ids.Slice) tree.View
	// Unmerged reports whether a side log has something of an object, or of one of these
	// names in it, that is not merged.
	Unmerged func(o ids.Object, names [][]byte) bool
	Row      func(ids.Slice) (geoconfig.SliceRow, bool)
	Clock    boottime.Func
	HLC      *hlc.Clock
	Leases   Leases
	Tickets  *ticket.Sealer
	// Elsewhere reads the attributes of an object for whose slice another node
	// acts, as of a time where that is not 0.
	Elsewhere func(context.Context, ids.Object, hlc.Time) (*pb.Attr, error)
	Past      Past
	// Heard is how long ago this node heard the active of a slice.
	Heard func(context.Context, ids.Slice) (time.Duration, error)
}

// Past is what a Server needs to read slices as of earlier times. All of it must be set.
type Past struct {
	// View is a slice's versioned keys as of a time.
	View func(ids.Slice, hlc.Time) tree.View
	// Versions gives a key's versions.
	Versions func(ids.Slice) tree.Versions
	// Close returns once no later commit has a time at or before that one.
	Close func(context.Context, ids.Slice, hlc.Time) error
	// Retention is for how long versions are kept in a slice that does not say since
	// when it has them all.
	Retention time.Duration
}

// Asker is who asks, as the connection proves it.
type Asker struct {
	Principal tree.Principal
	Trusted   bool
	Session   uint64 // 0: it wants no leases
	Client    uint64
	Named     bool           // a trusted host says itself that it asks for somebody who is not root
	Holder    *ticket.Holder // for whom tickets are sealed; nil: nodes and trusted hosts, which need none
	Eventual  bool           // it takes what a normal member has, where that does not act for the slice
	AsOf      hlc.Time       // it reads the tree as of this time; 0: the present one
}

// maxNames bounds one walk.
const maxNames = 256

// busyFor is how long a reading waits for the operations that are in its way.
const busyFor = 2 * time.Second

// admit answers with the slice's row unless this node may act for it now, or has
// what the caller takes.
func (s *Server) admit(slice ids.Slice, who *Asker, epoch uint64) (*operate.Published, *pb.Refusal) {
	p := s.Published(slice)
	switch {
	case s.isCopy(who, p):
		return p, nil
	case !p.Serves(s.Clock()):
		return nil, s.refusal(slice, p, fault.NotActive, "this node does not act for the slice now")
	case epoch != 0 && p.Row != nil && ids.Epoch(epoch) != p.Row.Epoch:
		return nil, s.refusal(slice, p, fault.WrongEpoch, "the slice has another epoch")
	}
	return p, nil
}

// isCopy reports whether the caller is answered from what this node has, without
// acting for the slice.
func (s *Server) isCopy(who *Asker, p *operate.Published) bool {
	return who.Eventual && p.IsCopy(s.Clock())
}

// still reports whether what was read under an admission counts.
func (s *Server) still(slice ids.Slice) bool {
	return s.Published(slice).Serves(s.Clock())
}

// Refused answers nil while this node may act for a slice, and a refusal
// otherwise.
func (s *Server) Refused(slice ids.Slice) *pb.Refusal {
	if s.Published(slice).Serves(s.Clock()) {
		return nil
	}
	return s.NotActive(slice)
}

// NotActive is a refusal with the row that says which node acts for a slice.
func (s *Server) NotActive(slice ids.Slice) *pb.Refusal {
	return s.refusal(slice, nil, fault.NotActive, "this node does not act for the slice now")
}

func (s *Server) refusal(slice ids.Slice, p *operate.Published, kind fault.Kind, why string) *pb.Refusal {
	var row *geoconfig.SliceRow
	if p != nil {
		row = p.Row
	}
	if known, ok := s.Row(slice); ok && (row == nil || known.Epoch > row.Epoch) {
		row = &known
	}
	return Refusal(kind, row, why)
}

// Refusal builds a refusal with the row, where one is known.
func Refusal(kind fault.Kind, row *geoconfig.SliceRow, why string) *pb.Refusal {
	r := &pb.Refusal{Kind: uint32(kind), Message: why}
	if row != nil {
		if encoded, err := json.Marshal(row); err == nil { // a row always encodes
			r.Row = encoded
		}
	}
	return r
}

// again runs a reading until no operation is in its way: one over several slices,
// or one that removes what is being opened.
func again(ctx context.Context, read func() error) error {
	err := read()
	if !fault.Is(err, fault.Busy) {
		return err
	}
	limit, cancel := context.WithTimeout(ctx, busyFor)
	defer cancel()
	for wait := time.Millisecond; fault.Is(err, fault.Busy); wait = min(2*wait, 50*time.Millisecond) {
		if err := pause(ctx, limit, wait); err != nil {
			return err
		}
		err = read()
	}
	return err
}

// pause waits without a worker: the operation that is in the way needs workers
// for its steps. It fails at the limit.
func pause(ctx, limit context.Context, wait time.Duration) error {
	resume, full := wire.Yield(ctx)
	if full != nil {
		return full
	}
	defer resume()
	select {
	case <-limit.Done():
		return fault.Wrap(fault.Again, "reading.pause", "", fault.E(fault.Again, "", "", "an operation that is in the way takes long"))
	case <-time.After(wait):
		return nil
	}
}

// header is a request's header, with nothing in it where it has none.
func header(h *pb.ReadHeader) *pb.ReadHeader {
	if h == nil {
		return &pb.ReadHeader{}
	}
	return h
}

// grant adds a lease for the caller's session to grants, where it gets one.
func (s *Server) grant(grants []*pb.Grant, who Asker, p *operate.Published, o ids.Object, what pb.Grant_What) []*pb.Grant {
	if who.Session == 0 || who.AsOf != 0 {
		return grants
	}
	if g := s.Leases.Grant(who.Session, o.Slice(), p.Row.Epoch, o, what); g != nil {
		grants = append(grants, g)
	}
	return grants
}
