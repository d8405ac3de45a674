package cluster

import (
	"context"
	"encoding/json"

	"google.golang.org/protobuf/proto"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/protocol/pb"
	"cartwheel.dev/node/server/identity"
)

// Rows answers a client that asks for rows of the configuration.
func (d *Directory) Rows(_ context.Context, _ *identity.Who, req *pb.RowsRequest) (proto.Message, error) {
	out := &pb.RowsResponse{Revision: uint64(d.Revision()), Cluster: string(d.Cluster().ID)}
	var err error
	add := func(list *[][]byte, row any) {
		encoded, e := json.Marshal(row)
		if e != nil {
			err = e
		}
		*list = append(*list, encoded)
	}
	if req.AllSlices {
		for _, r := range d.Slices() {
			add(&out.Slices, r)
		}
	}
	for _, id := range req.Slices {
		if r, ok := d.Slice(ids.Slice(id)); ok {
			add(&out.Slices, r)
		}
	}
	if req.Nodes {
		for _, n := range d.Nodes() {
			add(&out.Nodes, n)
		}
	}
	if req.Sites {
		for _, x := range d.Sites() {
			add(&out.Sites, x)
		}
	}
	return out, fault.Wrap(fault.Corrupt, "cluster.Rows", "", err)
}
