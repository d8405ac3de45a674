package route

import (
	"context"
	"testing"
)

// TestOperator_BoundsOperationsInFlight starts one operation more on a slice
// than may be in flight. It waits, and goes on when another has ended.
func TestOperator_BoundsOperationsInFlight(t *testing.T) {
	for asked, want := range map[int]int{0: DefaultInFlight, 2: 2, 5000: MaxInFlight} {
		n := NewOperator(nil, asked).numbers(1)
		for i := range want {
			if number, err := n.begin(t.Context()); err != nil || number != uint64(i+1) {
				t.Fatalf("%d asked for: operation %d is %d, %v", asked, i+1, number, err)
			}
		}
		if len(n.room) != cap(n.room) {
			t.Fatalf("%d asked for: %d of %d are under way", asked, len(n.room), cap(n.room))
		}
		over, end := context.WithCancel(t.Context())
		end()
		if number, err := n.begin(over); err == nil {
			t.Fatalf("%d asked for: operation %d begins beside %d", asked, number, want)
		}
		n.end(1)
		if _, err := n.begin(t.Context()); err != nil {
			t.Errorf("%d asked for: with room again: %v", asked, err)
		}
	}
}
