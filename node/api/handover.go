package api

import (
	"context"
	"fmt"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/api/view"
)

// handOverInput orders that a slice gets another active.
type handOverInput struct {
	ChangeHeaders
	ID   uint32 `path:"id" minimum:"1" maximum:"16777215"`
	Body struct {
		Node string `json:"node,omitempty" maxLength:"128" doc:"The member that becomes the active; absent: the active chooses. An Idempotency-Key needs it."`
	}
}

// handOver has a slice's active hand it over, with a record of who ordered it. A
// repeated order is recorded once, and does nothing where the node that it names is
// the active by now.
func (s *Server) handOver(ctx context.Context, in *handOverInput) (*done, error) {
	const op fault.Op = "api.handOver"
	key, to := geoconfig.SliceKey(ids.Slice(in.ID)), ids.Node(in.Body.Node)
	row, ok := s.o.Directory.Slice(ids.Slice(in.ID))
	if !ok {
		return nil, fault.E(fault.NotFound, op, key.String(), "is no slice that this node knows")
	}
	if _, ok := row.Member(to); to != "" && !ok {
		return nil, fault.E(fault.NotFound, op, in.Body.Node, "is no member of the slice")
	}
	if to == "" && in.IdempotencyKey != "" {
		return nil, fault.E(fault.Invalid, op, "Idempotency-Key", "needs the node's name in the body: otherwise each repetition would choose another one")
	}
	o, err := in.nodeOrder(ctx, s.o.Wall(), in.Body)
	if err != nil {
		return nil, err
	}
	if to != "" && row.Active == to {
		return changed(key, nil)
	}
	if o.Match != 0 && o.Match != row.Revision {
		return nil, fault.Errorf(fault.Conflict, op, key.String(), "has revision %d by now", row.Revision)
	}
	if _, err := o.Apply(ctx, s.o.Store, geoconfig.Batch{}, "slice.hand-over", key, "ordered to "+in.Body.Node); err != nil {
		return nil, &fault.Error{Kind: fault.KindOf(err), Op: op, Subject: key.String(), Cause: err, Public: "the audit log cannot be written, so this is not done: is geo-config there?"}
	}
	return changed(key, s.o.Asker.HandOver(ctx, row, to))
}

// listScrubs lists the nodes' scrubs. What is lost is named to administrators alone: it tells
// what users store.
func (s *Server) listScrubs(ctx context.Context, _ *view.None) (*view.Answer[view.List[view.Scrub]], error) {
	return s.reads.ListScrubs(ctx, principal(ctx).Role >= Administrator), nil
}

type scrubInput struct {
	ChangeHeaders
	ID   string `path:"id" maxLength:"128"`
	Body struct {
		RateBytes int64 `json:"rate_bytes,omitempty" minimum:"0" maximum:"1099511627776" doc:"How much it reads in a second at most; absent: 32 MiB."`
	}
}

// scrubNode has a node read all that it stores, with a record of who ordered it. A repeated
// order is recorded once, and goes on with the round under way.
func (s *Server) scrubNode(ctx context.Context, in *scrubInput) (*view.Answer[view.ScrubBegun], error) {
	const op fault.Op = "api.scrubNode"
	row, ok := s.o.Directory.Node(ids.Node(in.ID))
	if !ok {
		return nil, fault.E(fault.NotFound, op, "nodes/"+in.ID, "is no node of the roster")
	}
	o, err := in.nodeOrder(ctx, s.o.Wall(), in.Body)
	if err != nil {
		return nil, err
	}
	if o.Match != 0 && o.Match != row.Revision {
		return nil, fault.Errorf(fault.Conflict, op, row.Key().String(), "has revision %d by now", row.Revision)
	}
	detail := "ordered"
	if in.Body.RateBytes > 0 {
		detail = fmt.Sprintf("ordered at %d bytes a second", in.Body.RateBytes)
	}
	if _, err := o.Apply(ctx, s.o.Store, geoconfig.Batch{}, "node.scrub", row.Key(), detail); err != nil {
		return nil, &fault.Error{Kind: fault.KindOf(err), Op: op, Subject: row.Key().String(), Cause: err, Public: "the audit log cannot be written, so this is not done: is geo-config there?"}
	}
	round, err := s.o.Asker.Scrub(ctx, row.ID, in.Body.RateBytes)
	if err != nil {
		return nil, err
	}
	return &view.Answer[view.ScrubBegun]{Body: view.ScrubBegun{Node: row.ID, Round: round}}, nil
}
