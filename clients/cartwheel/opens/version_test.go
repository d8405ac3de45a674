package opens

import (
	"testing"

	"cartwheel.dev/clients/mount"
)

func TestDropsSetID_GoesByTheMode(t *testing.T) {
	for mode, want := range map[uint32]bool{
		0o755: false, mount.SetUID | 0o644: true, mount.SetGID | 0o755: true, mount.SetGID | 0o744: false,
	} {
		if got := dropsSetID(mode); got != want {
			t.Errorf("of mode %o: got %v, want %v", mode, got, want)
		}
	}
}
