package server

import (
	"slices"
	"sync"
	"time"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/server/placement"
)

// homing notes the slices that others act for because all members at their home
// were out: they come home soon after one of those is back, so that no other
// slice need be made there. It is safe for concurrent use.
type homing struct {
	mu sync.Mutex // guards slices
	// slices are the strays whose home is out, with 0, and those of which a
	// member at home is normal again, with until when they may yet come.
	slices map[ids.Slice]time.Duration
}

// note takes a newer row in. siteOf says where a node stands.
func (h *homing) note(row geoconfig.SliceRow, now time.Duration, siteOf func(ids.Node) ids.Site) {
	known, normal := false, false
	for _, m := range row.Members {
		if siteOf(m.Node) == row.Policy.Home {
			known, normal = true, normal || m.State == geoconfig.Normal
		}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	until, was := h.slices[row.ID]
	switch {
	case !known || siteOf(row.Active) == row.Policy.Home:
		delete(h.slices, row.ID)
	case !normal:
		if h.slices == nil {
			h.slices = map[ids.Slice]time.Duration{}
		}
		h.slices[row.ID] = 0
	case was && until == 0:
		h.slices[row.ID] = now + homePause
	}
}

// comes reports whether a slice is on its way home.
func (h *homing) comes(id ids.Slice, now time.Duration) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	until, was := h.slices[id]
	return was && (until == 0 || now < until)
}

// comesHome reports whether new objects of a policy may go to a slice that is
// led elsewhere: it is on its way home, where a member of it answers.
func (s *Server) comesHome(row geoconfig.SliceRow, p geoconfig.Policy) bool {
	if _, open := placement.Open([]geoconfig.SliceRow{row}, p, row.Active); !open || !s.homing.comes(row.ID, s.clock()) {
		return false
	}
	return slices.ContainsFunc(s.nearest(p.Home), func(n ids.Node) bool { _, in := row.Member(n); return in })
}
