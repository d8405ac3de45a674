package cluster

import (
	"context"
	"encoding/json"
	"sort"

	"google.golang.org/protobuf/proto"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/protocol/pb"
	"cartwheel.dev/node/server/identity"
)

// Changed returns a channel that is closed at the next change of any row.
func (d *Directory) Changed() <-chan struct{} {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.changed
}

// Cluster returns the cluster's row; ID "" while it is not known.
func (d *Directory) Cluster() geoconfig.Cluster {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.rows.Cluster == nil {
		return geoconfig.Cluster{}
	}
	return *d.rows.Cluster
}

// Revision returns how far the store has been followed.
func (d *Directory) Revision() ids.Revision {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.rows.Revision
}

// Slice returns a slice's row.
func (d *Directory) Slice(id ids.Slice) (geoconfig.SliceRow, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	r, ok := d.slices[id]
	return r.Clone(), ok
}

// Slices returns all slices' rows by ID.
func (d *Directory) Slices() []geoconfig.SliceRow {
	d.mu.Lock()
	defer d.mu.Unlock()
	out := make([]geoconfig.SliceRow, 0, len(d.slices))
	for _, r := range d.slices {
		out = append(out, r.Clone())
	}
	sort.Slice(out, func(i, j int) bool { return out[i].ID < out[j].ID })
	return out
}

// Node returns a node's row.
func (d *Directory) Node(id ids.Node) (geoconfig.Node, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	n, ok := d.nodes[id]
	return n, ok
}

// Nodes returns all nodes' rows by ID.
func (d *Directory) Nodes() []geoconfig.Node {
	d.mu.Lock()
	defer d.mu.Unlock()
	out := make([]geoconfig.Node, 0, len(d.nodes))
	for _, n := range d.nodes {
		out = append(out, n)
	}
	sort.Slice(out, func(i, j int) bool { return out[i].ID < out[j].ID })
	return out
}

// Sites returns all sites' rows by name.
func (d *Directory) Sites() []geoconfig.Site {
	d.mu.Lock()
	defer d.mu.Unlock()
	out := make([]geoconfig.Site, 0, len(d.sites))
	for _, s := range d.sites {
		out = append(out, s)
	}
	sort.Slice(out, func(i, j int) bool { return out[i].Name < out[j].Name })
	return out
}

// Users returns all users' rows by name, those of tokens among them.
func (d *Directory) Users() []geoconfig.User {
	d.mu.Lock()
	defer d.mu.Unlock()
	out := make([]geoconfig.User, 0, len(d.users))
	for _, u := range d.users {
		out = append(out, u)
	}
	sort.Slice(out, func(i, j int) bool { return out[i].Name < out[j].Name })
	return out
}

// User returns the user with a key, given as the key's peer ID.
func (d *Directory) User(key string) (geoconfig.User, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	u, ok := d.users[key]
	return u, ok
}

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
