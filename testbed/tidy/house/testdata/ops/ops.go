// Package ops has op constants, of which one names another function.
package ops

import (
	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
)

// Right names itself.
func Right(ids.Object) fault.Op {
	const op fault.Op = "ops.Right"
	return op
}

// Wrong names another.
func Wrong(ids.Object, geoconfig.Properties) fault.Op {
	const op fault.Op = "ops.Right"
	return op
}
