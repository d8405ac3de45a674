package reads

import (
	"context"
	"fmt"
	"slices"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/api/gather"
	"cartwheel.dev/node/api/view"
	"cartwheel.dev/node/protocol/status"
)

// ListOperations finds the work under way in the rows: each junior gets a copy or
// catches up. How far it is, its own list and the active's tell.
func (s *Reads) ListOperations(ctx context.Context, _ *view.None) (*view.Answer[view.List[view.Operation]], error) {
	var rows []geoconfig.SliceRow
	s.index.Each(func(r *geoconfig.SliceRow) {
		if slices.ContainsFunc(r.Members, func(m geoconfig.Member) bool { return m.State.Junior() }) {
			rows = append(rows, *r)
		}
	})
	nodes := s.o.Directory.Nodes()
	said := map[ids.Node]gather.Reading[[]status.Slice]{}
	f := s.Fresh()
	if len(rows) > 0 && s.index.Len() <= maxListed {
		said = s.lists.All(ctx, idsOf(nodes))
		f = freshOf(s, nodes, said)
	}
	var out []view.Operation
	for i := range rows {
		for _, m := range rows[i].Members {
			if m.State.Junior() {
				out = append(out, s.viewOperation(&rows[i], m, said))
			}
		}
	}
	return view.ListOf(out, f), nil
}

func (s *Reads) viewOperation(r *geoconfig.SliceRow, m geoconfig.Member, said map[ids.Node]gather.Reading[[]status.Slice]) view.Operation {
	site := s.index.SiteOf(m.Node)
	o := view.Operation{Kind: "catch_up", Slice: r.ID, Node: m.Node, Site: site, Text: fmt.Sprintf("the node at %s catches up with slice %d", site, r.ID)}
	if m.State == geoconfig.Migrating {
		o.Kind, o.Text = "copy", fmt.Sprintf("the node at %s gets a copy of slice %d", site, r.ID)
	}
	of := func(id ids.Node) *status.Slice {
		list := said[id]
		i := slices.IndexFunc(list.Value, func(x status.Slice) bool { return x.ID == r.ID })
		if i < 0 || list.Err != nil {
			return nil
		}
		return &list.Value[i]
	}
	active, own := of(r.Active), of(m.Node)
	if active != nil {
		o.TotalBytes = active.StoredBytes
	}
	if active != nil && own != nil && active.Commit >= own.Applied {
		o.Behind = new(int64(active.Commit - own.Applied))
	}
	return o
}
