// Package ops has op constants, of which one names another function.
package ops

import (
	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/fault"
)

// Right names itself.
func Right(geoconfig.MemberState) fault.Op {
	const op fault.Op = "ops.Right"
	return op
}

// Wrong names another.
func Wrong(geoconfig.MemberState, geoconfig.Properties) fault.Op {
	const op fault.Op = "ops.Right"
	return op
}
