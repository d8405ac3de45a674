// Package failback brings slices back to their home sites. A slice is led
// elsewhere once all members at its home were out; it is handed back soon after
// one of them is normal again. An Observer at every node knows which slices are
// about to return; a Returner at the node that leads one hands it over.
package failback

import (
	"sync"
	"time"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/ids"
)

// Pause is how long a slice stays after a hand-over to its home began, so that
// one that fails does not stop the slice again and again.
const Pause = 10 * time.Second

// Observer notes the slices that are led elsewhere because all members at their
// home were out. They return soon after one of those is back, so that no other
// slice need be made there. The zero value is ready, and safe for concurrent use.
type Observer struct {
	mu sync.Mutex // guards slices
	// slices are those whose home is out, with 0, and those of which a member at
	// home is normal again, with until when they may yet return.
	slices map[ids.Slice]time.Duration
}

// Note takes a newer row in. siteOf says where a node stands.
func (o *Observer) Note(row geoconfig.SliceRow, now time.Duration, siteOf func(ids.Node) ids.Site) {
	known, normal := false, false
	for _, m := range row.Members {
		if siteOf(m.Node) == row.Policy.Home {
			known, normal = true, normal || m.State == geoconfig.Normal
		}
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	until, was := o.slices[row.ID]
	switch {
	case !known || siteOf(row.Active) == row.Policy.Home:
		delete(o.slices, row.ID)
	case !normal:
		if o.slices == nil {
			o.slices = map[ids.Slice]time.Duration{}
		}
		o.slices[row.ID] = 0
	case was && until == 0:
		o.slices[row.ID] = now + Pause
	}
}

// Returns reports whether a slice is about to return to its home.
func (o *Observer) Returns(id ids.Slice, now time.Duration) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	until, was := o.slices[id]
	return was && (until == 0 || now < until)
}
