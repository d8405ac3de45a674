package route

import (
	"time"

	geoconfig "cartwheel.dev/geo-config"
)

// seekEvery is the time from one search for a slice's new active to the next.
const seekEvery = 500 * time.Millisecond

// seek looks in the background whether another member acts for a slice by now. Requests on
// eventual terms go to the copies meanwhile. They end before an attempt at the active would
// be doubted, and what a copy answers is not cached: without this each of them would go
// over the wide area for as long as the old active is away.
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

// maxSought bounds the slices of which it is remembered when their active was sought.
const maxSought = 1024
