package reads

import (
	"context"
	"slices"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/api/tally"
	"cartwheel.dev/node/api/view"
)

// ListScrubs lists how far the nodes are with reading all that they store. withLost is
// whether lost chunks are named.
func (s *Reads) ListScrubs(ctx context.Context, withLost bool) *view.Answer[view.List[view.Scrub]] {
	nodes, said := s.nodeStates(ctx)
	out := make([]view.Scrub, 0, len(nodes))
	for _, n := range nodes {
		item := view.Scrub{Node: n.ID, Site: n.Site}
		if r := said[n.ID]; !r.At.IsZero() && r.Value.Scrub != nil {
			item.Report = view.OfScrub(r.Value.Scrub, r.At, withLost)
		}
		out = append(out, item)
	}
	return view.ListOf(out, freshOf(s, nodes, said))
}

// GetSpace shows what holds the nodes' disks, and what the newest count found.
func (s *Reads) GetSpace(ctx context.Context, _ *view.None) (*view.Answer[view.Space], error) {
	nodes, said := s.nodeStates(ctx)
	last, now := s.tally.Known()
	out := view.Space{Nodes: make([]view.NodeSpace, 0, len(nodes)), Count: view.OfCount(last), Counting: view.OfCounting(now), Freshness: freshOf(s, nodes, said)}
	for _, n := range nodes {
		item := view.NodeSpace{Node: n.ID, Site: n.Site}
		if r := said[n.ID]; !r.At.IsZero() {
			if item.Disk = view.OfDisk(&r.Value); item.Disk != nil {
				item.AsOfAt = &r.At
				out.Sum.Add(item.Disk)
			}
		}
		out.Nodes = append(out.Nodes, item)
	}
	return &view.Answer[view.Space]{Body: out}, nil
}

// CountSpace begins a count of what holds the space of all slices, and answers how far it is.
// One that is under way goes on. It changes nothing that is kept. Errors: TooLarge, Closed.
func (s *Reads) CountSpace(ctx context.Context, in *view.None) (*view.Answer[view.Space], error) {
	var list []tally.Slice
	s.index.Each(func(r *geoconfig.SliceRow) {
		list = append(list, tally.Slice{ID: r.ID, Copies: s.copiesOf(r)})
	})
	if err := s.tally.Start(list); err != nil {
		return nil, err
	}
	return s.GetSpace(ctx, in)
}

// copiesOf lists the nodes with an up-to-date copy of a slice in the order in which to ask
// them: the answering node, then the active.
func (s *Reads) copiesOf(r *geoconfig.SliceRow) []ids.Node {
	rank := func(id ids.Node) int {
		switch id {
		case s.o.Self:
			return 0
		case r.Active:
			return 1
		}
		return 2
	}
	var out []ids.Node
	for _, m := range r.Members {
		if m.State == geoconfig.Normal {
			out = append(out, m.Node)
		}
	}
	slices.SortStableFunc(out, func(a, b ids.Node) int { return rank(a) - rank(b) })
	return out
}
