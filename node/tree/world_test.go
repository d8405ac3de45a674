package tree

import (
	"bytes"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/chunk"
	"cartwheel.dev/node/hlc"
	"cartwheel.dev/node/protocol/pb"
)

// memory is the simplest View: a map, sorted when it is scanned. What may be
// scanned is kept apart by the first nine bytes, so that big tests stay fast.
type memory struct {
	values map[string][]byte
	groups map[string]map[string]bool
	times  map[string]hlc.Time
}

func newMemory() *memory {
	return &memory{values: map[string][]byte{}, groups: map[string]map[string]bool{}, times: map[string]hlc.Time{}}
}

func (m *memory) Get(key []byte) ([]byte, bool, error) {
	v, ok := m.values[string(key)]
	return v, ok, nil
}

func (m *memory) Scan(from, to []byte, fn func(key, value []byte) bool) error {
	var keys []string
	take := func(k string) {
		if k >= string(from) && (to == nil || k < string(to)) {
			keys = append(keys, k)
		}
	}
	if len(from) >= 9 && to != nil && string(to) <= string(endOf(from[:9])) {
		for k := range m.groups[string(from[:9])] {
			take(k)
		}
	} else {
		for k := range m.values {
			take(k)
		}
	}
	slices.Sort(keys)
	for _, k := range keys {
		if !fn([]byte(k), m.values[k]) {
			break
		}
	}
	return nil
}

func (m *memory) apply(mutations []Mutation, at hlc.Time) error {
	for _, x := range mutations {
		k := string(x.Key)
		g := k[:min(9, len(k))]
		when := at
		if x.Time != 0 {
			when = x.Time
		}
		if Versioned(x.Key) && when < m.times[k] {
			return fmt.Errorf("key %q: a version at %d below one at %d", k, when, m.times[k])
		}
		m.times[k] = when
		if x.Value == nil {
			delete(m.values, k)
			delete(m.groups[g], k)
			continue
		}
		m.values[k] = bytes.Clone(x.Value)
		if m.groups[g] == nil {
			m.groups[g] = map[string]bool{}
		}
		m.groups[g][k] = true
	}
	return nil
}

// place is one slice with its active.
type place struct {
	id     ids.Slice
	state  *memory
	over   *Overlay // what proposals go through
	serial ids.Serial
	// backlog is what is committed and not applied yet.
	backlog []waiting
}

// world is a cluster without a network: slices, and the chunks that all share.
type world struct {
	t      testing.TB
	rng    *rand.Rand
	places map[ids.Slice]*place
	chunks map[chunk.Address][]byte
	clock  uint64
	// crash says how likely a coordinator dies between two actions.
	crash   float64
	crashed int
	along   int // facts that came with a step
	// committed hears of what is committed; nil: nobody does.
	committed func(mutations []Mutation, at hlc.Time)
	// gathers is the batch that operations run here are put into; nil: none.
	gathers *gathering
}

func (w *world) Node(a chunk.Address) ([]byte, error) {
	if data, ok := w.chunks[a]; ok {
		return data, nil
	}
	return nil, fault.E(fault.Missing, "world.Node", a.String(), "no such chunk")
}

func newWorld(t testing.TB, seed uint64, n int) *world {
	w := &world{t: t, rng: rand.New(rand.NewPCG(seed, 1)), places: map[ids.Slice]*place{}, chunks: map[chunk.Address][]byte{}, clock: 1000}
	for i := 1; i <= n; i++ {
		p := &place{id: ids.Slice(i), state: newMemory()}
		p.over = NewOverlay(p.state)
		w.places[p.id] = p
		c := w.context(p, Principal{})
		w.commit(p, c, Outcome{Mutations: Format(c, nil, int64(c.Time))})
	}
	return w
}

func (w *world) context(p *place, who Principal) Context {
	w.clock++
	return Context{Slice: p.id, Serial: p.serial + 1, Time: hlc.Time(w.clock), Node: "node", Principal: who}
}

// commit takes an outcome through the encoding, the overlay and the state.
func (w *world) commit(p *place, c Context, o Outcome) {
	w.t.Helper()
	data := AppendData(nil, o.Mutations, o.Inline)
	if len(data) > DataSize(o.Mutations, o.Inline) {
		w.t.Fatalf("DataSize is too small: %d for %d", DataSize(o.Mutations, o.Inline), len(data))
	}
	mutations, inline, err := DecodeData(data)
	if err != nil {
		w.t.Fatal(err)
	}
	p.serial++
	if c.Serial != p.serial {
		w.t.Fatalf("serial %d, want %d", c.Serial, p.serial)
	}
	p.over.Add(p.serial, mutations)
	for _, x := range inline {
		w.chunks[x.Address] = bytes.Clone(x.Data)
	}
	p.backlog = append(p.backlog, waiting{mutations, c.Time, p.serial})
	if w.committed != nil {
		w.committed(mutations, c.Time)
	}
	if w.rng.IntN(3) == 0 {
		w.flush(p)
	}
}

type waiting struct {
	mutations []Mutation
	at        hlc.Time
	serial    ids.Serial
}

func (w *world) flush(p *place) {
	w.t.Helper()
	for _, x := range p.backlog {
		if err := p.state.apply(x.mutations, x.at); err != nil {
			w.t.Fatal(err)
		}
		p.over.Applied(x.serial)
	}
	p.backlog = nil
}

// run evaluates an operation at the slice of its target and commits it; one
// over several slices goes through a coordinator. ok is false where the
// coordinator crashed: the outcome is unknown.
func (w *world) run(target ids.Object, who Principal, client uint64, op *pb.Operation, body []byte) (r *pb.Result, ok bool) {
	w.t.Helper()
	if w.gathers != nil {
		return w.gathers.run(op, body), true
	}
	p := w.places[target.Slice()]
	if p == nil {
		return &pb.Result{Kind: uint32(fault.NotFound)}, true
	}
	for range 4 {
		c := w.context(p, who)
		c.Client, c.Side = client, client != 0 && ids.Object(op.GetCreate().GetObject()).Number() >= sideNumbers
		if op.TimeNs == 0 {
			op.TimeNs = int64(c.Time)
		}
		o := Evaluate(p.over, w, c, op, body)
		switch {
		case o.Err != nil:
			w.t.Fatalf("%v: %v", op, o.Err)
		case o.Across:
			return w.coordinate(NewCoordinator(c, op))
		case o.Blocked != 0:
			w.recover()
			continue
		}
		if o.Done() {
			w.commit(p, c, o)
		} else if len(o.Mutations) > 0 {
			w.t.Fatalf("%v: kind %d with mutations", op, o.Result.Kind)
		}
		return o.Result, true
	}
	w.t.Fatalf("%v stays blocked", op)
	return nil, false
}

// coordinate runs a coordinator to its end, or crashes it on the way.
func (w *world) coordinate(k *Coordinator) (*pb.Result, bool) {
	w.t.Helper()
	for n := 0; !k.Done(); n++ {
		if n > 300 {
			w.t.Fatalf("the coordinator does not end: phase %d", k.phase)
		}
		if k.Intent() != 0 && w.rng.Float64() < w.crash {
			w.crashed++
			return nil, false
		}
		actions := k.Next()
		answers := make([]Answer, len(actions))
		for _, i := range w.rng.Perm(len(actions)) {
			if k.Intent() != 0 && w.rng.Float64() < w.crash/2 { // between two of them
				w.crashed++
				return nil, false
			}
			answers[i] = w.act(actions[i])
		}
		k.Answer(answers)
	}
	return k.Result(), true
}

func (w *world) act(a Action) Answer {
	w.t.Helper()
	p := w.places[a.Slice]
	if a.Step == nil {
		w.flush(p)
		f, err := ReadFacts(p.state, a.Asks)
		if fault.Is(err, fault.Busy) {
			w.recover()
			w.flush(p)
			f, err = ReadFacts(p.state, a.Asks)
		}
		return Answer{Facts: f, Err: err}
	}
	times := 1 + w.rng.IntN(2)*w.rng.IntN(2) // now and then a message comes twice
	if a.Step.Phase == pb.Step_BEGIN {
		times = 1
	}
	var out Answer
	for range times {
		c := w.context(p, Principal{})
		o := Evaluate(p.over, w, c, &pb.Operation{TimeNs: int64(c.Time), Op: &pb.Operation_Step{Step: a.Step}}, nil)
		switch {
		case o.Err != nil:
			w.t.Fatalf("%v: %v", a.Step, o.Err)
		case o.Blocked != 0:
			w.recover()
			return Answer{Result: &pb.Result{Kind: uint32(fault.Busy)}}
		}
		if o.Done() {
			w.commit(p, c, o)
		}
		if out.Result == nil {
			out = Answer{Result: o.Result, Time: c.Time}
		}
	}
	out.Facts = w.behind(p, a, out.Result)
	return out
}

// behind answers what a step asks along, now and then.
func (w *world) behind(p *place, a Action, r *pb.Result) []byte {
	if len(a.Asks) == 0 || r.GetKind() != 0 || w.rng.IntN(4) == 0 {
		return nil
	}
	w.flush(p)
	f, err := ReadFacts(p.state, a.Asks)
	if err != nil {
		return nil
	}
	w.along++
	return f
}

// recover resumes every open intent, and sweeps locks that nobody knows of.
func (w *world) recover() {
	w.t.Helper()
	old := w.crash
	w.crash = 0
	defer func() { w.crash = old }()
	for _, id := range slices.Sorted(maps.Keys(w.places)) {
		p := w.places[id]
		w.flush(p)
		open, err := OpenIntents(p.state)
		if err != nil {
			w.t.Fatal(err)
		}
		for _, o := range open {
			w.coordinate(Resume(w.context(p, Principal{}), o))
		}
	}
	for _, p := range w.places {
		w.flush(p)
		held, err := Prepared(p.state)
		if err != nil {
			w.t.Fatal(err)
		}
		for _, i := range held {
			home := w.places[i.Slice()]
			w.flush(home)
			if known, err := IsOpen(home.state, i); err != nil || known {
				w.t.Fatalf("intent %v is still open after recovery: %v", i, err)
			}
			w.act(Action{Slice: p.id, Step: &pb.Step{Intent: uint64(i), Phase: pb.Step_ABORT}})
		}
	}
}

// content reads a whole file.
func (w *world) content(a *pb.Attr) []byte {
	w.t.Helper()
	c := a.Content
	if c == nil {
		w.t.Fatalf("%d has no content", a.Object)
		return nil
	}
	out := make([]byte, c.Size)
	if len(c.Root) == 0 {
		copy(out, c.Inline)
		return out
	}
	root := chunk.Root{Address: chunk.Address(c.Root), Height: uint8(c.Height), Size: c.Size, Stored: c.Stored}
	err := chunk.Lookup(w, root, 0, c.Size, func(e chunk.Extent) bool {
		if !e.IsHole() {
			copy(out[e.Offset:e.End()], w.chunks[e.Chunk][e.ChunkOffset:])
		}
		return true
	})
	if err != nil {
		w.t.Fatal(err)
	}
	return out
}
