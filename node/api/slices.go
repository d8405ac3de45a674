package api

import (
	"context"
	"encoding/base64"
	"fmt"
	"strings"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
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

// listSlices answers with a page of the index. It asks no node but for who answers.
func (s *Server) listSlices(ctx context.Context, in *slicesInput) (*answer[List[Slice]], error) {
	nodes, said := s.nodeStates(ctx)
	q := query{state: in.State, sort: in.Sort, site: ids.Site(in.Site), home: ids.Site(in.Home), node: ids.Node(in.Node), text: in.Text,
		descending: in.Descending, limit: in.Limit, isUp: up(said)}
	if in.Cursor != "" {
		if err := q.resume(in.Cursor); err != nil {
			return nil, err
		}
	}
	p, err := s.index.find(ctx, q)
	if err != nil {
		return nil, fault.Wrap(fault.TimedOut, "api.listSlices", "", err)
	}
	out := make([]Slice, len(p.rows))
	for i := range p.rows {
		out[i] = s.viewSlice(&p.rows[i], q.isUp)
	}
	body := List[Slice]{Items: out, Total: p.total, Revision: p.revision, Freshness: freshOf(s, nodes, said)}
	if p.more {
		body.Next = q.cursor(&p.rows[len(p.rows)-1])
	}
	return &answer[List[Slice]]{Body: body}, nil
}

// cursor names the place behind a row.
func (q *query) cursor(r *geoconfig.SliceRow) string {
	return base64.RawURLEncoding.EncodeToString(fmt.Appendf(nil, "%d %d %t %s", rowKey(q.sort, r), r.ID, q.descending, q.sort))
}

// resume has the query begin behind the place that a cursor names.
func (q *query) resume(cursor string) error {
	const op fault.Op = "api.resume"
	raw, err := base64.RawURLEncoding.DecodeString(cursor)
	if err != nil {
		return fault.E(fault.Invalid, op, "cursor", "is not one that this API gave: begin at the first page")
	}
	var descending bool
	var sort string
	if _, err := fmt.Sscanf(string(raw), "%d %d %t %s", &q.afterKey, &q.afterID, &descending, &sort); err != nil {
		return fault.E(fault.Invalid, op, "cursor", "is not one that this API gave: begin at the first page")
	}
	if descending != q.descending || sort != q.sort {
		return fault.E(fault.Invalid, op, "cursor", "is of a list in another order: begin at the first page")
	}
	q.hasAfter = true
	return nil
}

type sliceInput struct {
	ID uint32 `path:"id" minimum:"1" maximum:"16777215"`
}

// getSlice shows one slice, with its active's word where that is to be had.
func (s *Server) getSlice(ctx context.Context, in *sliceInput) (*answer[SliceDetail], error) {
	row, ok := s.o.Directory.Slice(ids.Slice(in.ID))
	if !ok {
		return nil, fault.E(fault.NotFound, "api.getSlice", geoconfig.SliceKey(ids.Slice(in.ID)).String(), "is no slice that this node knows")
	}
	nodes, said := s.nodeStates(ctx)
	d := SliceDetail{Slice: s.viewSlice(&row, up(said)), Freshness: freshOf(s, nodes, said)}
	d.WhyHere = whyHere(&d.Slice)
	if s.index.len() <= maxListed {
		list := s.lists.all(ctx, []ids.Node{row.Active})[row.Active]
		for _, x := range list.value {
			if x.ID == row.ID && list.err == nil {
				d.Live = &SliceLive{AsOfAt: list.at, Serving: x.Serving, Why: x.Why, Commit: x.Commit, Objects: x.Objects, StoredBytes: x.StoredBytes}
			}
		}
	}
	return &answer[SliceDetail]{etag(row.Revision), d}, nil
}

// whyHere has a reason for each copy: the rules by which nodes choose places, as
// the row shows them.
func whyHere(x *Slice) []Reason {
	out := []Reason{}
	seen := map[ids.Site]bool{}
	for _, m := range x.Members {
		var parts []string
		switch {
		case m.Active && m.Site == x.Policy.Home:
			parts = append(parts, fmt.Sprintf("it is the active, at the slice's home site %s", m.Site))
		case m.Active:
			parts = append(parts, fmt.Sprintf("it is the active, away from the home site %s: it goes back once a member there is up to date and reachable", x.Policy.Home))
		case m.Site == x.Policy.Home:
			parts = append(parts, "it stands at the slice's home site, and can take over there")
		case !seen[m.Site]:
			parts = append(parts, fmt.Sprintf("the policy asks for copies at %s sites, and no copy before it is at %s", sitesWanted(x.Policy), m.Site))
		default:
			parts = append(parts, fmt.Sprintf("the policy asks for %d copies", x.Policy.Level))
		}
		if why, ok := memberWords[m.State]; ok {
			parts = append(parts, why)
		}
		seen[m.Site] = true
		out = append(out, Reason{Node: m.Node, Site: m.Site, Text: strings.Join(parts, "; ")})
	}
	return out
}

// sitesWanted says at how many sites copies are to be.
func sitesWanted(p Policy) string {
	if p.Sites == 0 {
		return fmt.Sprintf("as many as %d", p.Level)
	}
	return fmt.Sprint(p.Sites)
}

// memberWords say what the states mean in which a member is not up to date.
var memberWords = map[string]string{
	"recovering": "it was away and catches up",
	"migrating":  "it is new to the slice and gets its state",
	"failed":     "it does not take part now",
}
