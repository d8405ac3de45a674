package server

import (
	"context"
	"encoding/json"

	"google.golang.org/protobuf/proto"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/protocol/method"
	"cartwheel.dev/node/protocol/pb"
	"cartwheel.dev/node/protocol/status"
	"cartwheel.dev/node/server/admin"
	"cartwheel.dev/node/server/cluster"
	"cartwheel.dev/node/server/identity"
	"cartwheel.dev/node/server/usage"
	"cartwheel.dev/node/wire"
)

// Overseer asks this node and the others of the cluster what they know. It is for
// whoever shows a cluster to people. It is safe for concurrent use until the node
// closes.
type Overseer struct {
	s       *Server
	reports *admin.Reports
	orders  *admin.Orders
	teller  *usage.Teller
}

// Overseer returns one that asks in the node's name.
func (s *Server) Overseer() *Overseer {
	return &Overseer{s, s.newReports(), s.newOrders(), s.answers.teller}
}

// Directory is the node's copy of the configuration.
func (s *Server) Directory() *cluster.Directory { return s.directory }

// GeoConfig is the configuration store, as a node may use it. The node closes it.
func (s *Server) GeoConfig() geoconfig.Store { return s.geo }

const opOversee fault.Op = "server.Overseer"

// Status asks a node for what it says of itself.
func (o *Overseer) Status(ctx context.Context, id ids.Node) (status.Node, error) {
	var out status.Node
	if id == o.s.id {
		return o.reports.Node(ctx), nil
	}
	var a pb.StatusResponse
	if err := o.call(ctx, id, method.Status, &pb.StatusRequest{}, &a); err != nil {
		return out, err
	}
	return out, fault.Wrap(fault.Corrupt, opOversee, string(id), json.Unmarshal(a.Status, &out))
}

// Net asks a node for its distances, without measuring any.
func (o *Overseer) Net(ctx context.Context, id ids.Node) (status.Net, error) {
	return o.net(ctx, id, &pb.NetRequest{})
}

// Probe has a node measure the round trips to others, so many to each, and tell what
// it knows of them then. No others: all.
func (o *Overseer) Probe(ctx context.Context, from ids.Node, to []ids.Node, times int) (status.Net, error) {
	req := &pb.NetRequest{Probes: uint32(times)}
	for _, id := range to {
		req.Nodes = append(req.Nodes, string(id))
	}
	return o.net(ctx, from, req)
}

func (o *Overseer) net(ctx context.Context, id ids.Node, req *pb.NetRequest) (status.Net, error) {
	var out status.Net
	a := &pb.NetResponse{}
	if id == o.s.id {
		own, err := o.s.net.survey.Net(ctx, &identity.Who{}, req)
		if err != nil {
			return out, err
		}
		a = own.(*pb.NetResponse)
	} else if err := o.call(ctx, id, method.Net, req, a); err != nil {
		return out, err
	}
	return out, fault.Wrap(fault.Corrupt, opOversee, string(id), json.Unmarshal(a.Net, &out))
}

// Slices asks a node for the slices as it sees them.
func (o *Overseer) Slices(ctx context.Context, id ids.Node) ([]status.Slice, error) {
	a := &pb.SliceListResponse{}
	if id == o.s.id {
		own, err := o.reports.SliceList(ctx, nil, nil)
		if err != nil {
			return nil, err
		}
		a = own.(*pb.SliceListResponse)
	} else if err := o.call(ctx, id, method.SliceList, &pb.SliceListRequest{}, a); err != nil {
		return nil, err
	}
	out := make([]status.Slice, len(a.Slices))
	for i, data := range a.Slices {
		if err := json.Unmarshal(data, &out[i]); err != nil {
			return nil, fault.Wrap(fault.Corrupt, opOversee, string(id), err)
		}
	}
	return out, nil
}

func (o *Overseer) call(ctx context.Context, id ids.Node, m wire.Method, request, answer proto.Message) error {
	body, err := o.s.net.host.Call(ctx, string(id), wire.Operation, m, request, nil, answer)
	if body != nil {
		body.Release()
	}
	return err
}

// HandOver has a slice's active hand it over to another member; empty: to any that
// is up to date. It answers once the row names another active.
func (o *Overseer) HandOver(ctx context.Context, row geoconfig.SliceRow, to ids.Node) error {
	req := &pb.HandOverRequest{Slice: uint32(row.ID), To: string(to)}
	if row.Active == o.s.id {
		_, err := o.orders.HandOver(ctx, o.self(), req)
		return err
	}
	return o.call(ctx, row.Active, method.HandOver, req, &pb.HandOverResponse{})
}

// Clients asks a node for the clients that are connected to it, at most
// admin.MaxClients.
func (o *Overseer) Clients(ctx context.Context, id ids.Node) ([]status.Client, error) {
	if id == o.s.id {
		return o.reports.Clients(admin.MaxClients), nil
	}
	var a pb.StatusResponse
	if err := o.call(ctx, id, method.Status, &pb.StatusRequest{Clients: admin.MaxClients}, &a); err != nil {
		return nil, err
	}
	var out status.Node
	err := json.Unmarshal(a.Status, &out)
	return out.Clients, fault.Wrap(fault.Corrupt, opOversee, string(id), err)
}

// Ready answers nil while the node's loop takes turns.
func (o *Overseer) Ready(ctx context.Context) error { return o.s.Figures().Turn(ctx) }
