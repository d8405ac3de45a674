package command

import (
	"cmp"
	"fmt"
	gslices "slices"
	"strings"

	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/protocol/status"
)

// warning is something that an operator should know though all is well.
type warning struct {
	Kind     status.FindingKind `json:"kind"`
	Sites    []ids.Site         `json:"sites"`
	Text     string             `json:"text"`
	Evidence []status.Finding   `json:"evidence"`
}

// warnings joins what the nodes' audits found: one warning for each group of
// sites that are one place, and one for each site that is not. The sites of a
// demo are one place by intent.
func warnings(findings []status.Finding, demo bool) []warning {
	out := []warning{}
	for _, kind := range []status.FindingKind{status.SitesTogether, status.SiteApart} {
		if demo && kind == status.SitesTogether {
			continue
		}
		var groups []warning
		for _, f := range findings {
			if f.Kind == kind {
				groups = group(groups, f)
			}
		}
		for i := range groups {
			groups[i].finish()
		}
		gslices.SortFunc(groups, func(a, b warning) int { return cmp.Compare(a.Sites[0], b.Sites[0]) })
		out = append(out, groups...)
	}
	return out
}

// group adds a finding to the groups that share a site with it, which become one.
func group(groups []warning, f status.Finding) []warning {
	merged := warning{Kind: f.Kind, Sites: []ids.Site{f.Site, f.OtherSite}, Evidence: []status.Finding{f}}
	var out []warning
	for _, g := range groups {
		if gslices.Contains(g.Sites, f.Site) || gslices.Contains(g.Sites, f.OtherSite) {
			merged.Sites = append(merged.Sites, g.Sites...)
			merged.Evidence = append(merged.Evidence, g.Evidence...)
		} else {
			out = append(out, g)
		}
	}
	return append(out, merged)
}

func (w *warning) finish() {
	gslices.Sort(w.Sites)
	w.Sites = gslices.Compact(w.Sites)
	// The best evidence first: the least of two sites' round trips, the most of one's.
	gslices.SortFunc(w.Evidence, func(a, b status.Finding) int {
		far := cmp.Compare(a.LeastNS, b.LeastNS)
		if w.Kind == status.SiteApart {
			far = -far
		}
		return cmp.Or(far, cmp.Compare(a.Node, b.Node), cmp.Compare(a.Other, b.Other))
	})
	best := w.Evidence[0]
	evidence := fmt.Sprintf("%s at %s and %s at %s: %s at the least, of %d samples, the last %s ago", short(best.Node), best.Site, short(best.Other), best.OtherSite,
		milliseconds(best.LeastNS), best.Samples, ago(best.AgeNS))
	if more := len(w.Evidence) - 1; more > 0 {
		evidence += fmt.Sprintf("; and %d more", more)
	}
	if w.Kind == status.SiteApart {
		w.Text = fmt.Sprintf("the nodes of site %s are not at one place (%s)", w.Sites[0], evidence)
		return
	}
	var names []string
	for _, s := range w.Sites {
		names = append(names, string(s))
	}
	last := len(names) - 1
	w.Text = fmt.Sprintf("the sites %s and %s are one failure domain: nodes of different ones are under a millisecond apart (%s)",
		strings.Join(names[:last], ", "), names[last], evidence)
}
