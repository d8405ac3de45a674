package intents

import (
	"testing"

	"cartwheel.dev/geo-config/fault"
)

// TestUndecided_KindsAreNoOutcome lists what a program must not be told: its
// client tries again instead.
func TestUndecided_KindsAreNoOutcome(t *testing.T) {
	for _, k := range []fault.Kind{fault.NotActive, fault.WrongEpoch, fault.TimedOut, fault.Unreachable, fault.Overloaded, fault.Again} {
		if !undecided(k) {
			t.Errorf("%v is told to the program", k)
		}
	}
	for _, k := range []fault.Kind{fault.None, fault.Exists, fault.NotFound, fault.Permission, fault.NoSpace} {
		if undecided(k) {
			t.Errorf("%v is not told to the program", k)
		}
	}
}
