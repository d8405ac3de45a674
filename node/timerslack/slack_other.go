//go:build !linux

package timerslack

import (
	"time"

	"cartwheel.dev/geo-config/fault"
)

func allow(time.Duration) error {
	return fault.E(fault.NotSupported, "timerslack.Allow", "", "this system has no slack to set")
}
