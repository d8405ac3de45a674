package wire_test

import (
	"context"
	"math"
	"testing"
	"time"

	"cartwheel.dev/node/wire"
	"cartwheel.dev/node/wire/wiretest"
)

// wide is a coordinate that fills all dimensions.
func wide() wire.Coordinate {
	return wire.Coordinate{Vector: [8]float32{1, -2, 3, -4, 5, -6, 7, -8}, Height: 9, Error: 0.25, Dimensions: 8}
}

// carrying is two hosts that carry coordinates, and what samples brought to each:
// nil stands for a sample without one. knows says for whom ReadsWide answers true.
func carrying(t *testing.T, knows [2]bool, at [2]wire.Coordinate) (call func(from int) *wire.Coordinate) {
	t.Helper()
	var heard [2]chan *wire.Coordinate
	m := wiretest.New(t, 2, func(i int, o *wire.Options) {
		heard[i] = make(chan *wire.Coordinate, 1000)
		o.ReadsWide = func(string) bool { return knows[i] }
		o.OnSample = func(_ string, _ time.Duration, at *wire.Coordinate) {
			if at != nil {
				c := *at
				at = &c
			}
			heard[i] <- at
		}
	})
	for i, h := range m.Hosts {
		h.Spawn(spawned, func(_ context.Context, r *wire.Request) { r.Reply(nil) })
		h.SetCoordinate(at[i])
	}
	return func(from int) *wire.Coordinate {
		t.Helper()
		for len(heard[from]) > 0 {
			<-heard[from] // of heartbeats before
		}
		if _, err := m.Hosts[from].Call(within(t, 5*time.Second), m.Hosts[1-from].KeyID(), wire.Operation, spawned, nil, nil, nil); err != nil {
			t.Fatal(err)
		}
		return <-heard[from]
	}
}

func TestCoordinate_WideFormGoesToThoseThatReadIt(t *testing.T) {
	t.Parallel()
	call := carrying(t, [2]bool{true, false}, [2]wire.Coordinate{wide(), wide()})
	// The second host knows nothing of the first, but hears from it.
	for range 2 {
		for from := range 2 {
			if got := call(from); got == nil || *got != wide() {
				t.Fatalf("host %d heard %+v, want all dimensions", from, got)
			}
		}
	}
}

func TestCoordinate_OlderPeerHearsNoWideForm(t *testing.T) {
	t.Parallel()
	flat := wire.Coordinate{Vector: [8]float32{30, 40}, Height: 1, Error: 0.5, Dimensions: 2}
	call := carrying(t, [2]bool{}, [2]wire.Coordinate{wide(), flat})
	for range 2 {
		if got := call(0); got == nil || *got != flat {
			t.Errorf("the newer host heard %+v, want the older one's %+v", got, flat)
		}
		if got := call(1); got != nil {
			t.Errorf("the older host heard %+v, which ends its connection", got)
		}
	}
}

func TestCoordinate_NoNumberIsPassedOnAsNone(t *testing.T) {
	t.Parallel()
	for name, spoil := range map[string]func(*wire.Coordinate){
		"the first component": func(c *wire.Coordinate) { c.Vector[0] = float32(math.NaN()) },
		"the last component":  func(c *wire.Coordinate) { c.Vector[7] = float32(math.Inf(-1)) },
		"the height":          func(c *wire.Coordinate) { c.Height = float32(math.Inf(1)) },
		"the error":           func(c *wire.Coordinate) { c.Error = float32(math.NaN()) },
	} {
		broken := wide()
		spoil(&broken)
		call := carrying(t, [2]bool{true, true}, [2]wire.Coordinate{wide(), broken})
		for range 2 { // the connection bears it
			if got := call(0); got != nil {
				t.Errorf("%s: heard %+v", name, got)
			}
		}
		if got := call(1); got == nil || *got != wide() {
			t.Errorf("%s: the sender of nonsense heard %+v, want the honest one", name, got)
		}
	}
}
