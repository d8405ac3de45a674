package whatif

import (
	"fmt"
	"slices"
	"strings"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/ids"
)

// shortfalls say, after repair, what the nodes cannot do, first of these for each
// slice: end a drain, hold as many copies as its policy names, spread them over as
// many sites. What was so before the changes is left out.
func (c *cluster) shortfalls(before *cluster) []string {
	stuck := map[ids.Site][]ids.Slice{}
	var copies, sites []ids.Slice
	for i := range c.slices {
		row, old := &c.slices[i], &before.slices[i]
		isStuck := false
		for _, m := range row.Members {
			if site := c.siteOf(m.Node); c.drains(m.Node) && !slices.Contains(stuck[site], row.ID) {
				stuck[site], isStuck = append(stuck[site], row.ID), true
			}
		}
		n, at := c.kept(row)
		oldN, oldAt := before.kept(old)
		switch {
		case isStuck: // which says why
		case n < row.Policy.Level && (n < oldN || row.Policy.Level > old.Policy.Level):
			copies = append(copies, row.ID)
		case at < min(oldAt, row.Policy.WantedSites()):
			sites = append(sites, row.ID)
		}
	}
	var out []string
	for _, site := range c.sites() {
		if len(stuck[site]) > 0 {
			out = append(out, fmt.Sprintf("The drain at %s cannot end: no other node can take the copies of %s. Add a node, or lower the level.", site, named(stuck[site])))
		}
	}
	if len(copies) > 0 {
		out = append(out, fmt.Sprintf("Copies of %s stay missing: no node that answers may take them. Add a node, or lower the level.", named(copies)))
	}
	if len(sites) > 0 {
		out = append(out, fmt.Sprintf("Fewer sites than before hold copies of %s, and the policy names more: add a node at another site.", named(sites)))
	}
	return out
}

// drains reports whether a node answers and is being drained.
func (c *cluster) drains(id ids.Node) bool {
	n := c.node(id)
	return n != nil && n.Draining && !c.lost(id)
}

// kept counts the copies on nodes that stay, and their sites.
func (c *cluster) kept(row *Slice) (copies, sites int) {
	var at []ids.Site
	for _, m := range row.Members {
		if c.lost(m.Node) || c.drains(m.Node) || m.State == geoconfig.Failed {
			continue
		}
		copies++
		if s := c.siteOf(m.Node); !slices.Contains(at, s) {
			at = append(at, s)
		}
	}
	return copies, len(at)
}

// named lists slices for people, the first few by their numbers.
func named(list []ids.Slice) string {
	const most = 5
	var out []string
	for _, id := range list[:min(most, len(list))] {
		out = append(out, fmt.Sprint(id))
	}
	text := strings.Join(out, ", ")
	if more := len(list) - most; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	if len(list) == 1 {
		return "slice " + text
	}
	return "slices " + text
}
