package server

import (
	"time"

	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/hlc"
	"cartwheel.dev/node/server/relief"
	"cartwheel.dev/node/tree"
)

// givenBack is how long the space of a slice may take to come back after upload_grace:
// its packs are looked at and emptied one after the other.
const givenBack = 30 * time.Minute

// newGiver makes what gives slices away while the disk is above its high mark.
func newGiver(s *Server) *relief.Giver {
	return relief.New(relief.Options{
		Self: s.id, Site: ids.Site(s.config.Site), Roster: s.directory, Candidates: s.slices.Candidates, Reserve: s.config.ReserveBytes,
		Disk: func() relief.Disk {
			u := s.store.Usage()
			capacity := s.space.Capacity(u)
			return relief.Disk{Used: capacity - max(s.space.Free(u), 0), Waiting: u.Waiting, Capacity: capacity, Full: s.space.IsFull()}
		},
		Stored: func(id ids.Slice) (int64, bool) {
			state, err := tree.ReadState(s.committed(id))
			return int64(state.Stored), err == nil
		},
		Idle: func(id ids.Slice) time.Duration {
			if p := s.loop.Published(id); p != nil && p.AppliedTime.Load() != 0 {
				return max(s.wall().Sub(hlc.Time(p.AppliedTime.Load()).Wall()), 0)
			}
			return s.clock() - s.began // none since the start
		},
		Settle: s.config.UploadGrace + givenBack, Refresh: s.net.registrar.Refresh, Clock: s.clock, Logger: s.logger,
	})
}
