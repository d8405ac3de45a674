// Package drain empties nodes: it says what stands in the way, writes into a
// node's row that it is to be left, and tells how much is left. The nodes
// themselves move the slices (node/server/upkeep). Check and Left are pure; Set
// writes to the store that it is given. All of it may be called from anywhere.
package drain

import (
	"fmt"
	"slices"
	"strings"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/server/placement"
	"cartwheel.dev/node/whatif"
)

// Verdict says what draining some nodes would do.
type Verdict struct {
	Nodes []ids.Node `json:"nodes"`
	// Left is what they have now.
	Left Left `json:"left"`
	// Obstacles keep a slice's member where it is. Losses do not, but the slice
	// then does not have what its policy asks for.
	Obstacles []Remark `json:"obstacles"`
	Losses    []Remark `json:"losses"`
}

// Remark is about one slice.
type Remark struct {
	Slice ids.Slice `json:"slice"`
	Home  ids.Site  `json:"home,omitempty"`
	// Text says for people what the matter is, and what would help.
	Text string `json:"text"`
}

// Left counts what the drained nodes still have.
type Left struct {
	// Slices are those with a member there, and Active those that are led there.
	Slices int `json:"slices"`
	Active int `json:"active"`
	// Bytes counts the slices of known size; Unknown is how many are not.
	Bytes   int64 `json:"bytes"`
	Unknown int   `json:"unknown,omitempty"`
}

// Remains counts what nodes have, as the rows say.
func Remains(rows []whatif.Slice, nodes []ids.Node) Left {
	var out Left
	for i := range rows {
		row := &rows[i]
		if !slices.ContainsFunc(row.Members, func(m geoconfig.Member) bool { return slices.Contains(nodes, m.Node) }) {
			continue
		}
		out.Slices++
		if slices.Contains(nodes, row.Active) {
			out.Active++
		}
		if row.Bytes == whatif.UnknownSize {
			out.Unknown++
		} else {
			out.Bytes += row.Bytes
		}
	}
	return out
}

// Check says whether nodes can be drained, all of them at once. Errors: NotFound.
func Check(s whatif.State, nodes []ids.Node) (Verdict, error) {
	v := Verdict{Nodes: nodes, Left: Remains(s.Slices, nodes), Obstacles: []Remark{}, Losses: []Remark{}}
	rows := make([]geoconfig.Node, len(s.Nodes))
	away := map[ids.Node]bool{}
	for i, n := range s.Nodes {
		rows[i], away[n.ID] = n.Node, n.Away
		rows[i].Draining = n.Draining || slices.Contains(nodes, n.ID)
	}
	for _, id := range nodes {
		if !slices.ContainsFunc(rows, func(n geoconfig.Node) bool { return n.ID == id }) {
			return v, fault.E(fault.NotFound, "drain.Check", string(id), "is no node; `cartwheel node ls` lists them")
		}
	}
	list := make([]geoconfig.SliceRow, len(s.Slices))
	for i := range s.Slices {
		list[i] = s.Slices[i].Clone()
	}
	candidates := placement.Candidates(rows, list, func(n geoconfig.Node) bool { return n.Incarnation == 0 || away[n.ID] })
	for i := range list {
		v.try(&list[i], candidates)
	}
	return v, nil
}

// try takes the steps that the nodes would take for one slice, and notes where
// they end.
func (v *Verdict) try(row *geoconfig.SliceRow, candidates []placement.Candidate) {
	if !slices.ContainsFunc(row.Members, func(m geoconfig.Member) bool { return slices.Contains(v.Nodes, m.Node) }) {
		return
	}
	before := standing(row, candidates)
	// Each step adds a node, removes one or moves the active, and none comes back.
	for range 3 * (len(candidates) + 1) {
		for i := range row.Members {
			if row.Members[i].State.Junior() {
				row.Members[i].State = geoconfig.Normal // it has caught up by then
			}
		}
		step := placement.Next(row, candidates, nil, nil)
		switch {
		case step.Add != "":
			row.Members = append(row.Members, geoconfig.Member{Node: step.Add, State: geoconfig.Migrating})
		case step.HandOver != "":
			row.Active = step.HandOver
		case step.Remove != "":
			row.Members = slices.DeleteFunc(row.Members, func(m geoconfig.Member) bool { return m.Node == step.Remove })
		}
		if step == (placement.Step{}) {
			break
		}
	}
	after, p := standing(row, candidates), row.Policy
	remark := func(list *[]Remark, format string, args ...any) {
		*list = append(*list, Remark{Slice: row.ID, Home: p.Home, Text: fmt.Sprintf("slice %d "+format, append([]any{row.ID}, args...)...)})
	}
	stays := slices.ContainsFunc(row.Members, func(m geoconfig.Member) bool { return slices.Contains(v.Nodes, m.Node) })
	switch {
	case stays && len(after.failed) > 0 && after.normal+len(after.failed) >= p.Level:
		remark(&v.Obstacles, "has a failed member at %s: start that node, or wait until another one has taken its place (failed_after)", strings.Join(after.failed, " and "))
	case stays:
		remark(&v.Obstacles, "needs %d copies, and the other nodes that answer can hold %d: add a node, or lower the level with `cartwheel policy set %d --level %d`",
			p.Level, after.normal, row.ID, max(after.normal, 1))
	case before.atHome && !after.atHome:
		remark(&v.Losses, "is at home at %s, where no other node can take it: it goes elsewhere, and comes back after `cartwheel node undrain`", p.Home)
	case after.sites < min(before.sites, p.WantedSites()):
		remark(&v.Losses, "would have its copies at %d sites, and its policy names %d: add a node at another site", after.sites, p.WantedSites())
	}
}

// stand is where a slice's copies are.
type stand struct {
	normal, sites int
	atHome        bool
	failed        []string // the sites of failed members
}

// standing looks at the members on nodes that stay; before a drain began, at those
// that are to go, too.
func standing(row *geoconfig.SliceRow, candidates []placement.Candidate) stand {
	var s stand
	var at []ids.Site
	for _, m := range row.Members {
		i := slices.IndexFunc(candidates, func(c placement.Candidate) bool { return c.Node == m.Node })
		if i < 0 {
			continue
		}
		site := candidates[i].Site
		s.atHome = s.atHome || site == row.Policy.Home
		if !slices.Contains(at, site) {
			at = append(at, site)
		}
		switch {
		case candidates[i].Leaving:
		case m.State == geoconfig.Failed:
			s.failed = append(s.failed, string(site))
		default:
			s.normal++
		}
	}
	s.sites = len(at)
	return s
}
