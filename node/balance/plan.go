package balance

import (
	"cmp"
	"slices"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/server/placement"
)

// Move is one copy that goes from one node to another.
type Move struct {
	Slice ids.Slice `json:"slice"`
	From  ids.Node  `json:"from"`
	To    ids.Node  `json:"to"`
	Bytes int64     `json:"bytes"`
}

// Stuck is a node that stays above its high mark, and why.
type Stuck struct {
	Node ids.Node `json:"node"`
	Site ids.Site `json:"site"`
	Why  Reason   `json:"why"`
}

// Plan says what nodes would give away until none has to, the fullest node first, and
// which of them stay above their high marks. Nodes that are away neither give nor take.
// It changes nothing. The nodes themselves decide anew before each move.
func Plan(nodes []geoconfig.Node, held []Held, away func(ids.Node) bool, marks func(ids.Site) geoconfig.Balance) (moves []Move, stuck []Stuck) {
	p := &plan{nodes: slices.Clone(nodes), held: slices.Clone(held), away: away, marks: marks}
	for i := range p.held {
		p.held[i].Row = p.held[i].Row.Clone()
	}
	order := slices.Clone(p.nodes)
	slices.SortFunc(order, func(a, b geoconfig.Node) int {
		return cmp.Or(cmp.Compare(filled(b), filled(a)), cmp.Compare(a.ID, b.ID))
	})
	for _, n := range order {
		if away(n.ID) {
			continue
		}
		why := p.empty(n)
		if at := p.node(n.ID); why != Resting && marks(n.Site).FillOf(at.UsedBytes, at.CapacityBytes) == geoconfig.High {
			stuck = append(stuck, Stuck{n.ID, n.Site, why})
		}
	}
	return p.moves, stuck
}

func filled(n geoconfig.Node) float64 {
	return float64(n.UsedBytes) / float64(max(n.CapacityBytes, 1))
}

// plan is a cluster as it becomes.
type plan struct {
	nodes []geoconfig.Node
	held  []Held
	away  func(ids.Node) bool
	marks func(ids.Site) geoconfig.Balance
	moves []Move
}

func (p *plan) node(id ids.Node) *geoconfig.Node {
	return &p.nodes[slices.IndexFunc(p.nodes, func(n geoconfig.Node) bool { return n.ID == id })]
}

// empty has a node give slices away until it need not or cannot, and returns why it
// ends. Each slice leaves it once at most.
func (p *plan) empty(n geoconfig.Node) Reason {
	giving := false
	for {
		own := Own{Node: n.ID, Site: n.Site, Used: p.node(n.ID).UsedBytes, Capacity: n.CapacityBytes, Full: n.Fill == geoconfig.Full, Giving: giving}
		v := Decide(own, p.of(n.ID), p.world())
		if v.Give.Slice == 0 {
			return v.Why
		}
		giving = v.Giving
		p.move(Move{Slice: v.Give.Slice, From: n.ID, To: v.Give.To, Bytes: v.Bytes})
	}
}

// of lists the slices of which a node has a whole copy.
func (p *plan) of(id ids.Node) []Held {
	return slices.DeleteFunc(slices.Clone(p.held), func(h Held) bool {
		m, in := h.Row.Member(id)
		return !in || m.State != geoconfig.Normal
	})
}

func (p *plan) world() *World {
	rows := make([]geoconfig.SliceRow, len(p.held))
	for i := range p.held {
		rows[i] = p.held[i].Row
	}
	for i := range p.nodes {
		n := &p.nodes[i]
		n.Fill, n.Giving = p.marks(n.Site).FillOf(n.UsedBytes, n.CapacityBytes), nil
	}
	return &World{Nodes: p.nodes, Marks: p.marks,
		Candidates: placement.Candidates(p.nodes, rows, func(n geoconfig.Node) bool { return n.Incarnation == 0 || p.away(n.ID) })}
}

func (p *plan) move(m Move) {
	p.moves = append(p.moves, m)
	p.node(m.From).UsedBytes -= m.Bytes
	p.node(m.To).UsedBytes += m.Bytes
	for i := range p.held {
		row := &p.held[i].Row
		if row.ID != m.Slice {
			continue
		}
		for j := range row.Members {
			if row.Members[j].Node == m.From {
				row.Members[j].Node = m.To
			}
		}
		if row.Active == m.From {
			row.Active = m.To
		}
	}
}
