package route

import (
	"context"
	"errors"
	"time"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
)

// A slice of which no member answered an eventual read is lost for a while: no request waits
// for its members. Else a program would wait again at every step of a path.

const (
	// lostFor is how long no member is asked at all.
	lostFor = time.Second
	// maxLost bounds the slices that are noted as lost; with more, all are asked for again.
	maxLost = 1024
)

var nobodyAnswers = fault.E(fault.TimedOut, "route.Eventually", "", "no member of the slice answered a moment ago")

// isLost reports whether no member of a slice answered a moment ago. Then its members are
// asked for a sign of life in the background, and once one gave it, one request tries.
func (r *Router) isLost(row geoconfig.SliceRow) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	l, lost := r.lost[row.ID]
	now := r.cluster.Now()
	switch {
	case !lost:
		return false
	case now < l.until || l.asked:
		return true
	case !l.lives:
		l.asked = true
		r.lost[row.ID] = l
		r.watchers.Go(func() { r.noteFound(row.ID, r.ask(r.life, row.ID, r.others(row), "") == nil) })
		return true
	}
	r.lost[row.ID] = absence{until: now + lostFor}
	return false
}

// noteFound notes whether a member of a slice that is lost gave a sign of life.
func (r *Router) noteFound(id ids.Slice, lives bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	l, lost := r.lost[id]
	if !lost {
		return
	}
	if l.asked, l.lives = false, lives; !lives {
		l.until = r.cluster.Now() + lostFor
	}
	r.lost[id] = l
}

// noteLost notes whether a member of a slice answered, as an eventual read ended so. One
// whose caller gave it up says nothing.
func (r *Router) noteLost(ctx context.Context, id ids.Slice, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case !again(err):
		delete(r.lost, id)
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		if r.lost == nil || len(r.lost) >= maxLost {
			r.lost = map[ids.Slice]absence{}
		}
		r.lost[id] = absence{until: r.cluster.Now() + lostFor, asked: r.lost[id].asked}
	}
}
