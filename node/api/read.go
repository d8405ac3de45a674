package api

import (
	"context"
	"fmt"
	"net/url"
	"time"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/protocol/status"
)

// readyLimit bounds how long a node may take to say that it goes on.
const readyLimit = 2 * time.Second

func etag(r ids.Revision) string { return fmt.Sprintf(`"%d"`, r) }

func (s *Server) getHealth(context.Context, *none) (*answer[Health], error) {
	return &answer[Health]{Body: Health{"ok"}}, nil
}

func (s *Server) getReadiness(ctx context.Context, _ *none) (*answer[Health], error) {
	ctx, cancel := context.WithTimeout(ctx, readyLimit)
	defer cancel()
	if err := s.o.Asker.Ready(ctx); err != nil {
		return nil, &fault.Error{Kind: fault.Again, Op: "api.getReadiness", Subject: "nodes/" + string(s.o.Self), Public: "the node does not serve now", Cause: err}
	}
	return &answer[Health]{Body: Health{"ok"}}, nil
}

// listOf is a whole list in one page.
func listOf[T any](s *Server, items []T, f Freshness) *answer[List[T]] {
	return &answer[List[T]]{Body: List[T]{Items: notNil(items), Total: len(items), Revision: f.GeoConfig.Revision, Freshness: f}}
}

// nodeStates asks all nodes how they are.
func (s *Server) nodeStates(ctx context.Context) ([]geoconfig.Node, map[ids.Node]reading[status.Node]) {
	nodes := s.o.Directory.Nodes()
	return nodes, s.statuses.all(ctx, idsOf(nodes))
}

// up returns what tells whether a node answers.
func up(said map[ids.Node]reading[status.Node]) func(ids.Node) bool {
	return func(id ids.Node) bool {
		r, ok := said[id]
		return ok && r.err == nil
	}
}

func (s *Server) listNodes(ctx context.Context, _ *none) (*answer[List[Node]], error) {
	nodes, said := s.nodeStates(ctx)
	var out []Node
	for _, n := range nodes {
		out = append(out, viewNode(n, said[n.ID]))
	}
	return listOf(s, out, freshOf(s, nodes, said)), nil
}

type nodeInput struct {
	ID string `path:"id" maxLength:"128"`
}

func (s *Server) getNode(ctx context.Context, in *nodeInput) (*answer[Node], error) {
	n, ok := s.o.Directory.Node(ids.Node(in.ID))
	if !ok {
		return nil, fault.E(fault.NotFound, "api.getNode", "nodes/"+in.ID, "is no node of the roster")
	}
	_, said := s.nodeStates(ctx)
	return &answer[Node]{etag(n.Revision), viewNode(n, said[n.ID])}, nil
}

// viewSites joins the sites' rows with what stands there.
func (s *Server) viewSites(ctx context.Context) ([]Site, Freshness) {
	nodes, said := s.nodeStates(ctx)
	var out []Site
	at := map[ids.Site]int{}
	for _, x := range s.o.Directory.Sites() {
		at[x.Name] = len(out)
		out = append(out, Site{Name: x.Name, Location: x.Location, Nodes: []ids.Node{}, Revision: x.Revision})
	}
	isUp := up(said)
	for _, n := range nodes {
		i, ok := at[n.Site]
		if !ok {
			continue
		}
		x := &out[i]
		x.Nodes = append(x.Nodes, n.ID)
		if isUp(n.ID) {
			x.NodesUp++
		}
		if r := said[n.ID]; !r.at.IsZero() {
			x.CapacityBytes, x.UsedBytes = x.CapacityBytes+r.value.CapacityBytes, x.UsedBytes+r.value.UsedBytes
		}
	}
	s.index.each(func(r *geoconfig.SliceRow) {
		if i, ok := at[s.index.sites[r.Active]]; ok {
			out[i].SlicesActive++
		}
		if i, ok := at[r.Policy.Home]; ok {
			out[i].SlicesHome++
		}
	})
	return out, freshOf(s, nodes, said)
}

func (s *Server) listSites(ctx context.Context, _ *none) (*answer[List[Site]], error) {
	sites, f := s.viewSites(ctx)
	return listOf(s, sites, f), nil
}

type siteInput struct {
	Name string `path:"name" maxLength:"63"`
}

func (s *Server) getSite(ctx context.Context, in *siteInput) (*answer[Site], error) {
	sites, _ := s.viewSites(ctx)
	for _, x := range sites {
		if string(x.Name) == in.Name {
			return &answer[Site]{etag(x.Revision), x}, nil
		}
	}
	return nil, fault.E(fault.NotFound, "api.getSite", "sites/"+url.PathEscape(in.Name), "is no site of the cluster")
}

func (s *Server) listUsers(context.Context, *none) (*answer[List[User]], error) {
	var out []User
	for _, u := range s.o.Directory.Users() {
		if u.Join == nil {
			out = append(out, viewUser(u))
		}
	}
	return listOf(s, out, s.fresh()), nil
}

func (s *Server) listTokens(context.Context, *none) (*answer[List[Token]], error) {
	var out []Token
	now := s.o.Wall()
	for _, u := range s.o.Directory.Users() {
		if u.Join == nil {
			continue
		}
		ends := time.Unix(0, u.Join.ExpiresNS).UTC()
		out = append(out, Token{Name: u.Name, Site: u.Join.Site, ExpiresAt: ends, Expired: !now.Before(ends), Revision: u.Revision})
	}
	return listOf(s, out, s.fresh()), nil
}

func (s *Server) listSettings(context.Context, *none) (*answer[List[Setting]], error) {
	return listOf(s, s.o.Settings, s.fresh()), nil
}

// maxClients bounds the list of clients.
const maxClients = 10_000

func (s *Server) listClients(context.Context, *none) (*answer[List[Client]], error) {
	var out []Client
	for _, w := range s.o.Asker.Clients(maxClients) {
		out = append(out, Client{Node: s.o.Self, Site: s.o.Site, User: w.User, Name: w.Name, From: w.Site})
	}
	return listOf(s, out, s.fresh()), nil
}
