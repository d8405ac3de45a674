package reads

import (
	"context"
	"net/url"
	"time"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/api/gather"
	"cartwheel.dev/node/api/view"
	"cartwheel.dev/node/protocol/status"
)

// readyLimit bounds how long a node may take to say that it goes on.
const readyLimit = 2 * time.Second

// GetHealth says that the process answers.
func (s *Reads) GetHealth(context.Context, *view.None) (*view.Answer[view.Health], error) {
	return &view.Answer[view.Health]{Body: view.Health{Status: "ok"}}, nil
}

// GetReadiness says that the node serves. Errors: Again.
func (s *Reads) GetReadiness(ctx context.Context, _ *view.None) (*view.Answer[view.Health], error) {
	ctx, cancel := context.WithTimeout(ctx, readyLimit)
	defer cancel()
	if err := s.o.Asker.Ready(ctx); err != nil {
		return nil, &fault.Error{Kind: fault.Again, Op: "reads.GetReadiness", Subject: "nodes/" + string(s.o.Self), Public: "the node does not serve now", Cause: err}
	}
	return &view.Answer[view.Health]{Body: view.Health{Status: "ok"}}, nil
}

// nodeStates asks all nodes how they are.
func (s *Reads) nodeStates(ctx context.Context) ([]geoconfig.Node, map[ids.Node]gather.Reading[status.Node]) {
	nodes := s.o.Directory.Nodes()
	return nodes, s.statuses.All(ctx, idsOf(nodes))
}

// up returns what tells whether a node answers.
func up(said map[ids.Node]gather.Reading[status.Node]) func(ids.Node) bool {
	return func(id ids.Node) bool {
		r, ok := said[id]
		return ok && r.Err == nil
	}
}

// ListNodes lists the nodes with their last words.
func (s *Reads) ListNodes(ctx context.Context, _ *view.None) (*view.Answer[view.List[view.Node]], error) {
	nodes, said := s.nodeStates(ctx)
	var out []view.Node
	left := s.leftAt(nodes)
	for _, n := range nodes {
		out = append(out, view.OfNode(n, said[n.ID], left[n.ID]))
	}
	return view.ListOf(out, freshOf(s, nodes, said)), nil
}

// leftAt counts what each node has that is being drained, without the sizes.
func (s *Reads) leftAt(nodes []geoconfig.Node) map[ids.Node]*view.Left {
	left := map[ids.Node]*view.Left{}
	for _, n := range nodes {
		if n.Draining {
			left[n.ID] = &view.Left{}
		}
	}
	if len(left) == 0 {
		return left
	}
	s.index.Each(func(r *geoconfig.SliceRow) {
		for _, m := range r.Members {
			if l := left[m.Node]; l != nil {
				l.Slices++
			}
		}
		if l := left[r.Active]; l != nil {
			l.Active++
		}
	})
	return left
}

type nodeInput struct {
	ID string `path:"id" maxLength:"128"`
}

// GetNode shows a node. Errors: NotFound.
func (s *Reads) GetNode(ctx context.Context, in *nodeInput) (*view.Answer[view.Node], error) {
	n, ok := s.o.Directory.Node(ids.Node(in.ID))
	if !ok {
		return nil, fault.E(fault.NotFound, "reads.GetNode", "nodes/"+in.ID, "is no node of the roster")
	}
	_, said := s.nodeStates(ctx)
	return view.One(n.Revision, view.OfNode(n, said[n.ID], s.leftAt([]geoconfig.Node{n})[n.ID])), nil
}

// viewSites joins the sites' rows with what stands there.
func (s *Reads) viewSites(ctx context.Context) ([]view.Site, view.Freshness) {
	nodes, said := s.nodeStates(ctx)
	var out []view.Site
	at := map[ids.Site]int{}
	for _, x := range s.o.Directory.Sites() {
		at[x.Name] = len(out)
		out = append(out, view.Site{Name: x.Name, Location: x.Location, Nodes: []ids.Node{}, Revision: x.Revision})
	}
	isUp := up(said)
	siteOf := map[ids.Node]ids.Site{}
	for _, n := range nodes {
		siteOf[n.ID] = n.Site
		i, ok := at[n.Site]
		if !ok {
			continue
		}
		x := &out[i]
		x.Nodes = append(x.Nodes, n.ID)
		if isUp(n.ID) {
			x.NodesUp++
		}
		if r := said[n.ID]; !r.At.IsZero() {
			x.CapacityBytes, x.UsedBytes = x.CapacityBytes+r.Value.CapacityBytes, x.UsedBytes+r.Value.UsedBytes
		}
	}
	s.index.Each(func(r *geoconfig.SliceRow) {
		if i, ok := at[siteOf[r.Active]]; ok {
			out[i].SlicesActive++
		}
		if i, ok := at[r.Policy.Home]; ok {
			out[i].SlicesHome++
		}
	})
	return out, freshOf(s, nodes, said)
}

// ListSites lists the sites with what stands there.
func (s *Reads) ListSites(ctx context.Context, _ *view.None) (*view.Answer[view.List[view.Site]], error) {
	sites, f := s.viewSites(ctx)
	return view.ListOf(sites, f), nil
}

type siteInput struct {
	Name string `path:"name" maxLength:"63"`
}

// GetSite shows a site. Errors: NotFound.
func (s *Reads) GetSite(ctx context.Context, in *siteInput) (*view.Answer[view.Site], error) {
	sites, _ := s.viewSites(ctx)
	for _, x := range sites {
		if string(x.Name) == in.Name {
			return view.One(x.Revision, x), nil
		}
	}
	return nil, fault.E(fault.NotFound, "reads.GetSite", "sites/"+url.PathEscape(in.Name), "is no site of the cluster")
}

// ListUsers lists the users' keys.
func (s *Reads) ListUsers(context.Context, *view.None) (*view.Answer[view.List[view.User]], error) {
	var out []view.User
	for _, u := range s.o.Directory.Users() {
		if u.Join == nil {
			out = append(out, view.OfUser(u))
		}
	}
	return view.ListOf(out, s.Fresh()), nil
}

// ListTokens lists the tokens that add nodes.
func (s *Reads) ListTokens(context.Context, *view.None) (*view.Answer[view.List[view.Token]], error) {
	var out []view.Token
	now := s.o.Wall()
	for _, u := range s.o.Directory.Users() {
		if u.Join == nil {
			continue
		}
		ends := time.Unix(0, u.Join.ExpiresNS).UTC()
		out = append(out, view.Token{Name: u.Name, Site: u.Join.Site, ExpiresAt: ends, Expired: !now.Before(ends), Revision: u.Revision})
	}
	return view.ListOf(out, s.Fresh()), nil
}

// ListSettings lists the settings of the answering node.
func (s *Reads) ListSettings(context.Context, *view.None) (*view.Answer[view.List[view.Setting]], error) {
	return view.ListOf(s.o.Settings, s.Fresh()), nil
}

// maxClients bounds the list of clients. Of more, the first ones are listed.
const maxClients = 10_000

// ListClients lists the clients that are connected to each node. A client that is
// connected to several is listed with each.
func (s *Reads) ListClients(ctx context.Context, _ *view.None) (*view.Answer[view.List[view.Client]], error) {
	nodes := s.o.Directory.Nodes()
	said := s.clients.All(ctx, idsOf(nodes))
	var out []view.Client
	total := 0
	for _, n := range nodes {
		list := said[n.ID].Value
		total += len(list)
		for _, c := range list[:min(len(list), maxClients-len(out))] {
			out = append(out, view.Client{Node: n.ID, Site: n.Site, User: c.User, Name: c.Name, From: c.Site})
		}
	}
	a := view.ListOf(out, freshOf(s, nodes, said))
	a.Body.Total = total
	return a, nil
}
