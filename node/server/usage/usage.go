// Package usage tells operators what holds the space of a slice, from this node's own copy:
// docs/design.md, section 5.1. It reads the slice's rows in pages of a bounded number, one
// page at a time for the whole node, so that the question takes little from other work. It
// keeps nothing between pages and changes nothing. A Teller is safe for concurrent use.
package usage

import (
	"context"
	"encoding/json"
	"time"

	"google.golang.org/protobuf/proto"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/chunk"
	"cartwheel.dev/node/hlc"
	"cartwheel.dev/node/protocol/pb"
	"cartwheel.dev/node/server/identity"
	"cartwheel.dev/node/store/meta"
	"cartwheel.dev/node/tree"
	"cartwheel.dev/node/wire"
)

// MaxRows bounds the rows of one page.
const MaxRows = 2048

// Options are what a Teller is made of. Every field is needed.
type Options struct {
	Self ids.Node
	Row  func(ids.Slice) (geoconfig.SliceRow, bool)
	// Has reports whether this node has a copy of a slice.
	Has func(ids.Slice) bool
	// Committed is what this node's own copy of a slice shows.
	Committed func(ids.Slice) tree.View
	Meta      *meta.DB
	// Length is the length of a chunk, where it is here.
	Length func(chunk.Address) (int, bool)
	// Floor is for how long versions of a slice are retained at least.
	Floor func(*geoconfig.SliceRow) time.Duration
	HLC   *hlc.Clock
}

// Teller answers requests for the space of slices.
type Teller struct {
	o Options
	// turn holds one: the page that is being read.
	turn chan struct{}
}

// New returns a Teller.
func New(o Options) *Teller { return &Teller{o: o, turn: make(chan struct{}, 1)} }

// The kinds of rows that pages go through, in this order. A cursor begins with its kind.
const (
	refs    = 'r'
	dead    = 'd'
	history = 'h'
)

// Space answers with one page of what holds a slice's space. Which chunks users share, and
// how much they delete, is for administrators, trusted hosts and nodes.
func (t *Teller) Space(ctx context.Context, w *identity.Who, req *pb.SpaceRequest) (proto.Message, error) {
	const op fault.Op = "usage.Space"
	if !w.Admin && !w.Trusted && !w.Node {
		return nil, fault.E(fault.Permission, op, "", "what holds the space of slices is told to administrators")
	}
	id := ids.Slice(req.Slice)
	row, ok := t.o.Row(id)
	if !ok {
		return nil, fault.Errorf(fault.NotFound, op, "", "this node knows no slice %d", id)
	}
	if _, member := row.Member(t.o.Self); !member || !t.o.Has(id) {
		return nil, fault.Errorf(fault.NotActive, op, "", "this node has no copy of slice %d; ask %s", id, row.Active)
	}
	if err := t.begin(ctx); err != nil {
		return nil, err
	}
	defer func() { <-t.turn }()
	out := &pb.SpaceResponse{}
	if len(req.Behind) == 0 {
		state, err := tree.ReadState(t.o.Committed(id))
		if err != nil {
			return nil, err
		}
		out.Objects, out.StoredBytes = state.Objects, state.Stored
	}
	limit := int(req.Limit)
	if limit <= 0 || limit > MaxRows {
		limit = MaxRows
	}
	p := page{o: &t.o, row: &row, limit: limit, horizon: horizonAt(t.o.HLC.Now(), t.o.Floor(&row))}
	kept, _, err := tree.Kept(t.o.Committed(id))
	if err != nil {
		return nil, err
	}
	p.keeps = kept
	if out.Next, err = p.read(req.Behind); err != nil {
		return nil, err
	}
	out.Space, err = json.Marshal(p.usage)
	return out, fault.Wrap(fault.Corrupt, op, "", err)
}

// begin waits for the turn of a page, without a worker.
func (t *Teller) begin(ctx context.Context) error {
	select {
	case t.turn <- struct{}{}:
		return nil
	default:
	}
	resume, err := wire.Yield(ctx)
	if err != nil {
		return err
	}
	defer resume()
	select {
	case t.turn <- struct{}{}:
		return nil
	case <-ctx.Done():
		return fault.Wrap(fault.Canceled, "usage.Space", "", ctx.Err())
	}
}

// horizonAt is the time before which nothing is retained. Collection goes by a time of its
// own, which may lag behind this one.
func horizonAt(now hlc.Time, floor time.Duration) hlc.Time {
	if now.Wall().UnixNano() <= int64(floor) {
		return 0
	}
	return hlc.FromWall(now.Wall().Add(-floor))
}

// page is one page as it is read.
type page struct {
	o       *Options
	row     *geoconfig.SliceRow
	limit   int
	horizon hlc.Time
	keeps   []hlc.Time
	usage   tree.Usage
}

// read adds the rows behind a cursor and returns the next one; nil: there are no more.
func (p *page) read(behind []byte) (next []byte, err error) {
	kind, at := byte(refs), []byte(nil)
	if len(behind) > 0 {
		kind, at = behind[0], behind[1:]
	}
	switch kind {
	case refs:
		return p.refs(at)
	case dead:
		return p.dead(at)
	case history:
		return p.history(at)
	}
	return nil, noPlace
}

var noPlace = fault.E(fault.Invalid, "usage.read", "behind", "is no place that an answer named")

func (p *page) refs(at []byte) ([]byte, error) {
	var behind chunk.Address
	if len(at) > 0 {
		var err error
		if behind, err = chunk.AddressOf(at); err != nil {
			return nil, err
		}
	}
	last, err := p.usage.AddRefs(p.o.Committed(p.row.ID), behind, p.horizon, p.keeps, p.limit, p.o.Length)
	if err != nil {
		return nil, err
	}
	if last.IsZero() {
		return []byte{dead}, nil
	}
	return append([]byte{refs}, last[:]...), nil
}

func (p *page) dead(at []byte) ([]byte, error) {
	if len(at) == 0 {
		at = nil
	} else if !tree.IsDead(at) {
		return nil, noPlace
	}
	last, err := p.usage.AddDead(p.o.Committed(p.row.ID), at, p.horizon, p.keeps, p.limit)
	if err != nil {
		return nil, err
	}
	if last == nil {
		return []byte{history}, nil
	}
	return append([]byte{dead}, last...), nil
}

func (p *page) history(at []byte) ([]byte, error) {
	next, err := p.o.Meta.History(p.row.ID, at, p.limit, func(old meta.Version, replaced *meta.Version) error {
		x := tree.Old{Key: old.Key, Value: old.Value, Gone: old.Gone}
		if replaced != nil {
			x.Until = hlc.Time(replaced.Time)
			if !replaced.Gone {
				x.By = replaced.Value
			}
		}
		return p.usage.AddOld(&x, p.horizon)
	})
	if err != nil || next == nil {
		return nil, err
	}
	return append([]byte{history}, next...), nil
}
