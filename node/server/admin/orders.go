package admin

import (
	"context"
	"fmt"
	"math"
	"time"

	"google.golang.org/protobuf/proto"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/drill"
	"cartwheel.dev/node/protocol/pb"
	"cartwheel.dev/node/server/identity"
	"cartwheel.dev/node/server/leadership"
	"cartwheel.dev/node/server/named"
	"cartwheel.dev/node/server/outage"
	"cartwheel.dev/node/wire"
)

// handOverLook is how often a hand-over looks whether the row names another
// active, besides each time that it hears of a change.
const handOverLook = 20 * time.Millisecond

// Orders carry out what administrators order. Every field is needed, and none
// changes.
type Orders struct {
	Self ids.Node
	Row  func(ids.Slice) (geoconfig.SliceRow, bool)
	// Changed returns a channel that is closed when rows change.
	Changed func() <-chan struct{}
	// Pass begins a hand-over; None: it was begun.
	Pass func(ctx context.Context, id ids.Slice, to ids.Node) (fault.Kind, error)
	// Drop empties what the node keeps in memory to serve reads.
	Drop func()
	// Scrub has the node read all that it stores, at a rate in bytes a second, and returns
	// the round's number.
	Scrub func(rate int64) uint64
	// Apply writes to the configuration, Key names a batch of some kind.
	Apply func(context.Context, geoconfig.Batch) (ids.Revision, error)
	Key   func(kind string) string
	Wall  func() time.Time
	// List has the named snapshots.
	List *named.List
	// Stage takes part in drills, and History keeps those that are over.
	Stage   *outage.Stage
	History drill.Store
	// FailedAfter is when other nodes take a silent one's place: no drill may last as long.
	FailedAfter time.Duration
}

// HandOver hands this node's slice over to the member that the request names, or to
// any that is up to date. It answers once the row names another active. An
// administrator may order it, and a node, which may change the row anyway and does
// so for the accounts of its API.
func (s *Orders) HandOver(ctx context.Context, w *identity.Who, req *pb.HandOverRequest) (proto.Message, error) {
	const op fault.Op = "admin.HandOver"
	if err := w.Order(op); err != nil && !w.Node {
		return nil, err
	}
	row, ok := s.Row(ids.Slice(req.Slice))
	if !ok {
		return nil, fault.E(fault.NotFound, op, fmt.Sprintf("slices/%d", req.Slice), "there is no such slice")
	}
	to := ids.Node(req.To)
	if to == "" {
		others := leadership.Successors(row, s.Self)
		if len(others) == 0 {
			return nil, fault.E(fault.NotFound, op, fmt.Sprintf("slices/%d", req.Slice), "no other member is up to date")
		}
		to = others[0]
	}
	var kind fault.Kind
	err := s.record(ctx, w, "slice.hand-over", geoconfig.SliceKey(row.ID).String(), "from "+string(s.Self)+" to "+string(to))
	if err == nil {
		kind, err = s.Pass(ctx, row.ID, to)
	}
	if err == nil && kind != fault.None {
		err = fault.E(kind, op, fmt.Sprintf("slices/%d", req.Slice), notHandedOver(kind))
	}
	if err != nil {
		return nil, err
	}
	if err := s.awaitOther(ctx, row.ID); err != nil {
		return nil, err
	}
	return &pb.HandOverResponse{}, nil
}

// notHandedOver says for people why a slice stays where it is.
func notHandedOver(kind fault.Kind) string {
	switch kind {
	case fault.NotActive:
		return "this node is not the slice's active, so it cannot hand the slice over"
	case fault.Again:
		return "the slice's members are changing: try again in a moment"
	}
	return "that member cannot take the slice over now: name another one that is reachable and up to date"
}

// awaitOther waits, without a worker, until a slice's row names another active
// than this node.
func (s *Orders) awaitOther(ctx context.Context, id ids.Slice) error {
	resume, err := wire.Yield(ctx)
	if err != nil {
		return err
	}
	defer resume()
	for {
		if row, ok := s.Row(id); ok && row.Active != s.Self {
			return nil
		}
		select {
		case <-ctx.Done():
			return fault.Wrap(fault.TimedOut, "admin.awaitOther", "", ctx.Err())
		case <-s.Changed():
		case <-time.After(handOverLook):
		}
	}
}

// DropCaches empties what is kept in memory to serve reads.
func (s *Orders) DropCaches(ctx context.Context, w *identity.Who, _ *pb.DropCachesRequest) (proto.Message, error) {
	if err := w.Order("admin.DropCaches"); err != nil {
		return nil, err
	}
	if err := s.record(ctx, w, "node.drop-caches", geoconfig.Node{ID: s.Self}.Key().String(), ""); err != nil {
		return nil, err
	}
	s.Drop()
	return &pb.DropCachesResponse{}, nil
}

// StartScrub has the node read all that it stores. An administrator may order it, and a
// node, for the accounts of its API.
func (s *Orders) StartScrub(ctx context.Context, w *identity.Who, req *pb.ScrubRequest) (proto.Message, error) {
	const op fault.Op = "admin.StartScrub"
	if err := w.Order(op); err != nil && !w.Node {
		return nil, err
	}
	if req.RateBytes > math.MaxInt64 {
		return nil, fault.E(fault.Invalid, op, "rate_bytes", "is too large")
	}
	detail := ""
	if req.RateBytes > 0 {
		detail = fmt.Sprintf("at %d bytes a second", req.RateBytes)
	}
	if err := s.record(ctx, w, "node.scrub", geoconfig.Node{ID: s.Self}.Key().String(), detail); err != nil {
		return nil, err
	}
	return &pb.ScrubResponse{Round: s.Scrub(int64(req.RateBytes))}, nil
}

// record writes into the audit log that a user ordered something. What cannot
// be recorded is not done.
func (s *Orders) record(ctx context.Context, w *identity.Who, action, subject, detail string) error {
	_, err := s.Apply(ctx, geoconfig.Batch{Key: s.Key("order"), Audit: []geoconfig.AuditRecord{{
		AtNS: s.Wall().UnixNano(), Who: string(w.User), Action: action, Subject: subject, Detail: detail}}})
	if err != nil {
		return &fault.Error{Kind: fault.KindOf(err), Op: "admin.record", Subject: subject, Cause: err,
			Public: "the audit log cannot be written, so this is not done: is geo-config there?"}
	}
	return nil
}
