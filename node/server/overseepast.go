package server

import (
	"context"

	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/protocol/method"
	"cartwheel.dev/node/protocol/pb"
	"cartwheel.dev/node/server/identity"
	"cartwheel.dev/node/server/named"
	"cartwheel.dev/node/server/usage"
)

// self is whoever asks this node in its own name.
func (o *Overseer) self() *identity.Who {
	return &identity.Who{User: "node", Trusted: true, Node: true}
}

// Past is the node's list of named snapshots and schedules.
func (o *Overseer) Past() *named.List { return o.s.snapshots }

// Scrub has a node read all that it stores, at a rate in bytes a second; 0: the usual one. It
// returns the round's number. An ordered round that is under way goes on.
func (o *Overseer) Scrub(ctx context.Context, id ids.Node, rate int64) (uint64, error) {
	req, a := &pb.ScrubRequest{RateBytes: uint64(max(rate, 0))}, &pb.ScrubResponse{}
	if id != o.s.id {
		err := o.call(ctx, id, method.Scrub, req, a)
		return a.Round, err
	}
	own, err := o.orders.StartScrub(ctx, o.self(), req)
	if err != nil {
		return 0, err
	}
	return own.(*pb.ScrubResponse).Round, nil
}

// Space asks a node for one page of what holds a slice's space. behind is Next of the page
// before.
func (o *Overseer) Space(ctx context.Context, id ids.Node, slice ids.Slice, behind []byte) (usage.Told, error) {
	req, a := &pb.SpaceRequest{Slice: uint32(slice), Behind: behind}, &pb.SpaceResponse{}
	if id != o.s.id {
		if err := o.call(ctx, id, method.Space, req, a); err != nil {
			return usage.Told{}, err
		}
		return usage.Read(a)
	}
	own, err := o.teller.Space(ctx, o.self(), req)
	if err != nil {
		return usage.Told{}, err
	}
	return usage.Read(own.(*pb.SpaceResponse))
}
