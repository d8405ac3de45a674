package route

import (
	"context"
	"time"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/ids"
)

// On eventual terms an active has a part of a request's time, and then other members have
// their turn. Whether it does what it was sent is not known then, so it should be given up
// seldom where it lives: it gets as long as it usually takes.

const (
	// awayFor is how long other members are asked first after an active did not
	// answer. Then one request tries the active again, for a shorter time, once a ping
	// has shown that it lives.
	awayFor = 2 * time.Second
	// A request waits for the active for at least one part in activeShare of its time.
	// Where the active was away lately, that is one part in probeShare.
	activeShare, probeShare = 2, 4
	// besideWay is what an answer may take beside the way, or beside twice as long as
	// such answers took lately.
	besideWay = 50 * time.Millisecond
	// A request waits for the active for at most mostNum parts in mostDen of its time,
	// where others can stand in.
	mostNum, mostDen = 2, 3
	// tookFor is how long it is remembered what operations of a slice took, and maxTook
	// of how many slices.
	tookFor = time.Minute
	maxTook = 1024
	// pingFor bounds a sign of life, beside two round trips.
	pingFor = 500 * time.Millisecond
)

// forActive returns for how long a request may wait for the active of a slice; 0: not at
// all, for it was away a moment ago, another request tries it now, or it is too far. A
// change leaves more of its time to the others than a read does.
func (r *Router) forActive(ctx context.Context, row geoconfig.SliceRow, change bool) time.Duration {
	share := r.activeShare(row.Active)
	if share == 0 {
		r.seek(row)
		return 0
	}
	if change {
		share++
	}
	return r.turnOf(ctx, row, share, change)
}

// turnOf is how long a request may wait for the active of a slice now: one of so many
// parts of its time at least, and all of it where no other member can stand in. A second
// attempt at the same active could find what the first one did, and take it for somebody
// else's. 0: the active is too far.
func (r *Router) turnOf(ctx context.Context, row geoconfig.SliceRow, parts int, change bool) time.Duration {
	left := DefaultLimit
	if end, ok := ctx.Deadline(); ok {
		left = time.Until(end)
	}
	if len(r.beside(row)) == 0 {
		return left
	}
	way := r.cluster.Distance(row.Active).RTT
	if way >= left {
		return 0
	}
	takes := way + way/2
	if change {
		takes = r.changeTakes(row, way)
	}
	return max(left/time.Duration(parts), min(takes+besideWay, left*mostNum/mostDen))
}

// changeTakes is how long an operation of a slice may take: twice what they took lately, or
// where that is not known, one and a half times the ways to the active and from there to
// the farthest member.
func (r *Router) changeTakes(row geoconfig.SliceRow, way time.Duration) time.Duration {
	r.mu.Lock()
	known, is := r.took[row.ID]
	r.mu.Unlock()
	if is && r.cluster.Now()-known.at < tookFor {
		return 2 * known.d
	}
	var onward time.Duration
	for _, n := range row.Normals() {
		if n != row.Active {
			onward = max(onward, way+r.cluster.Distance(n).RTT)
		}
	}
	return (way + onward) * 3 / 2
}

// noteTook notes how long an operation of a slice took. It forgets longer times slowly.
func (r *Router) noteTook(id ids.Slice, d time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	before, known := r.took[id]
	if r.took == nil || !known && len(r.took) >= maxTook {
		r.took = map[ids.Slice]took{}
	}
	r.took[id] = took{max(d, (7*before.d+d)/8), r.cluster.Now()}
}

// IsAway reports whether the node that acts for a slice did not answer a moment ago.
func (r *Router) IsAway(id ids.Slice) bool {
	row, ok := r.Known(id)
	if !ok {
		return false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	a, away := r.away[row.Active]
	return away && r.cluster.Now() < a.until
}

// activeShare returns of how many parts of its time a request may wait one for an active;
// 0: none, for it was away a moment ago, or another request tries it now.
func (r *Router) activeShare(n ids.Node) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	a, away := r.away[n]
	now := r.cluster.Now()
	switch {
	case !away:
		return activeShare
	case now < a.until || a.asked:
		return 0
	case !a.lives:
		a.asked = true
		r.away[n] = a
		r.ping(n, func(lives bool) { r.noteLives(n, lives) })
		return 0
	}
	r.away[n] = absence{until: now + awayFor}
	return probeShare
}

// noteLives notes whether a node that was away answered a ping.
func (r *Router) noteLives(n ids.Node, lives bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	a, away := r.away[n]
	if !away {
		return
	}
	if a.asked, a.lives = false, lives; !lives {
		a.until = r.cluster.Now() + awayFor
	}
	r.away[n] = a
}

// noteSilent notes that an active did not answer an operation in the time that it had.
// Where it lives, the next one has more.
func (r *Router) noteSilent(row geoconfig.SliceRow, had time.Duration) {
	r.noteAway(row.Active, true)
	r.ping(row.Active, func(lives bool) {
		if lives {
			r.noteTook(row.ID, had)
		}
	})
}

// noteAway notes whether a node was away just now.
func (r *Router) noteAway(n ids.Node, away bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !away {
		delete(r.away, n)
		return
	}
	r.away[n] = absence{until: r.cluster.Now() + awayFor}
}

// ping asks a node for a sign of life in the background, and tells whether one came.
func (r *Router) ping(n ids.Node, tell func(lives bool)) {
	r.watchers.Go(func() {
		ctx, cancel := context.WithTimeout(r.life, 2*r.cluster.Distance(n).RTT+pingFor)
		defer cancel()
		tell(r.cluster.Lives(ctx, n))
	})
}
