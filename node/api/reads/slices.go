package reads

import (
	"context"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/api/index"
	"cartwheel.dev/node/api/view"
)

// maxListed is up to how many slices the nodes are asked for their lists, each of
// which has all slices. Above it only the rows are shown.
const maxListed = 5000

// slicesInput says which slices.
type slicesInput struct {
	State      string `query:"state" enum:"protected,under_protected,unavailable" doc:"Only those in this state."`
	Site       string `query:"site" maxLength:"63" doc:"Only those with a member there."`
	Home       string `query:"home" maxLength:"63" doc:"Only those whose home it is."`
	Node       string `query:"node" maxLength:"128" doc:"Only those with this member."`
	Text       string `query:"q" maxLength:"8" doc:"Only those whose number begins with it."`
	Sort       string `query:"sort" enum:"id,epoch,revision,level,missing" default:"id"`
	Descending bool   `query:"descending"`
	Limit      int    `query:"limit" minimum:"1" maximum:"500" default:"100"`
	Cursor     string `query:"cursor" maxLength:"200" doc:"next of the page before, with the same filters and sort."`
}

// ListSlices answers with a page of the index. It asks no node but for who answers.
func (s *Reads) ListSlices(ctx context.Context, in *slicesInput) (*view.Answer[view.List[view.Slice]], error) {
	nodes, said := s.nodeStates(ctx)
	q := index.Query{State: in.State, Sort: in.Sort, Site: ids.Site(in.Site), Home: ids.Site(in.Home), Node: ids.Node(in.Node), Text: in.Text,
		Descending: in.Descending, Limit: in.Limit, IsUp: up(said)}
	if in.Cursor != "" {
		if err := q.Resume(in.Cursor); err != nil {
			return nil, err
		}
	}
	p, err := s.index.Find(ctx, q)
	if err != nil {
		return nil, fault.Wrap(fault.TimedOut, "reads.ListSlices", "", err)
	}
	out := make([]view.Slice, len(p.Rows))
	for i := range p.Rows {
		out[i] = view.OfSlice(&p.Rows[i], q.IsUp, s.index.SiteOf)
	}
	body := view.List[view.Slice]{Items: out, Total: p.Total, Revision: p.Revision, Freshness: freshOf(s, nodes, said)}
	if p.More {
		body.Next = q.Cursor(&p.Rows[len(p.Rows)-1])
	}
	return &view.Answer[view.List[view.Slice]]{Body: body}, nil
}

type sliceInput struct {
	ID uint32 `path:"id" minimum:"1" maximum:"16777215"`
}

// GetSlice shows one slice, with its active's word where that is to be had.
func (s *Reads) GetSlice(ctx context.Context, in *sliceInput) (*view.Answer[view.SliceDetail], error) {
	row, ok := s.o.Directory.Slice(ids.Slice(in.ID))
	if !ok {
		return nil, fault.E(fault.NotFound, "reads.GetSlice", geoconfig.SliceKey(ids.Slice(in.ID)).String(), "is no slice that this node knows")
	}
	nodes, said := s.nodeStates(ctx)
	d := view.SliceDetail{Slice: view.OfSlice(&row, up(said), s.index.SiteOf), Freshness: freshOf(s, nodes, said)}
	d.WhyHere = view.WhyHere(&d.Slice)
	if s.index.Len() <= maxListed {
		list, _ := s.lists.One(ctx, row.Active)
		for _, x := range list.Value {
			if x.ID == row.ID && list.Err == nil {
				d.Live = &view.SliceLive{AsOfAt: list.At, Serving: x.Serving, Why: x.Why, Commit: x.Commit, Objects: x.Objects, StoredBytes: x.StoredBytes}
			}
		}
	}
	return view.One(row.Revision, d), nil
}
