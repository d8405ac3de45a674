package server

import (
	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/repair"
)

// claimOf says how urgent a copy of a slice is, by its row.
func claimOf(s *Server, row *geoconfig.SliceRow) repair.Claim {
	return s.losses.ClaimOf(row, s.directory, s.clock())
}

// claim says how urgent a copy of a slice is.
func claim(s *Server, id ids.Slice) repair.Claim {
	row, known := s.directory.Slice(id)
	if !known {
		row.ID = id
	}
	return claimOf(s, &row)
}
