package coordinates

import (
	"testing"

	"cartwheel.dev/node/vivaldi"
)

// TestRestore_APlaneUnfolds restarts all nodes of a network that had two
// dimensions, as an upgrade does. Each takes up the place that it had in the plane.
func TestRestore_APlaneUnfolds(t *testing.T) {
	s := small()
	s.rounds = 800
	fresh := play(t, s).accuracy(true)
	flat := s
	flat.config.Dimensions = 2
	before := play(t, flat)
	plane := before.accuracy(true)
	w, err := newWorld(s)
	if err != nil {
		t.Fatal(err)
	}
	for i, n := range w.nodes {
		c := before.nodes[i].Coordinate()
		c.Error = max(c.Error, 0.5) // as a node that restarts does
		if err := n.(*vivaldi.Node).Restore(c); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.run(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	got := w.accuracy(true)
	t.Logf("median / p90 error: %.4f / %.3f in the plane, %.4f / %.3f after the restart, %.4f / %.3f from nothing",
		plane.MedianError, plane.P90Error, got.MedianError, got.P90Error, fresh.MedianError, fresh.P90Error)
	if got.MedianError > 1.05*fresh.MedianError || got.P90Error > 1.1*fresh.P90Error {
		t.Errorf("median / p90 error %.4f / %.3f after the restart, want about %.4f / %.3f as from nothing",
			got.MedianError, got.P90Error, fresh.MedianError, fresh.P90Error)
	}
}
