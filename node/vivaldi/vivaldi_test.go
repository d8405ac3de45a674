package vivaldi

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"
)

func TestNode_FindsItsPlaceOnAGrid(t *testing.T) {
	const side, rounds = 6, 400
	var nodes []*Node
	for i := range side * side {
		n, err := NewNode(Default(), rand.NewPCG(1, uint64(i)))
		if err != nil {
			t.Fatal(err)
		}
		nodes = append(nodes, n)
	}
	rtt := func(i, j int) time.Duration {
		return duration(10 + 20*math.Hypot(float64(i%side-j%side), float64(i/side-j/side)))
	}
	chance := rand.New(rand.NewPCG(2, 2))
	for round := range rounds {
		for i, n := range nodes {
			j := chance.IntN(len(nodes))
			if i == j {
				continue
			}
			if v := n.Observe(fmt.Sprint(j), rtt(i, j), nodes[j].Coordinate(), time.Duration(round)*time.Second); !v.Taken() {
				t.Fatalf("round %d: %v", round, v)
			}
		}
	}
	var sum float64
	for i := range nodes {
		for j := range i {
			want := milliseconds(rtt(i, j))
			sum += math.Abs(nodes[i].Coordinate().Distance(nodes[j].Coordinate())-want) / want
		}
	}
	if mean := sum / (side * side * (side*side - 1) / 2); mean > 0.05 {
		t.Errorf("mean relative error %.3f, want at most 0.05", mean)
	}
}
