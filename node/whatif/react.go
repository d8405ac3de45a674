package whatif

import (
	"slices"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/replica"
	"cartwheel.dev/node/server/placement"
)

// failOver does what the members of each slice do within seconds.
func (c *cluster) failOver() {
	for i := range c.slices {
		row := &c.slices[i]
		row.SliceRow = failOver(row.SliceRow, c.lost)
	}
}

// failOver is the row of a slice after a loss: the members that are left take the
// others out, and one of them takes over where the active is gone. The row stays
// as it is where too few are left for that.
func failOver(row geoconfig.SliceRow, lost func(ids.Node) bool) geoconfig.SliceRow {
	next := row.Clone()
	for j := range next.Members {
		if m := &next.Members[j]; lost(m.Node) {
			m.State = geoconfig.Failed
		}
	}
	if lost(row.Active) {
		successor, ok := replica.Successor(&next)
		if !ok {
			return row
		}
		next.Active = successor
	}
	if !replica.Enough(&next) {
		return row
	}
	return next
}

// standing is how a slice stands.
type standing int

const (
	protected standing = iota // as many copies as its policy asks for
	under                     // serves with fewer copies
	waiting                   // does not serve until a member is back
	lost                      // no whole copy is left
)

func (s standing) String() string {
	return [...]string{"protected", "under", "waiting", "lost"}[s]
}

// serves reports whether clients get answers.
func (s standing) serves() bool { return s <= under }

// stands says how a slice of the cluster stands.
func (c *cluster) stands(row *Slice) standing { return stands(&row.SliceRow, c.lost) }

func stands(row *geoconfig.SliceRow, gone func(ids.Node) bool) standing {
	whole, silent := 0, false
	for _, m := range row.Members {
		switch {
		case m.State != geoconfig.Normal:
		case gone(m.Node):
			silent = true // a standby that must have each operation and does not answer
		default:
			whole++
		}
	}
	switch {
	case whole == 0:
		return lost
	case silent || gone(row.Active):
		return waiting
	case whole < row.Policy.Level:
		return under
	}
	return protected
}

// copied is what one slice sends to a node that becomes a member.
type copied struct {
	slice    ids.Slice
	from, to ids.Node
	bytes    int64
}

// repair does what the actives do later: they replace members that stay failed,
// and bring their slices to their policies and away from nodes that are drained.
// It returns what has to be copied.
func (c *cluster) repair() []copied {
	c.prepare()
	var out []copied
	for i := range c.slices {
		row := &c.slices[i]
		if !c.stands(row).serves() {
			continue
		}
		// Each step adds a node, removes one or moves the active, and none comes back.
		for range 3 * (len(c.nodes) + 1) {
			for j := range row.Members {
				if m := &row.Members[j]; m.State.Junior() && !c.lost(m.Node) {
					m.State = geoconfig.Normal // it has caught up by then
				}
			}
			added, went := c.replaceFailed(row), true
			if !added {
				added, went = c.step(&row.SliceRow)
			}
			if added {
				to := row.Members[len(row.Members)-1].Node
				out = append(out, copied{slice: row.ID, from: row.Active, to: to, bytes: row.Bytes})
			}
			if !went {
				break
			}
		}
		if row.moves {
			_ = c.moveActive(row.ID, row.Policy.Home) // it stays where no member is there
		}
	}
	return out
}

// step takes the next step of a slice, and reports whether it was the addition of
// the last member, and whether there was one.
func (c *cluster) step(row *geoconfig.SliceRow) (added, went bool) {
	step := placement.Next(row, c.candidates, c.distances.between, nil)
	switch {
	case step.Add != "":
		c.join(row, step.Add)
	case step.HandOver != "":
		row.Active = step.HandOver
	case step.Remove != "":
		row.Members = slices.DeleteFunc(row.Members, func(m geoconfig.Member) bool { return m.Node == step.Remove })
	}
	return step.Add != "", step != placement.Step{}
}

// replaceFailed puts a node in the place of a member that stays failed, and
// reports whether it found one.
func (c *cluster) replaceFailed(row *Slice) bool {
	i := slices.IndexFunc(row.Members, func(m geoconfig.Member) bool { return m.State == geoconfig.Failed && c.lost(m.Node) })
	if i < 0 {
		return false
	}
	kept := row.Clone()
	kept.Members = slices.Delete(kept.Members, i, i+1)
	if !c.addTo(&kept) {
		return false
	}
	row.SliceRow = kept
	return true
}

func (c *cluster) addTo(row *geoconfig.SliceRow) bool {
	id, ok := placement.Missing(row, c.candidates, c.distances.between, nil)
	if !ok {
		return false
	}
	c.join(row, id)
	return true
}

func (c *cluster) join(row *geoconfig.SliceRow, id ids.Node) {
	row.Members = append(row.Members, geoconfig.Member{Node: id, State: geoconfig.Migrating, Incarnation: c.node(id).Incarnation})
	c.candidates[c.index[id]].Load++
}
