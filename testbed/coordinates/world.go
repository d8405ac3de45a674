package coordinates

import (
	"context"
	"math/rand/v2"
	"strconv"
	"time"

	"cartwheel.dev/node/vivaldi"
)

// setting is one run of a world.
type setting struct {
	space   Space
	config  vivaldi.Config
	plain   bool
	rounds  int
	period  time.Duration // between two probes of a node
	noise   float64       // share of samples that come late
	step    float64       // of the nodes' clocks, ms; 0: exact
	least   float64       // pairs with a shorter round trip do not count for the accuracy, ms
	liars   float64       // share of nodes
	lie     Lie
	apart   int // rounds for which two halves do not hear each other
	join    int // how many nodes each node knows at the start
	seed    uint64
	measure int // rounds between two points of the series
}

// world is all nodes of one run and what passes between them.
type world struct {
	setting
	nodes   []member
	ids     []string
	chance  *rand.Rand
	now     time.Duration
	round   int
	samples uint64
	refused uint64
}

func newWorld(s setting) (*world, error) {
	w := &world{setting: s, chance: rand.New(rand.NewPCG(s.seed, 0xca27)), ids: make([]string, s.space.Size())}
	for i := range w.ids {
		w.ids[i] = strconv.Itoa(i)
	}
	for i := range w.ids {
		source := rand.NewPCG(s.seed, uint64(i))
		if s.plain {
			w.nodes = append(w.nodes, &plain{config: s.config, chance: rand.New(source), err: 1})
			continue
		}
		n, err := vivaldi.NewNode(s.config, source)
		if err != nil {
			return nil, err
		}
		w.nodes = append(w.nodes, n)
	}
	for i := range w.nodes {
		for range s.join {
			w.introduce(i)
		}
	}
	return w, nil
}

// introduce tells a node of another one of chance, as a roster does.
func (w *world) introduce(i int) {
	j := w.chance.IntN(len(w.nodes))
	if j == i || !w.hears(i, j) {
		return
	}
	at := w.nodes[j].Coordinate()
	if w.lies(j) {
		at, _ = w.lie.tell(at, w.nodes[i].Coordinate(), w.config.Dimensions, j, w.round, w.chance)
	}
	w.nodes[i].Meet(w.ids[j], at, w.now)
}

// lies reports whether a node is a liar: the first of every so many.
func (w *world) lies(i int) bool {
	return w.liars > 0 && int(float64(i+1)*w.liars) > int(float64(i)*w.liars)
}

// hears reports whether two nodes reach each other now.
func (w *world) hears(i, j int) bool { return w.round >= w.apart || i%2 == j%2 }

// run plays the rounds and calls fn at the start, every measure rounds and at
// the end.
func (w *world) run(ctx context.Context, fn func()) error {
	for w.round = 0; w.round < w.rounds; w.round++ {
		if err := ctx.Err(); err != nil {
			return context.Cause(ctx)
		}
		if fn != nil && w.measure > 0 && w.round%w.measure == 0 {
			fn()
		}
		first := w.chance.IntN(len(w.nodes))
		for k := range w.nodes {
			w.now = w.period*time.Duration(w.round) + w.period*time.Duration(k)/time.Duration(len(w.nodes))
			w.probe((first + k) % len(w.nodes))
		}
	}
	if fn != nil {
		fn()
	}
	return nil
}

// probe is one node's turn: it measures a neighbour, and the answer brings that
// one's coordinate and tells of a third node.
func (w *world) probe(i int) {
	n := w.nodes[i]
	w.introduce(i)
	id, ok := n.Next(w.now)
	if !ok {
		return
	}
	j, err := strconv.Atoi(id)
	if err != nil || !w.hears(i, j) {
		return
	}
	at := w.nodes[j].Coordinate()
	rtt := watch(w.space.RTT(i, j), w.step)
	if w.step == 0 {
		rtt = max(rtt, 10*time.Microsecond)
	}
	if w.noise > 0 && w.chance.Float64() < w.noise {
		rtt += time.Duration(w.chance.ExpFloat64() * float64(rtt))
	}
	if w.lies(j) {
		var late time.Duration
		at, late = w.lie.tell(at, n.Coordinate(), w.config.Dimensions, j, w.round, w.chance)
		rtt += late
	}
	w.samples++
	if !n.Observe(id, rtt, at, w.now).Taken() {
		w.refused++
	}
}
