package api

import (
	"context"
	"slices"
	"strings"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/api/view"
	"cartwheel.dev/node/drain"
	"cartwheel.dev/node/geo/changes"
	"cartwheel.dev/node/policy"
)

// drainBody says how a drain begins.
type drainBody struct {
	DryRun bool `json:"dry_run,omitempty" doc:"Only say what stands in the way."`
	Force  bool `json:"force,omitempty" doc:"Begin although something stands in the way."`
}

type drainNodeInput struct {
	ChangeHeaders
	ID   string `path:"id" maxLength:"128"`
	Body drainBody
}

// drainNode has a node's slices leave it. If-Match is about the node's row, which
// the node itself renews from time to time.
func (s *Server) drainNode(ctx context.Context, in *drainNodeInput) (*view.Answer[view.DrainVerdict], error) {
	o, err := in.order(ctx, s, in.Body)
	if err != nil {
		return nil, err
	}
	return s.drain(ctx, o, []ids.Node{ids.Node(in.ID)}, in.Body)
}

func (s *Server) undrainNode(ctx context.Context, in *struct {
	ChangeHeaders
	ID string `path:"id" maxLength:"128"`
}) (*done, error) {
	o, err := in.order(ctx, s, nil)
	if err != nil {
		return nil, err
	}
	row := geoconfig.Node{ID: ids.Node(in.ID)}
	return changed(row.Key(), drain.Set(ctx, s.o.Admin, o, []ids.Node{row.ID}, false))
}

type drainSiteInput struct {
	ChangeHeaders
	Name string `path:"name" maxLength:"63"`
	Body drainBody
}

// drainSite has the slices leave all nodes that stand at a site.
func (s *Server) drainSite(ctx context.Context, in *drainSiteInput) (*view.Answer[view.DrainVerdict], error) {
	o, nodes, err := s.siteOrder(ctx, &in.ChangeHeaders, in.Name, in.Body)
	if err != nil {
		return nil, err
	}
	return s.drain(ctx, o, nodes, in.Body)
}

func (s *Server) undrainSite(ctx context.Context, in *named) (*done, error) {
	o, nodes, err := s.siteOrder(ctx, &in.ChangeHeaders, in.Name, nil)
	if err != nil {
		return nil, err
	}
	row := geoconfig.Site{Name: ids.Site(in.Name)}
	return changed(row.Key(), drain.Set(ctx, s.o.Admin, o, nodes, false))
}

// siteOrder makes an order about the nodes of a site. If-Match is about the site's
// row, so it is looked at here: the order changes the nodes' rows.
func (s *Server) siteOrder(ctx context.Context, h *ChangeHeaders, name string, words any) (changes.Order, []ids.Node, error) {
	const op fault.Op = "api.siteOrder"
	o, err := h.order(ctx, s, words)
	if err != nil {
		return o, nil, err
	}
	sites := s.o.Directory.Sites()
	i := slices.IndexFunc(sites, func(x geoconfig.Site) bool { return string(x.Name) == name })
	if i < 0 {
		return o, nil, fault.E(fault.NotFound, op, name, "is no site of the cluster")
	}
	if o.Match != 0 && o.Match != sites[i].Revision {
		return o, nil, fault.Errorf(fault.Conflict, op, sites[i].Key().String(), "has revision %d by now", sites[i].Revision)
	}
	o.Match = 0
	var nodes []ids.Node
	for _, n := range s.o.Directory.Nodes() {
		if string(n.Site) == name {
			nodes = append(nodes, n.ID)
		}
	}
	if len(nodes) == 0 {
		return o, nil, fault.E(fault.NotFound, op, name, "has no nodes")
	}
	return o, nodes, nil
}

// drain checks, and orders where nothing stands in the way or the caller forces it.
// Nodes that are being drained already are so whatever stands in the way.
func (s *Server) drain(ctx context.Context, o changes.Order, nodes []ids.Node, how drainBody) (*view.Answer[view.DrainVerdict], error) {
	v, err := s.reads.CheckDrain(ctx, nodes)
	if err != nil {
		return nil, err
	}
	answer := &view.Answer[view.DrainVerdict]{Body: view.OfVerdict(&v, how.DryRun)}
	if how.DryRun {
		return answer, nil
	}
	if len(v.Obstacles) > 0 && !how.Force && !s.areDraining(nodes) {
		return nil, fault.Errorf(fault.Busy, "api.drain", drainSubject(nodes), "%s; or begin all the same with force", v.Obstacles[0].Text)
	}
	return answer, drain.Set(ctx, s.o.Admin, o, nodes, true)
}

func (s *Server) areDraining(nodes []ids.Node) bool {
	return !slices.ContainsFunc(nodes, func(id ids.Node) bool {
		n, _ := s.o.Directory.Node(id)
		return !n.Draining
	})
}

func drainSubject(nodes []ids.Node) string {
	var out []string
	for _, id := range nodes {
		out = append(out, "nodes/"+string(id))
	}
	return strings.Join(out, ", ")
}

// setPolicy gives a slice another policy. What the body leaves out stays.
func (s *Server) setPolicy(ctx context.Context, in *struct {
	ChangeHeaders
	ID   uint32 `path:"id" minimum:"1" maximum:"16777215"`
	Body struct {
		Level *int    `json:"level,omitempty" minimum:"1" maximum:"16" doc:"How many copies it has."`
		Sites *int    `json:"sites,omitempty" minimum:"0" maximum:"16" doc:"At how many sites they are; 0: as many as there are."`
		Home  *string `json:"home,omitempty" maxLength:"63" doc:"The site where it is led."`
	}
}) (*done, error) {
	b := &in.Body
	if b.Level == nil && b.Sites == nil && b.Home == nil {
		return nil, fault.E(fault.Invalid, "api.setPolicy", "body", "changes nothing: name level, sites or home")
	}
	o, err := in.order(ctx, s, in.Body)
	if err != nil {
		return nil, err
	}
	change := policy.Change{Level: b.Level, Sites: b.Sites}
	if b.Home != nil {
		change.Home = new(ids.Site(*b.Home))
	}
	_, err = policy.Set(ctx, s.o.Admin, o, ids.Slice(in.ID), change)
	return changed(geoconfig.SliceKey(ids.Slice(in.ID)), err)
}
