package proximity_test

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/proximity"
	"cartwheel.dev/node/vivaldi"
	"cartwheel.dev/node/wire"
)

// place is a process on a map, with a clock of the test's own.
type place struct {
	*proximity.Vicinity
	x, y float64
}

func places(t *testing.T, now *time.Duration, at ...[2]float64) []place {
	t.Helper()
	var out []place
	for i, p := range at {
		v, err := proximity.New(func() time.Duration { return *now }, rand.NewPCG(1, uint64(i)))
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, place{v, p[0], p[1]})
	}
	return out
}

func (p place) to(q place) time.Duration {
	return time.Duration((math.Hypot(p.x-q.x, p.y-q.y) + 1) * float64(time.Millisecond))
}

func name(i int) ids.Node { return ids.Node('a' + rune(i)) }

func TestEstimate_PredictsPeersThatNeverMet(t *testing.T) {
	now := time.Hour
	all := places(t, &now, [2]float64{0, 0}, [2]float64{100, 0}, [2]float64{0, 80}, [2]float64{100, 80}, [2]float64{40, 40})
	last := len(all) - 1
	for range 400 {
		now += time.Second
		for i := range all {
			for j := range all {
				if i == j || i == 0 && j == last || i == last && j == 0 {
					continue // these two never meet
				}
				c := proximity.ForWire(all[j].Coordinate())
				all[i].Sample(name(j), all[i].to(all[j]), &c)
			}
		}
	}
	if _, ok := all[0].Estimate(name(last)); ok {
		t.Error("an estimate for a node of which nothing was heard")
	}
	all[0].Place(name(last), proximity.ForRow(all[last].Coordinate()))
	e, ok := all[0].Estimate(name(last))
	want := all[0].to(all[last])
	if miss := math.Abs(float64(e.RTT-want)) / float64(want); !ok || e.Measured || miss > 0.15 {
		t.Errorf("got %+v, %v; want a prediction near %v", e, ok, want)
	}
	if e, ok := all[0].Estimate(name(1)); !ok || !e.Measured || e.RTT != all[0].to(all[1]) {
		t.Errorf("got %+v, %v; want the measurement %v", e, ok, all[0].to(all[1]))
	}
	between, ok := all[0].Between(name(1), name(2))
	if want := all[1].to(all[2]); !ok || math.Abs(float64(between-want)) > 0.15*float64(want) {
		t.Errorf("between two others: got %v, %v; want about %v", between, ok, want)
	}
	now += 2 * vivaldi.Default().Fresh
	if e, ok := all[0].Estimate(name(1)); !ok || e.Measured {
		t.Errorf("got %+v, %v; want a prediction once the measurement is old", e, ok)
	}
}

func TestLinks_LeastIsOfTheLastMinutes(t *testing.T) {
	now := time.Hour
	v := places(t, &now, [2]float64{})[0]
	v.Sample("b", time.Millisecond, nil)
	sample := func(minutes int, rtt time.Duration) proximity.Link {
		for range minutes * 6 {
			now += 10 * time.Second
			v.Sample("b", rtt, nil)
		}
		return v.Links()[0]
	}
	if l := sample(4, 30*time.Millisecond); l.Least != time.Millisecond || l.Count != 25 {
		t.Errorf("after four minutes: least %v of %d, want 1ms of 25", l.Least, l.Count)
	}
	if l := sample(10, 30*time.Millisecond); l.Least != 30*time.Millisecond || l.Count < 30 || l.Samples != 85 {
		t.Errorf("the machine moved away: least %v of %d, ever %d; want 30ms, of the last minutes only", l.Least, l.Count, l.Samples)
	}
	now += time.Hour
	if l := v.Links()[0]; l.Least != 0 || l.Count != 0 || l.Age != time.Hour {
		t.Errorf("after an hour of silence: least %v of %d, age %v; want none", l.Least, l.Count, l.Age)
	}
}

// TestEstimate_BeginsAnewAfterSilence measures a node again that moved meanwhile.
func TestEstimate_BeginsAnewAfterSilence(t *testing.T) {
	now := time.Hour
	v := places(t, &now, [2]float64{})[0]
	for range 20 {
		now += time.Second
		v.Sample("b", 200*time.Millisecond, nil)
	}
	now += vivaldi.Default().Fresh + time.Second
	v.Sample("b", 20*time.Millisecond, nil)
	if e, ok := v.Estimate("b"); !ok || !e.Measured || e.RTT != 20*time.Millisecond {
		t.Errorf("got %+v, %v; want the 20 ms that were measured last", e, ok)
	}
}

// TestSample_RoundTripOfNoneIsNear measures with a clock too coarse for a LAN.
func TestSample_RoundTripOfNoneIsNear(t *testing.T) {
	now := time.Hour
	v := places(t, &now, [2]float64{})[0]
	v.Sample("b", 0, &wire.Coordinate{Error: 0.1})
	if e, ok := v.Estimate("b"); !ok || !e.Measured || e.RTT <= 0 || e.RTT > 10*time.Microsecond {
		t.Errorf("got %+v, %v; want next to nothing, measured", e, ok)
	}
}

func TestSample_NonsenseChangesNothing(t *testing.T) {
	now := time.Hour
	v := places(t, &now, [2]float64{})[0]
	before := v.Coordinate()
	nan := float32(math.NaN())
	for _, c := range []wire.Coordinate{
		{Vector: [8]float32{nan}}, {Vector: [8]float32{7: nan}}, {Height: -1}, {Vector: [8]float32{1e12}}, {Vector: [8]float32{7: -1e12}},
		{Error: float32(math.Inf(1))}, {Error: -0.5}, {Height: nan},
	} {
		now += time.Minute
		v.Sample("liar", 50*time.Millisecond, &c)
	}
	v.Sample("liar", -time.Second, &wire.Coordinate{})
	v.Place("liar2", geoconfig.Coordinate{Vector: []float64{math.Inf(1)}})
	v.Place("new", geoconfig.Coordinate{})
	if got := v.Coordinate(); got != before {
		t.Errorf("got %+v, want %+v", got, before)
	}
	if l := v.Links(); len(l) != 1 || l[0].Known || l[0].Samples != 8 {
		t.Errorf("got %+v, want the round trips alone", l)
	}
}

func TestSample_CountsOncePerSecond(t *testing.T) {
	now := time.Hour
	v := places(t, &now, [2]float64{})[0]
	at := wire.Coordinate{Vector: [8]float32{100}, Error: 0.1}
	v.Sample("b", 10*time.Millisecond, &at)
	once := v.Coordinate()
	for range 1000 {
		now += 100 * time.Microsecond
		v.Sample("b", 10*time.Millisecond, &at)
	}
	if got := v.Coordinate(); got != once {
		t.Errorf("a thousand samples of a tenth of a second moved it from %+v to %+v", once, got)
	}
	now += time.Second
	v.Sample("b", 10*time.Millisecond, &at)
	if v.Coordinate() == once {
		t.Error("the next second's sample did not count")
	}
}

// TestEstimate_NodesOfOneSiteAreNear has three sites of two nodes, each site as
// far from the others: all height. Two nodes of the first never measure each
// other.
func TestEstimate_NodesOfOneSiteAreNear(t *testing.T) {
	const nodes, away = 6, 100 * time.Millisecond
	now := time.Hour
	all := places(t, &now, make([][2]float64, nodes)...)
	site := func(i int) ids.Site { return ids.Site('x' + rune(i/2)) }
	for range 300 {
		now += time.Second
		for i := range all {
			for j := range all {
				if c := proximity.ForWire(all[j].Coordinate()); site(i) != site(j) {
					all[i].Sample(name(j), away, &c)
				}
			}
		}
	}
	v := all[0]
	v.Place(name(1), proximity.ForRow(all[1].Coordinate()))
	fellow := func() time.Duration {
		e, ok := v.Estimate(name(1))
		if !ok || e.Measured {
			t.Fatalf("got %+v, %v; want a prediction", e, ok)
		}
		return e.RTT
	}
	if got := fellow(); got < away/2 {
		t.Fatalf("got %v without sites: this network does not show the case", got)
	}
	v.Here(site(0))
	for i := 1; i < nodes; i++ {
		v.Declare(name(i), site(i), nil)
	}
	if got := fellow(); got > 2*time.Millisecond {
		t.Errorf("got %v for a node of the same site, want a millisecond", got)
	}
	others := func() time.Duration {
		got, ok := v.Between(name(2), name(3))
		if !ok {
			t.Fatal("nothing is known of two others")
		}
		return got
	}
	if got := others(); got > 2*time.Millisecond {
		t.Errorf("got %v between two nodes of another site, want a millisecond", got)
	}
	if got, ok := v.Between(name(2), name(4)); !ok || got < away*8/10 || got > away*12/10 {
		t.Errorf("got %v, %v between two sites, want about %v", got, ok, away)
	}
	v.Declare(name(3), site(3), []ids.Node{name(2)})
	if got := others(); got < away/5 {
		t.Errorf("got %v for nodes that one of them measured to be apart", got)
	}
	v.Place("far", geoconfig.Coordinate{Vector: []float64{300, 0}, Height: 20, Error: 0.1})
	v.Declare("far", site(0), nil)
	if e, ok := v.Estimate("far"); !ok || e.RTT < away {
		t.Errorf("got %+v, %v for a node that its coordinate puts elsewhere, whatever it says", e, ok)
	}
	v.Sample(name(1), 80*time.Millisecond, nil)
	now += 2 * vivaldi.Default().Fresh
	if got := fellow(); got < away/2 {
		t.Errorf("got %v for a node that was measured to be far", got)
	}
}
