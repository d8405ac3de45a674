package vivaldi_test

import (
	"fmt"
	"math/rand/v2"
	"time"

	"cartwheel.dev/node/vivaldi"
)

// Two nodes measure each other, 40 ms apart; each hears of the other's
// coordinate with the answer.
func Example() {
	a, _ := vivaldi.NewNode(vivaldi.Default(), rand.NewPCG(1, 1))
	b, _ := vivaldi.NewNode(vivaldi.Default(), rand.NewPCG(1, 2))
	for second := range 100 {
		now := time.Duration(second) * time.Second
		a.Observe("b", 40*time.Millisecond, b.Coordinate(), now)
		b.Observe("a", 40*time.Millisecond, a.Coordinate(), now)
	}
	predicted := a.Coordinate().Predict(b.Coordinate())
	fmt.Println(predicted.Round(time.Millisecond))
	// Output: 40ms
}

// An estimate is the measurement where there is a fresh one.
func ExampleNode_Estimate() {
	n, _ := vivaldi.NewNode(vivaldi.Default(), rand.NewPCG(1, 1))
	there, _ := vivaldi.Place([]float64{30, 40}, 5, 0.1)
	fmt.Println(n.Estimate("peer", there, 0))
	n.Observe("peer", 52*time.Millisecond, there, 0)
	fmt.Println(n.Estimate("peer", there, time.Minute))
	// Output:
	// {55ms false 0s}
	// {52ms true 1m0s}
}

// Next says whom to measure, of those that Meet was told of.
func ExampleNode_Next() {
	n, _ := vivaldi.NewNode(vivaldi.Default(), rand.NewPCG(1, 1))
	_, ok := n.Next(0)
	fmt.Println(ok)
	n.Meet("peer", vivaldi.Coordinate{Error: 1}, 0)
	fmt.Println(n.Next(0))
	// Output:
	// false
	// peer true
}
