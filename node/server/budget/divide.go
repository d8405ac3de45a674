package budget

import (
	"cmp"
	"maps"
	"slices"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/ids"
)

// keptPart is the part of a rate that is divided equally whatever nodes want, so
// that one that begins to send does not stand still until the next division.
const keptPart = 1.0 / 16

// divide divides a rate among nodes by what they want to send, all in bytes per
// second. The classes come one after the other; a lower one that wants something
// has its share set aside first. Within a class the nodes that want least get all
// of it, and the others equal parts. What is left over goes to all equally. The
// result is the same wherever it is computed from the same figures, and adds up to
// the rate.
func divide(total float64, shares geoconfig.Shares, wanted map[ids.Node]byClass) map[ids.Node]float64 {
	nodes := slices.Sorted(maps.Keys(wanted))
	out := make(map[ids.Node]float64, len(nodes))
	if len(nodes) == 0 {
		return out
	}
	left := total * (1 - keptPart)
	aside := setAside(left, shares, wanted)
	for c := Foreground; c < classes; c++ {
		lower := 0.0
		for d := c + 1; d < classes; d++ {
			lower += aside[d]
		}
		given := fill(left-lower, nodes, func(n ids.Node) float64 { return float64(wanted[n][c]) })
		for i, n := range nodes {
			out[n] += given[i]
			left -= given[i]
		}
	}
	each := (total*keptPart + max(left, 0)) / float64(len(nodes))
	for _, n := range nodes {
		out[n] += each
	}
	return out
}

// setAside returns what each lower class has for itself.
func setAside(rate float64, shares geoconfig.Shares, wanted map[ids.Node]byClass) (out [classes]float64) {
	for c, percent := range map[Class]int{Replication: shares.Replication, Repair: shares.Repair, Rebalancing: shares.Rebalancing} {
		var all float64
		for _, w := range wanted {
			all += float64(w[c])
		}
		out[c] = min(all, rate*float64(percent)/100)
	}
	return out
}

// fill divides what there is: each node gets what it wants, or as much as any other
// one that does not get all that it wants.
func fill(there float64, nodes []ids.Node, wants func(ids.Node) float64) []float64 {
	out := make([]float64, len(nodes))
	byWant := make([]int, len(nodes))
	for i := range nodes {
		byWant[i] = i
	}
	slices.SortStableFunc(byWant, func(a, b int) int { return cmp.Compare(wants(nodes[a]), wants(nodes[b])) })
	for k, i := range byWant {
		out[i] = max(min(wants(nodes[i]), there/float64(len(nodes)-k)), 0)
		there -= out[i]
	}
	return out
}
