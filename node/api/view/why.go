package view

import (
	"fmt"
	"strings"

	"cartwheel.dev/geo-config/ids"
)

// WhyHere has a reason for each copy: the rules by which nodes choose places, as
// the row shows them.
func WhyHere(x *Slice) []Reason {
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
