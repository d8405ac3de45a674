package coordinates

import (
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"cartwheel.dev/node/vivaldi"
)

// Accuracy says how well predictions hold, over pairs of honest nodes that are
// not at one place (true RTT above 0).
type Accuracy struct {
	// MedianError and P90Error are percentiles of |predicted - true| / true
	// over pairs, predicted by coordinates alone.
	MedianError float64 `json:"median_relative_error"`
	P90Error    float64 `json:"p90_relative_error"`
	// Coordinates is how often the closest is found by coordinates alone.
	Coordinates Closest `json:"closest_by_coordinates"`
	// Measured is the same where a node prefers what it measured itself of its
	// neighbours within the last minutes, as Node.Estimate does.
	Measured Closest `json:"closest_by_measurements_first"`
	// MeasuredPairs is the share of pairs for which there is such a measurement.
	MeasuredPairs float64 `json:"measured_pairs"`
	// Probed is the same where the two best candidates by Measured are
	// measured, as a client does with the replicas that it may use.
	Probed Closest `json:"closest_by_two_probes"`
}

// Closest is the share of choices among 3 or 8 random candidates that are
// within 10 % + 2 ms of the closest one.
type Closest struct {
	Of3 float64 `json:"of_3"`
	Of8 float64 `json:"of_8"`
}

// Limits of one measurement of accuracy.
const (
	allPairs   = 600     // nodes up to which all pairs count
	pairs      = 200_000 // random pairs where there are more
	choices    = 20_000  // choices among candidates
	fewPairs   = 10_000  // the same on the way, for a series
	fewChoices = 1000
	worst      = 1e6 // relative errors count as at most this
)

// accuracy measures the world; on the way with fewer pairs and choices than at
// the end.
func (w *world) accuracy(end bool) Accuracy {
	chance := rand.New(rand.NewPCG(w.seed, 0xacc))
	var honest []int
	for i := range w.nodes {
		if !w.lies(i) {
			honest = append(honest, i)
		}
	}
	at := make([]vivaldi.Coordinate, len(w.nodes))
	for i, n := range w.nodes {
		at[i] = n.Coordinate()
	}
	var a Accuracy
	var errs []float64
	measured := 0
	each := func(i, j int) {
		truth := w.space.RTT(i, j)
		if i == j || truth <= 0 || truth < w.least {
			return
		}
		e := math.Abs(at[i].Distance(at[j])-truth) / truth
		if !(e < worst) { // where the plain algorithm believed nonsense it is none itself
			e = worst
		}
		errs = append(errs, e)
		if w.nodes[i].Estimate(w.ids[j], at[j], w.now).Measured {
			measured++
		}
	}
	if end && len(honest) <= allPairs {
		for _, i := range honest {
			for _, j := range honest {
				each(i, j)
			}
		}
	} else {
		count := fewPairs
		if end {
			count = pairs
		}
		for range count {
			each(honest[chance.IntN(len(honest))], honest[chance.IntN(len(honest))])
		}
	}
	if len(errs) == 0 {
		return a
	}
	slices.Sort(errs)
	a.MedianError, a.P90Error = errs[len(errs)/2], errs[len(errs)*9/10]
	a.MeasuredPairs = float64(measured) / float64(len(errs))
	count := fewChoices
	if end {
		count = choices
	}
	a.Coordinates.Of3, a.Measured.Of3, a.Probed.Of3 = w.choose(at, honest, 3, count, chance)
	a.Coordinates.Of8, a.Measured.Of8, a.Probed.Of8 = w.choose(at, honest, 8, count, chance)
	return a
}

// choose plays choices among candidates and returns how often each way of
// choosing is right. The second prefers the node's own fresh measurements; the
// third measures the two that the second likes best.
func (w *world) choose(at []vivaldi.Coordinate, honest []int, of, count int, chance *rand.Rand) (coordinates, measured, probed float64) {
	if len(honest) <= of {
		return 0, 0, 0
	}
	for range count {
		i := honest[chance.IntN(len(honest))]
		closest := math.Inf(1)
		near, first, second := -1, -1, -1 // best predicted; best two estimated
		var least float64
		var best, next time.Duration
		for _, j := range draw(honest, i, of, chance) {
			closest = min(closest, w.space.RTT(i, j))
			if d := at[i].Distance(at[j]); near < 0 || d < least {
				near, least = j, d
			}
			switch e := w.nodes[i].Estimate(w.ids[j], at[j], w.now).RTT; {
			case first < 0 || e < best:
				second, next, first, best = first, best, j, e
			case second < 0 || e < next:
				second, next = j, e
			}
		}
		good := func(j int) float64 {
			if w.space.RTT(i, j) <= 1.1*closest+2 {
				return 1 / float64(count)
			}
			return 0
		}
		coordinates += good(near)
		measured += good(first)
		if w.space.RTT(i, second) < w.space.RTT(i, first) {
			first = second
		}
		probed += good(first)
	}
	return coordinates, measured, probed
}

// draw returns so many different candidates other than i.
func draw(from []int, i, count int, chance *rand.Rand) []int {
	out := make([]int, 0, count)
	for len(out) < count {
		if j := from[chance.IntN(len(from))]; j != i && !slices.Contains(out, j) {
			out = append(out, j)
		}
	}
	return out
}

// centre returns how far the middle of all nodes is from the origin, in
// milliseconds.
func (w *world) centre() float64 {
	var sum [vivaldi.MaxDimensions]float64
	for _, n := range w.nodes {
		for i, v := range n.Coordinate().Vector {
			sum[i] += float64(v)
		}
	}
	var square float64
	for _, s := range sum {
		square += s * s / float64(len(w.nodes)) / float64(len(w.nodes))
	}
	return math.Sqrt(square)
}
