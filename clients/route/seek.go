package route

import (
	"time"

	geoconfig "cartwheel.dev/geo-config"
)

const (
	// seekEvery is the time from one search for a slice's new active to the next.
	seekEvery = 500 * time.Millisecond
	// maxSought bounds the slices for which the time of the next search is kept; with more,
	// all are searched for again.
	maxSought = 1024
)

// seek looks in the background whether another member acts for a slice by now, for requests
// that end before an attempt at the active is doubted: those below .MaxTime, and on eventual
// terms. Without this the first would fail, and the others go over the wide area to copies,
// whose answers are not cached, for as long as the old active is away.
func (r *Router) seek(row geoconfig.SliceRow) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.cluster.Now()
	if next, ok := r.sought[row.ID]; ok && now < next || r.life.Err() != nil {
		return
	}
	if len(r.sought) >= maxSought {
		clear(r.sought)
	}
	r.sought[row.ID] = now + seekEvery
	r.watchers.Go(func() { r.askTogether(r.life, row) })
}
