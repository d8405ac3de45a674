package route

import "cartwheel.dev/geo-config/fault"

// MayComeLater reports whether a request failed so that it may succeed later.
func MayComeLater(err error) bool {
	switch fault.KindOf(err) {
	case fault.TimedOut, fault.Canceled, fault.Interrupted, fault.Unreachable, fault.Overloaded, fault.Again, fault.NotActive, fault.WrongEpoch, fault.Closed, fault.Expired:
		return true
	}
	return false
}
