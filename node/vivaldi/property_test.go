package vivaldi

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"cartwheel.dev/geo-config/fault"
	"pgregory.net/rapid"
)

func coordinates() *rapid.Generator[Coordinate] {
	return rapid.Custom(func(t *rapid.T) Coordinate {
		c := Coordinate{
			Height: rapid.Float32Range(0, MaxPosition).Draw(t, "height"),
			Error:  rapid.Float32Range(0, MaxError).Draw(t, "error"),
		}
		for i := range rapid.IntRange(0, MaxDimensions).Draw(t, "dimensions") {
			c.Vector[i] = rapid.Float32Range(-MaxPosition, MaxPosition).Draw(t, "component")
		}
		return c
	})
}

func node(t testing.TB, change func(*Config)) *Node {
	t.Helper()
	c := Default()
	if change != nil {
		change(&c)
	}
	n, err := NewNode(c, rand.NewPCG(1, 2))
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func TestCoordinate_EncodingsLoseNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := coordinates().Draw(t, "coordinate")
		var b, j, p Coordinate
		bin, _ := c.MarshalBinary()
		if err := b.UnmarshalBinary(bin); err != nil || b != c || len(bin) > MaxBinary {
			t.Fatalf("binary: %v, %v", b, err)
		}
		text, err := json.Marshal(c)
		if err != nil || len(text) > MaxJSON {
			t.Fatalf("%d bytes, %v", len(text), err)
		}
		if err := json.Unmarshal(text, &j); err != nil || j != c {
			t.Fatalf("JSON: %v, %v", j, err)
		}
		v, h, e := c.Parts(MaxDimensions)
		if p, err = Place(v, h, e); err != nil || p != c {
			t.Fatalf("parts: %v, %v", p, err)
		}
	})
}

func TestDistance_IsSymmetricAndKeepsTheTriangle(t *testing.T) {
	near := Coordinate{Vector: [MaxDimensions]float32{-8, 1}, Height: 3.9375}
	flat := Coordinate{Vector: [MaxDimensions]float32{-36, 1, 1, 1, 1, 1}, Height: 5.960465e-08}
	if near.Distance(flat) != flat.Distance(near) {
		t.Error("the order of heights shows in the last bit")
	}
	rapid.Check(t, func(t *rapid.T) {
		a, b, c := coordinates().Draw(t, "a"), coordinates().Draw(t, "b"), coordinates().Draw(t, "c")
		if a.Distance(b) != b.Distance(a) || a.Distance(b) < 0 {
			t.Fatalf("%v and %v", a.Distance(b), b.Distance(a))
		}
		if a.Distance(c) > a.Distance(b)+b.Distance(c)+1e-6 {
			t.Fatal("a detour is shorter")
		}
	})
}

// TestNode_StaysValidWhateverItHears feeds a node anything. What it publishes is
// valid, and its memory bounded.
func TestNode_StaysValidWhateverItHears(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := Default()
		c.Dimensions = rapid.IntRange(1, 4).Draw(t, "dimensions")
		c.Neighbours, c.Peers = 4, 9
		n, err := NewNode(c, rand.NewPCG(3, 4))
		if err != nil {
			t.Fatal(err)
		}
		var now time.Duration
		for range rapid.IntRange(1, 120).Draw(t, "steps") {
			id := fmt.Sprint(rapid.IntRange(0, 20).Draw(t, "peer"))
			at := coordinates().Draw(t, "at")
			at.Vector[0] *= rapid.SampledFrom([]float32{1, 1e12, float32(math.Inf(1)), float32(math.NaN())}).Draw(t, "spoil")
			rtt := time.Duration(rapid.Int64().Draw(t, "rtt")) >> rapid.IntRange(0, 40).Draw(t, "shift")
			now += time.Duration(rapid.IntRange(-1, 60).Draw(t, "later")) * time.Second
			before, valid := n.Coordinate(), at.Valid() && at.Dimensions() <= c.Dimensions && rtt >= 0 && rtt <= c.MaxRTT
			switch rapid.IntRange(0, 3).Draw(t, "what") {
			case 0:
				n.Meet(id, at, now)
			case 1:
				n.Next(now)
			case 2:
				n.Forget(id)
			default:
				if v := n.Observe(id, rtt, at, now); v.Taken() && !valid || !v.Taken() && n.Coordinate() != before {
					t.Fatalf("%v of rtt %v, %v: %v", v, rtt, at, n.Coordinate())
				}
			}
			if err := n.Coordinate().Check(); err != nil {
				t.Fatal(err)
			}
			if len(n.Known()) > c.Peers || len(n.near)+len(n.far) > c.Neighbours {
				t.Fatalf("%d peers, %d + %d neighbours", len(n.Known()), len(n.near), len(n.far))
			}
		}
	})
}

func TestObserve_RefusesNonsense(t *testing.T) {
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	good := Coordinate{Vector: [MaxDimensions]float32{1, 2}, Error: 0.1}
	for _, tt := range []struct {
		name   string
		rtt    time.Duration
		change func(*Coordinate)
		want   Verdict
	}{
		{"nothing wrong", time.Millisecond, func(*Coordinate) {}, Accepted},
		{"RTT below the clock's step", 0, func(*Coordinate) {}, Accepted},
		{"negative RTT", -1, func(*Coordinate) {}, BadRTT},
		{"RTT of a minute", time.Minute, func(*Coordinate) {}, BadRTT},
		{"NaN", time.Second, func(c *Coordinate) { c.Vector[1] = nan }, BadCoordinate},
		{"NaN beyond the plane", time.Second, func(c *Coordinate) { c.Vector[5] = nan }, BadCoordinate},
		{"infinite", time.Second, func(c *Coordinate) { c.Vector[0] = -inf }, BadCoordinate},
		{"1e12", time.Second, func(c *Coordinate) { c.Vector[0] = 1e12 }, BadCoordinate},
		{"third dimension", time.Second, func(c *Coordinate) { c.Vector[2] = 1 }, BadCoordinate},
		{"height NaN", time.Second, func(c *Coordinate) { c.Height = nan }, BadCoordinate},
		{"height negative", time.Second, func(c *Coordinate) { c.Height = -1 }, BadCoordinate},
		{"error NaN", time.Second, func(c *Coordinate) { c.Error = nan }, BadCoordinate},
		{"error negative", time.Second, func(c *Coordinate) { c.Error = -0.1 }, BadCoordinate},
		{"error 9", time.Second, func(c *Coordinate) { c.Error = 9 }, BadCoordinate},
	} {
		n := node(t, func(c *Config) { c.Dimensions = 2 })
		c := good
		tt.change(&c)
		if got := n.Observe("peer", tt.rtt, c, 0); got != tt.want {
			t.Errorf("%s: got %v, want %v", tt.name, got, tt.want)
		}
		if met := n.Meet("other", c, 0); met != c.Valid() && c.Dimensions() <= 2 {
			t.Errorf("%s: met is %v", tt.name, met)
		}
		if n.Counts()[tt.want] != 1 {
			t.Errorf("%s: counts %v", tt.name, n.Counts())
		}
	}
	n := node(t, nil)
	n.Observe("peer", time.Second, good, time.Minute)
	if got := n.Observe("peer", time.Second, good, time.Second); got != BadTime {
		t.Errorf("from the past: %v", got)
	}
	if err := n.Restore(Coordinate{Error: 5}); !fault.Is(err, fault.Invalid) {
		t.Errorf("restored nonsense: %v", err)
	}
	if _, err := Place(make([]float64, 9), 0, 0); !fault.Is(err, fault.Invalid) {
		t.Errorf("placed in nine dimensions: %v", err)
	}
}

func TestEstimate_PrefersAFreshMeasurement(t *testing.T) {
	n := node(t, nil)
	there := Coordinate{Vector: [MaxDimensions]float32{100}, Error: 0.1}
	n.Observe("a", 20*time.Millisecond, there, 0)
	n.Observe("a", 900*time.Millisecond, there, time.Second) // late: the filter keeps to 20 ms
	if e := n.Estimate("a", there, time.Minute); !e.Measured || e.RTT != 20*time.Millisecond || e.Age != 59*time.Second {
		t.Errorf("fresh: %+v", e)
	}
	if e := n.Estimate("a", there, time.Hour); e.Measured || e.RTT != n.Coordinate().Predict(there) {
		t.Errorf("after an hour: %+v", e)
	}
	if e := n.Estimate("b", there, 0); e.Measured {
		t.Errorf("a stranger: %+v", e)
	}
}

func TestNext_NeighboursAreHalfNearHalfRandom(t *testing.T) {
	n := node(t, func(c *Config) { c.Neighbours, c.Peers = 8, 200 })
	at := func(i int) Coordinate { return Coordinate{Vector: [MaxDimensions]float32{float32(5 * i)}, Error: 0.1} }
	for i := range 100 {
		n.Meet(fmt.Sprint(i), at(i), 0)
	}
	asked := map[string]int{}
	for k := range 2000 {
		now := time.Duration(k) * time.Second
		id, ok := n.Next(now)
		if !ok {
			t.Fatal("nobody to measure")
		}
		asked[id]++
		if id == "1" { // silent
			continue
		}
		var i int
		fmt.Sscan(id, &i)
		n.Observe(id, duration(5*float64(i)+1), at(i), now)
	}
	near, far := 0, 0
	for _, p := range n.Known() {
		switch {
		case p.Near:
			near++
			if p.RTT > 40*time.Millisecond {
				t.Errorf("%s at %v is a near neighbour", p.ID, p.RTT)
			}
		case p.Neighbour:
			far++
		}
	}
	if near != 4 || far != 4 {
		t.Errorf("%d near and %d random neighbours, want 4 and 4", near, far)
	}
	if asked["1"] > maxMisses+1+2*2000/300 { // at first, and then twice each Config.Fresh
		t.Errorf("a silent peer was asked %d times", asked["1"])
	}
}

// TestNext_AsksASilentPeerAgain silences peers that may only be away. A
// neighbour that lost its place by silence is measured again when it answers.
func TestNext_AsksASilentPeerAgain(t *testing.T) {
	n := node(t, func(c *Config) { c.Neighbours, c.Peers = 8, 200 })
	at := func(i int) Coordinate { return Coordinate{Vector: [MaxDimensions]float32{float32(5 * i)}, Error: 0.1} }
	for i := range 40 {
		n.Meet(fmt.Sprint(i), at(i), 0)
	}
	heard, before := map[int]bool{}, 0
	for k := range 3000 {
		now := time.Duration(k) * 5 * time.Second
		id, _ := n.Next(now)
		var i int
		fmt.Sscan(id, &i)
		if k < 1500 && i%2 == 1 { // half are away
			before++
			continue
		}
		heard[i] = true
		n.Observe(id, duration(5*float64(i)+1), at(i), now)
	}
	if before > 750 {
		t.Errorf("%d of 1500 probes went to the silent", before)
	}
	if len(heard) < 38 {
		t.Errorf("heard %d of 40 after the silent came back", len(heard))
	}
}

// TestPull_UnprovenPeersPullLittleFromAfar hears a far peer. Until it has shown
// that it stays where it says, it has no pull.
func TestPull_UnprovenPeersPullLittleFromAfar(t *testing.T) {
	far := Coordinate{Vector: [MaxDimensions]float32{1000}, Error: 0.1}
	trust := func(samples uint64) float64 {
		n := node(t, nil)
		n.err = 0.08
		return n.pull(&peer{at: far, rtt: 50, samples: samples}, 0).trust
	}
	if young, old := trust(1), trust(proven); young > 0.1 || old < 0.4 {
		t.Errorf("trust %.2f in the first sample, %.2f with proof; want at most 0.1, at least 0.4", young, old)
	}
}

// TestAlarm_NeedsHalfOfAllPeers displaces peers. Liars are too few to make a
// node believe that it is displaced itself, but half of all peers elsewhere do.
func TestAlarm_NeedsHalfOfAllPeers(t *testing.T) {
	alarmed := func(every, samples int) int {
		n := node(t, nil)
		place := func(i int) Coordinate {
			return Coordinate{Vector: [MaxDimensions]float32{float32(i % 20 * 10), float32(i / 20 % 20 * 10)}, Height: 1, Error: 0.1}
		}
		here := Coordinate{Vector: [MaxDimensions]float32{100, 100}, Height: 1}
		n.vector, n.height, n.err = [MaxDimensions]float64{100, 100}, 1, 0.1
		for i := range 400 {
			n.Meet(fmt.Sprint(i), place(i), 0)
		}
		count := 0
		for k := range 300 + samples {
			now := time.Duration(k) * 5 * time.Second
			id, _ := n.Next(now)
			var i int
			fmt.Sscan(id, &i)
			said := place(i)
			if k >= 300 && i%every == 0 {
				said.Vector[0], said.Vector[1] = said.Vector[0]+300, said.Vector[1]-300
			}
			n.Observe(id, time.Duration((0.92+0.16*float64(k%9)/8)*float64(here.Predict(place(i)))), said, now)
			if k >= 300 && n.alarmed() {
				count++
			}
		}
		return count
	}
	if tenth, half := alarmed(10, 2000), alarmed(2, 200); tenth > 20 || half < 10 {
		t.Errorf("alarmed after %d of 2000 samples with a tenth elsewhere, %d of 200 with half", tenth, half)
	}
}

func TestObserve_AFarLieMovesANodeLittle(t *testing.T) {
	n := node(t, nil)
	lie := Coordinate{Vector: [MaxDimensions]float32{MaxPosition, MaxPosition}}
	for k := range 20 {
		n.Observe("liar", 50*time.Millisecond, lie, time.Duration(k)*time.Second)
		lie.Vector[0] = -lie.Vector[0]
	}
	var origin Coordinate
	origin.Height = 0
	if d := n.Coordinate().Distance(origin); d > 500 {
		t.Errorf("thrown %v ms away", d)
	}
}

func TestConfig_NamesWhatIsOutOfRange(t *testing.T) {
	for name, change := range map[string]func(*Config){
		"Dimensions": func(c *Config) { c.Dimensions = 9 }, "StepError": func(c *Config) { c.StepError = 0 },
		"StepPosition": func(c *Config) { c.StepPosition = math.NaN() }, "Window": func(c *Config) { c.Window = 9 },
		"Percentile": func(c *Config) { c.Percentile = -1 }, "Neighbours": func(c *Config) { c.Neighbours = 1 },
		"Peers": func(c *Config) { c.Peers = 3 }, "Fresh": func(c *Config) { c.Fresh = -1 }, "Horizon": func(c *Config) { c.Horizon = 0 },
		"MaxRTT": func(c *Config) { c.MaxRTT = time.Hour }, "GravityRadius": func(c *Config) { c.GravityRadius = -1 },
	} {
		c := Default()
		change(&c)
		if err := c.Validate(); !fault.Is(err, fault.Invalid) || fault.SubjectOf(err) != name {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := NewNode(c, rand.NewPCG(0, 0)); !fault.Is(err, fault.Invalid) {
			t.Errorf("%s: a node came of it: %v", name, err)
		}
	}
	if err := Default().Validate(); err != nil {
		t.Error(err)
	}
}

func FuzzDecoders(f *testing.F) {
	c := Coordinate{Vector: [MaxDimensions]float32{1, -2}, Height: 3, Error: 0.5}
	bin, _ := c.MarshalBinary()
	text, _ := c.MarshalJSON()
	f.Add(bin)
	f.Add(text)
	f.Add([]byte(`{"vector_ms":[1e39],"height_ms":-0,"error":0}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		for _, decode := range []func(*Coordinate, []byte) error{(*Coordinate).UnmarshalBinary, (*Coordinate).UnmarshalJSON} {
			got := c
			if err := decode(&got, b); err != nil && (got != c || !fault.Is(err, fault.Invalid)) {
				t.Fatalf("%v, and the coordinate became %v", err, got)
			}
			if !got.Valid() {
				t.Fatalf("decoded %v", got)
			}
		}
	})
}

func BenchmarkObserve(b *testing.B) {
	n := node(b, nil)
	chance := rand.New(rand.NewPCG(1, 1))
	at := make([]Coordinate, 1000)
	ids := make([]string, len(at))
	for i := range at {
		ids[i] = fmt.Sprint(i)
		at[i] = Coordinate{Vector: [MaxDimensions]float32{100 * chance.Float32(), 100 * chance.Float32()}, Height: 2, Error: 0.1}
		n.Meet(ids[i], at[i], 0)
	}
	here := Coordinate{Vector: [MaxDimensions]float32{50, 50}}
	b.ReportAllocs()
	k := 0
	for b.Loop() {
		i := k * 7 % 40 // neighbours and a few others
		n.Observe(ids[i], here.Predict(at[i])+time.Millisecond, at[i], time.Duration(k)*time.Second)
		k++
	}
}

func BenchmarkEstimate(b *testing.B) {
	n := node(b, nil)
	there := Coordinate{Vector: [MaxDimensions]float32{1}}
	for b.Loop() {
		n.Estimate("peer", there, 0)
	}
}
