package vivaldi

import (
	"slices"
	"time"
)

const (
	// maxMisses is how often a neighbour may be named by Next without a
	// sample before another takes its place.
	maxMisses = 3
	// scan bounds the slots that one search for near peers looks at.
	scan = 256
	// tries bounds how many slots are drawn when one is looked for by chance.
	tries = 8
	// stay is the advantage of a near neighbour over a candidate, so that two
	// of the same distance do not change places all the time.
	stay = 0.9
	// turn is after how many samples a random neighbour gives its place to
	// another, and quickTurn the same where the node is alarmed: neighbours that
	// stay are of one mind with the node, and nobody tells them that the rest
	// of the network lies elsewhere.
	turn      = 8
	quickTurn = 2
)

// Meet tells the node of a peer that it may measure, with the coordinate that
// the peer is said to have. It reports whether the peer is one to measure. What
// a peer said itself counts more: its coordinate is not overwritten by this.
func (n *Node) Meet(id string, at Coordinate, now time.Duration) bool {
	if !n.valid(&at) {
		return false
	}
	slot, known := n.index[id]
	if !known {
		slot = n.add(id)
	}
	if p := &n.table[slot]; p.samples == 0 {
		p.at, p.last = at, now
	}
	return true
}

// Next returns the neighbour to measure now, the one that waited longest since
// it was last asked or heard. It reports false where the node knows nobody.
func (n *Node) Next(now time.Duration) (id string, ok bool) {
	n.fill()
	best, longest := int32(-1), time.Duration(-1)
	for _, half := range [2][]int32{n.near, n.far} {
		for _, slot := range half {
			p := &n.table[slot]
			waited := now - p.asked
			if p.samples > 0 {
				waited = now - max(p.last, p.asked)
			} else if p.misses == 0 {
				waited = 1<<63 - 1 // never asked
			}
			if waited > longest {
				best, longest = slot, waited
			}
		}
	}
	if best < 0 {
		return "", false
	}
	p := &n.table[best]
	p.asked = now
	if p.misses++; p.misses > maxMisses {
		n.dismiss(best)
	}
	return p.id, true
}

// Forget drops what is known of a peer, for example one that left the roster.
func (n *Node) Forget(id string) {
	if slot, ok := n.index[id]; ok {
		n.dismiss(slot)
		delete(n.index, id)
		n.table[slot] = peer{}
		n.free = append(n.free, slot)
	}
}

// add gives a peer a slot, somebody else's where there is none.
func (n *Node) add(id string) int32 {
	var slot int32
	switch {
	case len(n.free) > 0:
		slot = n.free[len(n.free)-1]
		n.free = n.free[:len(n.free)-1]
	case len(n.table) < n.config.Peers:
		slot = int32(len(n.table))
		n.table = append(n.table, peer{})
	default:
		slot = n.victim()
		n.dismiss(slot)
		delete(n.index, n.table[slot].id)
	}
	n.table[slot] = peer{id: id, used: true}
	n.index[id] = slot
	return slot
}

// victim returns the slot unheard of for longest of a few drawn by chance;
// neighbours only where all of them are.
func (n *Node) victim() int32 {
	best := int32(-1)
	for range tries {
		slot := int32(n.source.Uint64() % uint64(len(n.table)))
		if best < 0 || n.older(slot, best) {
			best = slot
		}
	}
	return best
}

func (n *Node) older(a, b int32) bool {
	p, q := &n.table[a], &n.table[b]
	if (p.role == stranger) != (q.role == stranger) {
		return p.role == stranger
	}
	return p.last < q.last
}

// dismiss takes a peer out of the neighbours.
func (n *Node) dismiss(slot int32) {
	other := func(s int32) bool { return s == slot }
	switch n.table[slot].role {
	case nearby:
		n.near = slices.DeleteFunc(n.near, other)
	case random:
		n.far = slices.DeleteFunc(n.far, other)
	}
	n.table[slot].role, n.table[slot].drawn = stranger, false
}

// fill completes both halves of the neighbours by chance. The near half is
// made better by search.
func (n *Node) fill() {
	want := n.config.Neighbours
	for range tries {
		if len(n.near)+len(n.far) >= min(want, len(n.index)) {
			return
		}
		slot := int32(n.source.Uint64() % uint64(len(n.table)))
		for range min(len(n.table), scan) {
			if p := &n.table[slot]; p.used && p.role == stranger && p.misses <= maxMisses {
				break
			}
			slot = (slot + 1) % int32(len(n.table))
		}
		p := &n.table[slot]
		if !p.used || p.role != stranger {
			continue
		}
		p.misses = 0
		if len(n.far) < (want+1)/2 {
			p.role = random
			n.far = append(n.far, slot)
		} else {
			p.role = nearby
			n.near = append(n.near, slot)
		}
	}
}

// renew puts a peer in the place of the random neighbour that has been one for
// longest, once every turn: the best to hear of those drawn by chance.
func (n *Node) renew(now time.Duration) {
	n.renewed++
	if n.renewed < quickTurn || n.renewed < turn && !n.alarmed() || len(n.far) < (n.config.Neighbours+1)/2 {
		return
	}
	n.renewed = 0
	best := int32(-1)
	for range tries {
		slot := int32(n.source.Uint64() % uint64(len(n.table)))
		p := &n.table[slot]
		if !p.used || p.role != stranger || p.misses > maxMisses && now-p.asked < n.config.Fresh {
			continue
		}
		if best < 0 || n.fresher(slot, best) {
			best = slot
		}
	}
	if best < 0 {
		return
	}
	n.dismiss(n.far[0])
	p := &n.table[best]
	p.role, p.drawn, p.misses = random, true, min(p.misses, maxMisses-1) // who was silent has one more try
	n.far = append(n.far, best)
}

// fresher reports whether a says more that is new than b: never measured and
// met lately, else unheard of for longest.
func (n *Node) fresher(a, b int32) bool {
	p, q := &n.table[a], &n.table[b]
	switch {
	case p.samples == 0 && q.samples == 0:
		return p.last > q.last
	case p.samples > 0 && q.samples > 0:
		return p.last < q.last
	}
	return p.samples == 0
}

// search looks, once for every round of samples, through a part of the table
// for peers nearer than the near neighbours.
func (n *Node) search() {
	if n.until--; n.until > 0 {
		return
	}
	n.until = n.config.Neighbours
	n.fill()
	want := n.config.Neighbours / 2
	if len(n.near) < want || len(n.table) <= n.config.Neighbours {
		return
	}
	here := n.Coordinate()
	worst, limit := n.worst(&here)
	for range min(scan, len(n.table)) {
		n.cursor = (n.cursor + 1) % len(n.table)
		p := &n.table[n.cursor]
		if !p.used || p.role != stranger || p.misses > maxMisses || p.far(&here) >= stay*limit {
			continue
		}
		n.dismiss(worst)
		p.role, p.misses = nearby, 0
		n.near = append(n.near, int32(n.cursor))
		worst, limit = n.worst(&here)
	}
}

// worst returns the farthest of the near neighbours and how far it is, in
// milliseconds.
func (n *Node) worst(here *Coordinate) (slot int32, far float64) {
	for _, s := range n.near {
		if f := n.table[s].far(here); f >= far {
			slot, far = s, f
		}
	}
	return slot, far
}

// far is how far away a peer is, as well as is known: measured, so that nobody
// gets near by saying so, else predicted.
func (p *peer) far(here *Coordinate) float64 {
	if p.samples > 0 {
		return p.rtt
	}
	return here.Distance(p.at)
}
