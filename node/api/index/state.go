package index

import (
	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/ids"
)

// Normals counts a slice's members that are up to date, without a list of them.
func Normals(r *geoconfig.SliceRow) int {
	n := 0
	for _, m := range r.Members {
		if m.State == geoconfig.Normal {
			n++
		}
	}
	return n
}

// StateOf says how a slice stands. Where its active does not answer, nobody knows
// more than that.
func StateOf(r *geoconfig.SliceRow, isUp func(ids.Node) bool) string {
	switch {
	case !isUp(r.Active):
		return Unavailable
	case Normals(r) < r.Policy.Level:
		return UnderProtected
	}
	return Protected
}

// The states of a slice.
const (
	Protected      = "protected"
	UnderProtected = "under_protected"
	Unavailable    = "unavailable"
)
