package vivaldi

import (
	"math"
	"testing"
	"time"
)

// TestFellows_WeighLittleTogether lets nodes of one LAN and few others pull: most
// neighbours are fellows, and they all stand a little off.
func TestFellows_WeighLittleTogether(t *testing.T) {
	step := func(fellows int) float64 {
		n := node(t, func(c *Config) { c.Dimensions = 2 })
		n.counts[Accepted] = 1000 // settled
		n.err = 0.1
		for i := range fellows {
			at := Coordinate{Vector: [MaxDimensions]float32{0, 0.1}, Error: 0.1}
			n.Observe("fellow"+string(rune('a'+i)), 50*time.Microsecond, at, 0)
		}
		n.fill()
		before := n.vector
		n.Observe("far", 150*time.Millisecond, Coordinate{Vector: [MaxDimensions]float32{100}, Error: 0.1}, 0)
		n.fill()
		n.vector, n.err = before, 0.1
		n.Observe("far", 150*time.Millisecond, Coordinate{Vector: [MaxDimensions]float32{100}, Error: 0.1}, 0)
		return before[0] - n.vector[0]
	}
	few, many := step(4), step(20)
	if few <= 0 || many < 0.8*few {
		t.Errorf("one far peer moves a node by %.3f ms among 4 fellows and by %.3f ms among 20; want about the same", few, many)
	}
}

// TestFellows_HeightsAreNoErrorOfTheirs has two nodes of a site whose way to the
// core is long: their coordinates contradict the LAN, and are right all the same.
func TestFellows_HeightsAreNoErrorOfTheirs(t *testing.T) {
	n := node(t, nil)
	n.height, n.err = 50, 0.05
	at := Coordinate{Height: 50, Error: 0.05}
	for i := range 50 {
		n.height = 50
		n.Observe("fellow", 40*time.Microsecond, at, time.Duration(i)*time.Second)
	}
	if n.err > 0.05 {
		t.Errorf("the error is %.3f after a fellow was heard, want no more than 0.05 as before", n.err)
	}
	displaced := node(t, nil)
	displaced.vector[0], displaced.err = 300, 0.05
	displaced.Observe("fellow", 40*time.Microsecond, at, 0)
	if displaced.err <= 0.05 {
		t.Errorf("the error is %.3f where the fellow is far from here, want more than 0.05", displaced.err)
	}
}

// TestRestore_LeavesThePlane restores a node from a space of two dimensions.
func TestRestore_LeavesThePlane(t *testing.T) {
	n := node(t, func(c *Config) { c.Dimensions = 8 })
	flat := Coordinate{Vector: [MaxDimensions]float32{30, -40}, Height: 2, Error: 0.3}
	if err := n.Restore(flat); err != nil {
		t.Fatal(err)
	}
	got := n.Coordinate()
	if got.Vector[0] != 30 || got.Vector[1] != -40 || got.Height != 2 || got.Error != 0.3 {
		t.Errorf("got %+v, want what was known", got)
	}
	for i, v := range got.Vector[2:] {
		if v == 0 || math.Abs(float64(v)) > beside {
			t.Errorf("component %d is %v, want a little beside the plane", i+2, v)
		}
	}
}
