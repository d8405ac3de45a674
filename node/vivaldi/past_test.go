package vivaldi

import (
	"fmt"
	"slices"
	"testing"
	"time"
)

// turned is a node whose random neighbours have changed often.
func turned(t *testing.T) (n *Node, observe func(steps int)) {
	n = node(t, func(c *Config) { c.Neighbours, c.Peers = 8, 60 })
	k := 0
	return n, func(steps int) {
		for range steps {
			k++
			now := time.Duration(k) * 5 * time.Second
			i := k * 7 % 100 // more than there is room for: slots change hands
			n.Meet(fmt.Sprint(i), Coordinate{Vector: [MaxDimensions]float32{float32(5 * i)}, Error: 0.1}, now)
			id, ok := n.Next(now)
			if !ok {
				t.Fatal("nobody to measure")
			}
			fmt.Sscan(id, &i)
			// Not quite what the coordinates say, so that everybody pulls.
			n.Observe(id, duration(5*float64(i)+10+float64(i%7)), Coordinate{Vector: [MaxDimensions]float32{float32(5 * i)}, Error: 0.1}, now)
			if k%11 == 0 {
				n.Forget(fmt.Sprint(k % 100))
			}
		}
	}
}

func TestEveryPeerIsInTheListOfItsRole(t *testing.T) {
	n, observe := turned(t)
	most := 0
	for range 3000 {
		observe(1)
		most = max(most, len(n.past))
		for r, list := range map[role][]int32{former: n.past, nearby: n.near, random: n.far} {
			want := []int32{}
			for _, slot := range n.index {
				if n.table[slot].role == r {
					want = append(want, slot)
				}
			}
			got := slices.Sorted(slices.Values(list))
			slices.Sort(want)
			if !slices.Equal(got, want) {
				t.Fatalf("role %d: listed are %v, have it %v", r, got, want)
			}
		}
	}
	if most != n.config.Neighbours {
		t.Errorf("at most %d former neighbours were kept, want %d", most, n.config.Neighbours)
	}
}

func TestFormerNeighboursGoOnPulling(t *testing.T) {
	with, observe := turned(t)
	observe(1000)
	without, observeOther := turned(t)
	observeOther(1000)
	if with.Coordinate() != without.Coordinate() || len(with.past) == 0 {
		t.Fatalf("%v and %v, %d former neighbours", with.Coordinate(), without.Coordinate(), len(with.past))
	}
	for _, slot := range slices.Clone(without.past) {
		without.dismiss(slot)
	}
	observe(1)
	observeOther(1)
	if with.Coordinate() == without.Coordinate() {
		t.Error("without its former neighbours the node goes the same way")
	}
}
