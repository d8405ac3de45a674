package server

import (
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/server/failback"
	"cartwheel.dev/node/server/upkeep"
	"cartwheel.dev/node/wire"
)

// keeper makes what looks after this node's part.
func (s *Server) keeper() *upkeep.Keeper {
	home := failback.New(failback.Options{
		Self: s.id, Site: ids.Site(s.config.Site), Leading: s.leading, Row: s.directory.Slice, Node: s.directory.Node,
		Connected: func(id ids.Node) bool { return s.host.Connected(string(id), wire.Operation) },
		HandOver:  s.handOverTo, Clock: s.clock, Logger: s.log,
	})
	return upkeep.New(upkeep.Options{
		Self: s.id, Loop: s.loop, Ledger: s.ledger, NeedsCheckpoint: s.store.NeedsCheckpoint, Roster: s.directory, Slices: s.slices,
		Leading: s.leading, Distance: s.survey.Distance, Committed: s.committed, FailBack: home.Step, Refresh: s.refreshRow,
		MaxSliceObjects: s.config.MaxSliceObjects, FailedAfter: s.config.FailedAfter, Clock: s.clock, Logger: s.log,
	})
}
