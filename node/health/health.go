// Package health says in words how a cluster is: what is wrong, and one sentence
// that sums it up. It gathers nothing: the command line and the API hand it what
// nodes said. It is pure, and all of it may be called from anywhere.
package health

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/protocol/status"
)

// Severity ranks causes.
type Severity string

// The severities. Critical: some data cannot be read or written now. Warning: it
// can, but less may fail than the policies allow for.
const (
	Critical Severity = "critical"
	Warning  Severity = "warning"
)

// Kind says what is wrong.
type Kind string

// The kinds of causes.
const (
	NodeSilent   Kind = "node_silent"
	NodeFull     Kind = "node_full"
	StoreAway    Kind = "geo_config_away"
	NoRoot       Kind = "no_root"
	SliceLacking Kind = "slice_lacking"
	SliceSilent  Kind = "slice_silent"
	ChunksLost   Kind = "chunks_lost"
	StateDiffers Kind = "state_differs"
	// Misplaced comes from the site audit.
	Misplaced Kind = "site_misplaced"
)

// Cause is one thing that is wrong. Text is a phrase without a capital or an end.
type Cause struct {
	Kind     Kind
	Severity Severity
	Text     string
	// Subject is what it is about: nodes/ID, slices/7. Empty: the cluster.
	Subject string
}

// Silent is a node that does not answer. A node of a contact file that is on no
// roster has no site.
func Silent(id ids.Node, site ids.Site) Cause {
	text := fmt.Sprintf("the node at %s does not answer", site)
	if site == "" {
		text = fmt.Sprintf("node %s of the contact file does not answer", id)
	}
	return Cause{NodeSilent, Warning, text, "nodes/" + string(id)}
}

// Full is a node that has no space.
func Full(id ids.Node, site ids.Site) Cause {
	return Cause{NodeFull, Critical, fmt.Sprintf("the node at %s is full and read-only", site), "nodes/" + string(id)}
}

// Scrubbed is what a node's scrub found that is still so: chunks that no member has given,
// and slices whose state differs from other members'. A node that tells nothing of it has
// neither.
func Scrubbed(id ids.Node, site ids.Site, s *status.Scrub) (out []Cause) {
	if s == nil {
		return nil
	}
	subject := "nodes/" + string(id)
	if s.LostChunks > 0 {
		out = append(out, Cause{ChunksLost, Critical, fmt.Sprintf("the node at %s lacks %d chunks that no member has given", site, s.LostChunks), subject})
	}
	for _, d := range s.Different {
		out = append(out, Cause{StateDiffers, Warning, fmt.Sprintf("the state of slice %d at %s differs from that of other members", d.Slice, site), subject})
	}
	return out
}

// Away is a configuration store that nodes do not reach.
func Away() Cause {
	return Cause{StoreAway, Warning, "geo-config is away: reads and writes go on, but nobody can take over and no slice can be made", "database"}
}

// Rootless is a cluster without a root slice.
func Rootless() Cause {
	return Cause{NoRoot, Critical, "the tree has no root yet: the first node makes it once it sees all nodes of the roster", ""}
}

// Lacking is a slice that is short of something: lacks is a phrase such as "has 1 of
// 3 copies". serves says that it can be read and written.
func Lacking(id ids.Slice, serves bool, lacks string) Cause {
	c := Cause{SliceLacking, Warning, fmt.Sprintf("slice %d %s", id, lacks), fmt.Sprintf("slices/%d", id)}
	if !serves {
		c.Kind, c.Severity = SliceSilent, Critical
	}
	return c
}

// Rank sorts causes, the worst first, and otherwise leaves their order.
func Rank(causes []Cause) {
	slices.SortStableFunc(causes, func(a, b Cause) int { return cmp.Compare(rank(a), rank(b)) })
}

func rank(c Cause) int {
	if c.Severity == Critical {
		return 0
	}
	return 1
}

// Sentence sums up a cluster with so many nodes and sites.
func Sentence(causes []Cause, nodes, sites int) string {
	if len(causes) == 0 {
		return fmt.Sprintf("All well: %d nodes at %d sites, every slice fully protected.", nodes, sites)
	}
	texts := make([]string, len(causes))
	for i, c := range causes {
		texts[i] = c.Text
	}
	return "Not all is well: " + strings.Join(texts, "; ") + "."
}
